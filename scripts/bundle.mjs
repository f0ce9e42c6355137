import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The folder of the project. */
export const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));

/** Bundles programs of the project for Node, with shared chunks; what `options` says is added. */
export async function bundle(options) {
  await build({
    absWorkingDir: projectRoot,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // Ships a native binary next to its own package.json and must be found from there.
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
    ...options,
  });
}
