import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Builds programs of the chaos test into `folder`, which lies inside the project so that they find its files. */
export async function buildPrograms(folder, names) {
  await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(names.map((name) => [name, `test/chaos/${name}.ts`])),
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'linked',
    external: ['@vscode/ripgrep'],
    // CommonJS dependencies inside an ESM bundle still call require() for Node's own modules and ask for their own file's name.
    banner: {
      js: [
        "import { createRequire as __createRequire } from 'node:module';",
        'const require = __createRequire(import.meta.url);',
        "const __filename = require('node:url').fileURLToPath(import.meta.url);",
      ].join(' '),
    },
    logLevel: 'warning',
  });
  return names.map((name) => join(folder, `${name}.js`));
}
