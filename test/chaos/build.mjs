import { join } from 'node:path';
import { bundle } from '../../scripts/bundle.mjs';

/**
 * Builds the chaos test's programs into `folder`, which is inside the project, so that they find
 * its files.
 */
export async function buildPrograms(folder, names) {
  await bundle({
    entryPoints: Object.fromEntries(names.map((name) => [name, `test/chaos/${name}.ts`])),
    outdir: folder,
    sourcemap: 'linked',
  });
  return names.map((name) => join(folder, `${name}.js`));
}
