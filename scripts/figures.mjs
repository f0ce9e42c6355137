/**
 * Prints figures on the size and the coupling of the source. Part of `npm run check`. With
 * `--surface` it prints the commands, flags and variables instead, with the code behind each.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundle, projectRoot } from './bundle.mjs';

const printed = process.argv.includes('--surface') ? 'print-surface' : 'print-figures';
const outdir = mkdtempSync(join(projectRoot, 'node_modules', '.figures-'));
try {
  await bundle({
    entryPoints: [join(projectRoot, `test/architecture/${printed}.ts`)],
    outdir,
    outExtension: { '.js': '.mjs' },
  });
  await import(pathToFileURL(join(outdir, `${printed}.mjs`)).href);
} finally {
  rmSync(outdir, { recursive: true, force: true });
}
