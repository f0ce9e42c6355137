/**
 * Builds dist/: one ESM bundle per entry with shared chunks, which halves the start-up time of
 * `palimpsest mcp`. The reviewers' verbs have their own bundle. Also builds the review page and,
 * with `--types`, the type declarations of the library. `--sizes` prints the size of the page.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { buildPage, buildPageOfFiles } from './build-page.mjs';
import { bundle, bundledFolders, projectRoot as root } from './bundle.mjs';
import { compileScripts } from './compile-scripts.mjs';
import { packedVocabulary, writeVocabulary } from './packed-vocabulary.mjs';

const entries = {
  program: 'src/program.ts',
  'mcp-program': 'src/mcp-program.ts',
  index: 'src/index.ts',
  demo: 'scripts/demo.ts',
  experiment: 'scripts/experiment.ts',
  lab: 'scripts/lab.ts',
  'replay-corpus': 'scripts/replay-corpus.ts',
  'deliver-journals': 'src/host/deliver-journals.ts',
  'bucket-store': 'src/node/bucket-store.ts',
  's3-requests': 'src/node/s3-requests.ts',
  sidecar: 'src/extensions/sidecar/main.ts',
  'lab-worker': 'src/lab/laboratory/lab-worker.ts',
  'pi-extension': 'src/extensions/pi/pi-extension.ts',
  'opencode-plugin': 'src/extensions/opencode/opencode-plugin.ts',
};

/**
 * The reviewers' verbs and their command line. A process loads them for a single answer. One file
 * loads in a third of the time of the sixty files that it would share with other entries.
 * `compile-scripts.mjs` turns each entry into precompiled scripts.
 */
const questions = Object.fromEntries([
  ['program', 'src/question-program.ts'],
  ...['context', 'log', 'note', 'object', 'prefix', 'query', 'search', 'sessions', 'verify'].map((name) => [
    name,
    `src/review/cli/${name}.ts`,
  ]),
  ['restore', 'src/restore/restore-action.ts'],
  // The reports of each contract that has any.
  ...readdirSync(join(root, 'src/contracts')).flatMap((name) => {
    const file = `src/contracts/${name}/reports.ts`;
    return existsSync(join(root, file)) ? [[name, file]] : [];
  }),
]);
const asked = Object.keys(questions);
/** Returns the name of the script that an import loads; undefined for any other import. */
function askedBy({ path, importer, kind }) {
  if (kind !== 'dynamic-import' || !path.startsWith('.')) return undefined;
  const file = join(dirname(importer), path.replace(/\.js$/, '.ts'));
  return asked.find((name) => join(root, questions[name]) === file);
}
/** Makes some imports of a verb load as scripts, from dist/ or from a folder beside the scripts. */
const verbsApart = {
  name: 'verbs-apart',
  setup(build) {
    build.onResolve({ filter: /\.js$/ }, (wanted) => {
      const isEntry = wanted.importer === join(root, 'src/main.ts');
      if (isEntry && /^\.\/(?:mcp-)?program\.js$/.test(wanted.path)) return { path: wanted.path, external: true };
      const name = askedBy(wanted);
      if (name === undefined) return undefined;
      return { path: `${isEntry ? '.' : '..'}/review/${name}.cjs`, namespace: 'script' };
    });
    build.onLoad({ filter: /.*/, namespace: 'script' }, ({ path }) => ({
      resolveDir: root,
      contents: `
        import { fileURLToPath } from 'node:url';
        import { loadScript } from './src/process/compiled-script.ts';
        const { exports } = loadScript(fileURLToPath(new URL('${path}', import.meta.url)));
        export const { ${exportsOf(basename(path, '.cjs')).join(', ')} } = exports;`,
    }));
  },
};
/**
 * Does the same for imports between the scripts. In scripts, the declarations of contracts load
 * only reports, so their other imports are left out.
 */
const scriptsApart = {
  name: 'scripts-apart',
  setup(build) {
    build.onResolve({ filter: /\.js$/ }, (wanted) => {
      const name = askedBy(wanted);
      if (name !== undefined) return { path: `./${name}.js`, external: true };
      const isOfContract = /\/src\/(?:bundle|(?:contracts|page)\/[^/]+)\/[^/]*(?:contract|commands?)\.ts$/.test(
        wanted.importer,
      );
      return wanted.kind === 'dynamic-import' && isOfContract ? { path: wanted.path, external: true } : undefined;
    });
  },
};

/**
 * Loads rarely needed code from the bundles of other entries. Such code is the client, which
 * delivers steps of dead processes, and the requests to a bucket of checkpoints.
 */
const sharedWithEntries = {
  name: 'shared-with-entries',
  setup(build) {
    build.onResolve({ filter: /\/(deliver-journals|bucket-store|s3-requests)\.js$/ }, ({ path }) => ({
      path: `../${basename(path)}`,
      external: true,
    }));
  },
};

/** Returns the names that a file exports. */
function exportsOf(name) {
  const source = readFileSync(join(root, questions[name]), 'utf8');
  return [...source.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm)].map(([, exported]) => exported);
}

// Builds into a draft folder and renames it, so that a program that starts during the build finds
// only old or only new files.
const draft = join(root, 'node_modules', `.dist-${process.pid}`);
await bundle({
  entryPoints: Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(join(root, file)))),
  outdir: draft,
  legalComments: 'none',
  sourcemap: false,
  chunkNames: 'chunks/[name]-[hash]',
  plugins: [verbsApart, packedVocabulary('../review')],
});
// The command line's entry is one file, which loads faster than several.
await bundle({
  entryPoints: { cli: 'src/main.ts' },
  outdir: draft,
  splitting: false,
  legalComments: 'none',
  plugins: [verbsApart],
});
for (const name of asked) {
  await bundle({
    entryPoints: { [name]: questions[name] },
    outdir: join(draft, 'scripts'),
    legalComments: 'none',
    sourcemap: false,
    chunkNames: '[name]-[hash]',
    // Keeps names for stack traces and for lookups by name.
    minifyWhitespace: true,
    minifySyntax: true,
    plugins: [sharedWithEntries, scriptsApart, packedVocabulary('.')],
    banner: {},
  });
}
mkdirSync(join(draft, 'review'));
await writeVocabulary(join(draft, 'review'));
await compileScripts({
  from: join(draft, 'scripts'),
  to: join(draft, 'review'),
  names: [...asked, 'undici', 'session-moment', 'token-count'],
});
rmSync(join(draft, 'scripts'), { recursive: true });
const { first, all } = await buildPage(join(draft, 'web'));
await buildPageOfFiles(join(draft, 'page'));
if (process.argv.includes('--sizes'))
  console.log(`The review page: ${first.toFixed(1)} kB gzipped for the first view, ${all.toFixed(1)} kB in total.`);
// The packages' licences and the bill of materials list what the bundles contain.
writeFileSync(join(draft, 'bundled-packages.json'), `${JSON.stringify(bundledFolders(), null, 2)}\n`);
// pi and OpenCode require a default export, which the source does not have.
writeFileSync(join(draft, 'pi.js'), "export { palimpsestForPi as default } from './pi-extension.js';\n");
writeFileSync(join(draft, 'opencode.js'), "export { palimpsestForOpencode as default } from './opencode-plugin.js';\n");
// Without a platform package, setup compiles the client of hooks or uses the script.
for (const name of ['palimpsest-hook.c', 'palimpsest-hook.mjs'])
  copyFileSync(join(root, 'src/hooks/native', name), join(draft, name));
if (existsSync(join(draft, 'cli.js'))) chmodSync(join(draft, 'cli.js'), 0o755);
if (existsSync(join(root, 'dist'))) renameSync(join(root, 'dist'), `${draft}-old`);
renameSync(draft, join(root, 'dist'));
rmSync(`${draft}-old`, { recursive: true, force: true });

if (process.argv.includes('--types')) {
  const tsc = spawnSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.types.json'],
    {
      cwd: root,
      stdio: 'inherit',
    },
  );
  process.exitCode = tsc.status ?? 1;
}
