/**
 * Builds the review page: bundles `src/page/` into one folder. Code that the first view does not
 * need is loaded later.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build as bundleOne } from 'esbuild';
import { build } from 'vite';
import { projectRoot, recordInputs } from './bundle.mjs';

/** Limits in kilobytes, gzipped: for the first view and for the whole page. */
const MOST_FIRST_KB = 60;
const MOST_ALL_KB = 200;

/**
 * Builds the page for exported files: one script and one style sheet. An export embeds both with
 * their hashes.
 */
export async function buildPageOfFiles(outDir) {
  const { metafile } = await bundleOne({
    metafile: true,
    absWorkingDir: projectRoot,
    entryPoints: { page: 'src/page/offline.tsx' },
    outdir: outDir,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    define: { 'process.env.NODE_ENV': '"production"' },
    charset: 'ascii',
    legalComments: 'none',
    logLevel: 'warning',
  });
  recordInputs(Object.keys(metafile.inputs));
  // HTML would interpret these texts inside of a script element. Escapes in strings and patterns
  // mean the same.
  const file = join(outDir, 'page.js');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/<(?=\/script|!--)/gi, '\\x3C'));
}

/** Builds the page into a folder and returns its sizes. Throws if a size exceeds its limit. */
export async function buildPage(outDir) {
  // Vite and its plugins read the variable, so its value in the shell could change the page.
  const before = process.env.NODE_ENV;
  process.env.NODE_ENV = 'production';
  const { output } = await build({
    configFile: false,
    root: join(projectRoot, 'src/page'),
    base: '/review/',
    logLevel: 'warn',
    mode: 'production',
    publicDir: false,
    // Otherwise Vite chooses the development form, which contains file paths of the building
    // machine.
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2022',
      modulePreload: false,
      assetsInlineLimit: 0,
      reportCompressedSize: false,
    },
  });
  if (before === undefined) delete process.env.NODE_ENV;
  else process.env.NODE_ENV = before;
  recordInputs(output.flatMap(({ moduleIds = [] }) => moduleIds));
  const size = (name) => gzipSync(readFileSync(join(outDir, name))).length / 1_000;
  const files = readdirSync(outDir, { recursive: true }).filter((name) => /\.(html|js|css)$/.test(name));
  const html = readFileSync(join(outDir, 'index.html'), 'utf8');
  const imported = new Map(output.map(({ fileName, imports = [] }) => [fileName, imports]));
  const needed = new Set(files.filter((name) => name === 'index.html' || html.includes(name)));
  // A set also visits what is added meanwhile: the chunks that a script imports from the start.
  for (const name of needed) for (const other of imported.get(name) ?? []) needed.add(other);
  const first = [...needed].reduce((sum, name) => sum + size(name), 0);
  const all = files.reduce((sum, name) => sum + size(name), 0);
  if (first > MOST_FIRST_KB || all > MOST_ALL_KB)
    throw new Error(
      `The review page is too large: the first view has ${first.toFixed(1)} kB (maximum ${MOST_FIRST_KB}), the ` +
        `whole page ${all.toFixed(1)} kB (maximum ${MOST_ALL_KB}). Remove or split code.`,
    );
  return { first, all };
}
