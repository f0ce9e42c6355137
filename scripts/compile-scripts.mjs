import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transform } from 'esbuild';
import { bundle } from './bundle.mjs';

/**
 * Matches Node modules that most questions do not need. Loading them takes a quarter of an answer's
 * time. The bundles import them by member name.
 */
const LATE =
  /(?<==)(?:__require\d*|require|\(0,import_chunk_\w+\.__require\d*\))(?=\("node:(?:child_process|worker_threads|zlib|tls)"\))/g;

/**
 * Converts a module's text into a script. The loader (`src/process/compiled-script.ts`) supplies
 * imports from the same folder at once and other imports later.
 */
async function asScript(text) {
  const { code } = await transform(text, {
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    supported: { 'dynamic-import': true },
    define: { 'import.meta.url': '__url' },
    minifyWhitespace: true,
    minifySyntax: true,
  });
  return code
    .replaceAll(/\brequire\("(\.\/[^"]+)\.js"\)/g, 'require("$1.cjs")')
    .replaceAll(/\bimport\("(\.\/[^"]+)\.js"\)/g, '__load("$1.cjs")')
    .replaceAll(/\bimport\("/g, '__load("')
    .replaceAll(LATE, '__late');
}

/**
 * Converts the modules of a folder into scripts. Compiles those with the given names (also
 * `NAME-HASH`), with their static imports. Compiles all functions, even those that do not run at
 * load: loading unused code costs less than compiling one needed function.
 */
export async function compileScripts({ from, to, names }) {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from).filter((name) => name.endsWith('.js'))) {
    writeFileSync(join(to, name.replace(/\.js$/, '.cjs')), await asScript(readFileSync(join(from, name), 'utf8')));
  }
  const loader = join(to, 'loader');
  await bundle({
    entryPoints: ['src/process/compiled-script.ts'],
    outdir: loader,
    splitting: false,
    outExtension: { '.js': '.mjs' },
  });
  const scripts = readdirSync(to).filter((name) =>
    names.some((prefix) => name === `${prefix}.cjs` || name.startsWith(`${prefix}-`)),
  );
  const paths = scripts.map((name) => join(to, name));
  const loaderUrl = pathToFileURL(join(loader, 'compiled-script.mjs')).href;
  const eachLoaded = ({ compile, statement }) => `
    import { writeFileSync } from 'node:fs';
    import { setFlagsFromString } from 'node:v8';
    import { codeFileOf, loadedScripts, loadScript, underFirstFlags } from ${JSON.stringify(loaderUrl)};
    setFlagsFromString('${compile}');
    for (const path of ${JSON.stringify(paths)}) loadScript(path);
    // The code is that of the flags that it is written under.
    setFlagsFromString('--lazy');
    underFirstFlags(() => {
      for (const [path, { script }] of loadedScripts()) ${statement};
    });`;
  const write = { compile: '--no-lazy', statement: 'writeFileSync(codeFileOf(path), script.createCachedData())' };
  const check = {
    compile: '--lazy',
    statement: "if (script.cachedDataRejected !== false) throw new Error(path + ': its code is not taken')",
  };
  for (const program of [write, check]) {
    const { status } = spawnSync(process.execPath, ['--input-type=module', '--eval', eachLoaded(program)], {
      stdio: 'inherit',
    });
    if (status !== 0) throw new Error('The scripts of the verbs did not compile.');
  }
  rmSync(loader, { recursive: true });
}
