import { patchedPaths } from './patch-envelope.js';
import { foreignTool } from './tool-table.js';

/** Returns the last segment of a path. */
const nameOf = (path: string): string => path.split('/').findLast((segment) => segment !== '') ?? path;

/**
 * Returns the names of the files that a patch call changed; undefined for other calls. The
 * beginning of a patch cannot stand for the call, because all patches begin alike.
 */
export function callDisplay({ tool, args }: { readonly tool: string; readonly args: object }): string | undefined {
  if (foreignTool(tool).kind !== 'patch') return undefined;
  const texts = Object.values(args).filter((one) => typeof one === 'string');
  const paths = [...new Set(texts.flatMap(patchedPaths))];
  const [only] = paths;
  return paths.length > 1 ? paths.map(nameOf).join(', ') : only;
}
