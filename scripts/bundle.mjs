import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The root folder of the project. */
export const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));

/** Bundles programs of the project for Node, with shared chunks. `options` adds esbuild options. */
export async function bundle(options) {
  await build({
    absWorkingDir: projectRoot,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // Ships a native binary next to its own package.json and resolves it from there.
    external: ['@vscode/ripgrep'],
    // Its main file loads its parts in a way that no bundler follows.
    alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
    // Bundled CommonJS dependencies still call require() for Node's modules and read `__filename`.
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
