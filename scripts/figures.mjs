/** Prints figures on the size and the coupling of the source. Part of `npm run check`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundle, projectRoot } from './bundle.mjs';

const outdir = mkdtempSync(join(projectRoot, 'node_modules', '.figures-'));
try {
  await bundle({
    entryPoints: [join(projectRoot, 'test/architecture/print-figures.ts')],
    outdir,
    outExtension: { '.js': '.mjs' },
  });
  await import(pathToFileURL(join(outdir, 'print-figures.mjs')).href);
} finally {
  rmSync(outdir, { recursive: true, force: true });
}
