import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The root folder of the project. */
export const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));

/** The folders of the npm packages whose code was bundled, relative to the project. */
const packageFolders = new Set();

/** Records the files that a bundle contains, for the list of bundled packages. */
export function recordInputs(paths) {
  for (const path of paths) {
    const folder = /^(?:.*[/\\])?node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+/.exec(path)?.[0];
    if (folder !== undefined) packageFolders.add(relative(projectRoot, resolve(projectRoot, folder)));
  }
}

/** Returns the folders of the npm packages whose code was bundled so far. */
export const bundledFolders = () => [...packageFolders].sort();

/**
 * Leaves the JSON Schema compiler of the MCP SDK out. Its server checks only answers to forms with
 * it, and ours sends no forms. The compiler would take a tenth of the start-up time of `palimpsest
 * mcp`.
 */
const withoutFormValidation = {
  name: 'without-form-validation',
  setup(build) {
    build.onResolve({ filter: /\/ajv-provider\.js$/ }, ({ path }) => ({ path, namespace: 'left-out' }));
    build.onLoad({ filter: /.*/, namespace: 'left-out' }, () => ({
      contents: `
        export class AjvJsonSchemaValidator {
          getValidator() {
            throw new Error('This server sends no forms, so it cannot check answers to them.');
          }
        }`,
    }));
  },
};

/** Bundles programs of the project for Node, with shared chunks. `options` adds esbuild options. */
export async function bundle({ plugins = [], ...options }) {
  const { metafile } = await build({
    metafile: true,
    absWorkingDir: projectRoot,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // This package finds its native binary next to its own package.json.
    external: ['@vscode/ripgrep'],
    // The main file of this package loads its parts in a way that bundlers cannot follow.
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
    plugins: [withoutFormValidation, ...plugins],
    ...options,
  });
  recordInputs(Object.keys(metafile.inputs).map((path) => path.replace(/^[\w-]+:/, '')));
}
