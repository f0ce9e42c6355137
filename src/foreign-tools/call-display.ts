import { patchedPaths } from './patch-envelope.js';
import { foreignTool } from './tool-table.js';

/** Returns the last segment of a path. */
const nameOf = (path: string): string => path.split('/').findLast((segment) => segment !== '') ?? path;

/**
 * Returns the files that a patch changed. The beginning of its arguments cannot name the call,
 * because every patch begins alike. Undefined for other calls.
 */
export function callDisplay({ tool, args }: { readonly tool: string; readonly args: object }): string | undefined {
  if (foreignTool(tool).kind !== 'patch') return undefined;
  const texts = Object.values(args).filter((one) => typeof one === 'string');
  const paths = [...new Set(texts.flatMap(patchedPaths))];
  const [only] = paths;
  return paths.length > 1 ? paths.map(nameOf).join(', ') : only;
}
