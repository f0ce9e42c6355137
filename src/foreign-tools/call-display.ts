import { patchedPaths } from './patch-envelope.js';
import { foreignTool } from './tool-table.js';

/** Returns the last segment of a path. */
const nameOf = (path: string): string => path.split('/').findLast((segment) => segment !== '') ?? path;

/**
 * Returns what a call did, if its arguments begin with nothing telling: the files of a patch, whose
 * every text begins alike. Undefined for other calls.
 */
export function callDisplay({ tool, args }: { readonly tool: string; readonly args: object }): string | undefined {
  if (foreignTool(tool).kind !== 'patch') return undefined;
  const texts = Object.values(args).filter((one) => typeof one === 'string');
  const paths = [...new Set(texts.flatMap(patchedPaths))];
  const [only] = paths;
  return paths.length > 1 ? paths.map(nameOf).join(', ') : only;
}
