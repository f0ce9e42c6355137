/**
 * Measures the search index: its size, the time to build it compared with that of a replay, and
 * searches.
 *
 * Usage: node bench/search.mjs [MEGABYTES] [MINUTES] [FOLDER] [--from FOLDER]...
 *
 * With --from, it writes texts of files in those folders, each once, instead of generated ones.
 */
import { bundle } from '../scripts/bundle.mjs';

await bundle({
  entryPoints: ['bench/search-scale.ts'],
  entryNames: '[name]',
  outdir: 'bench/dist',
  sourcemap: 'linked',
  external: ['@vscode/ripgrep', 'playwright-core'],
});
await import('./dist/search-scale.js');
