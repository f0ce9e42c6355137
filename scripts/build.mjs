/**
 * Builds dist/: one ESM bundle per entry with shared chunks (a bundle halves the start-up of `palimpsest mcp`), a bundle of its own for what a reviewer's verb runs,
 * the review page, and the type declarations of the library when `--types` is given. `--sizes` prints how large the page is.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { buildPage, buildPageOfFiles } from './build-page.mjs';
import { bundle, projectRoot as root } from './bundle.mjs';
import { compileScripts } from './compile-scripts.mjs';
import { packedVocabulary, writeVocabulary } from './packed-vocabulary.mjs';

const entries = {
  program: 'src/program.ts',
  index: 'src/index.ts',
  demo: 'scripts/demo.ts',
  experiment: 'scripts/experiment.ts',
  lab: 'scripts/lab.ts',
  'replay-corpus': 'scripts/replay-corpus.ts',
  'deliver-journals': 'src/host/deliver-journals.ts',
  'bucket-store': 'src/node/bucket-store.ts',
  's3-requests': 'src/node/s3-requests.ts',
  sidecar: 'src/extensions/sidecar/main.ts',
  'pi-extension': 'src/extensions/pi/pi-extension.ts',
  opencode: 'src/extensions/opencode/opencode-plugin.ts',
};

/**
 * What the verbs of reviewers run, and the command line before them: it is loaded for one answer, and loading one file takes a third of loading the sixty that it
 * would share with the other entries. Each becomes scripts whose code is compiled here (`compile-scripts.mjs`).
 */
const verbs = ['context', 'log', 'note', 'object', 'prefix', 'restore', 'tyrum', 'verify'];
const asked = ['program', ...verbs];
const isAsked = new RegExp(`^\\./(?:cli/review/)?(${asked.join('|')})\\.js$`);
const askers = ['src/main.ts', 'src/cli/review/commands.ts'].map((file) => join(root, file));
/** Where one of them is imported, it is loaded as a script, by what lies in dist/ itself or in a folder beside the scripts. */
const verbsApart = {
  name: 'verbs-apart',
  setup(build) {
    build.onResolve({ filter: isAsked }, ({ path, importer, kind }) => {
      if (kind !== 'dynamic-import' || !askers.includes(importer)) return undefined;
      if (path === './program.js') return { path, external: true };
      return { path: `${importer === askers[0] ? '.' : '..'}/review/${basename(path, '.js')}.cjs`, namespace: 'script' };
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
/** The same among the scripts themselves. */
const scriptsApart = {
  name: 'scripts-apart',
  setup(build) {
    build.onResolve({ filter: isAsked }, ({ path, kind }) => (kind === 'dynamic-import' ? { path, external: true } : undefined));
  },
};

/** What the client of HTTP wants of Node's own: a limit, and a class that nothing here is of. */
const ownHttp = 'module.exports = { maxHeaderSize: 16384, IncomingMessage: class IncomingMessage {} };';
/**
 * The node speaks HTTP/1.1, and nothing that a verb sends is a message of Node's own HTTP: what the client of HTTP needs for either, Node's modules above all, takes a
 * tenth of the time until the first question.
 */
const clientOfHttpAlone = {
  name: 'client-of-http-alone',
  setup(build) {
    build.onLoad({ filter: /undici\/lib\/dispatcher\/client-h2\.js$/ }, () => ({
      contents: "module.exports = () => { throw new Error('HTTP/2 is not spoken here'); };",
    }));
    build.onResolve({ filter: /^node:http$/ }, ({ path, importer }) =>
      /undici\/lib\//.test(importer) ? { path, namespace: 'own-http' } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'own-http' }, () => ({ contents: ownHttp, loader: 'js' }));
  },
};

/**
 * What no answer needs is loaded from the bundles that the other entries share: delivering what dead processes left takes a client, and a checkpoint in a bucket
 * its requests.
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

/** The names that a file of the verbs gives away. */
function exportsOf(name) {
  const source = readFileSync(join(root, 'src/cli/review', `${name}.ts`), 'utf8');
  return [...source.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm)].map(([, exported]) => exported);
}

// Built aside and then moved into place, so that a program started meanwhile finds the old files or the new ones.
const draft = join(root, 'node_modules', `.dist-${process.pid}`);
await bundle({
  entryPoints: Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(join(root, file)))),
  outdir: draft,
  legalComments: 'none',
  sourcemap: false,
  chunkNames: 'chunks/[name]-[hash]',
  plugins: [verbsApart, packedVocabulary('../review')],
});
// What every command line begins with is one file, which takes less time to load than several.
await bundle({ entryPoints: { cli: 'src/main.ts' }, outdir: draft, splitting: false, legalComments: 'none', plugins: [verbsApart] });
for (const name of asked) {
  await bundle({
    entryPoints: { [name]: `src/cli/review/${name}.ts` },
    outdir: join(draft, 'scripts'),
    legalComments: 'none',
    sourcemap: false,
    chunkNames: '[name]-[hash]',
    // Names stay, for stack traces and for what is looked up by name.
    minifyWhitespace: true,
    minifySyntax: true,
    plugins: [sharedWithEntries, clientOfHttpAlone, scriptsApart, packedVocabulary('.')],
    banner: {},
  });
}
mkdirSync(join(draft, 'review'));
await writeVocabulary(join(draft, 'review'));
await compileScripts({
  from: join(draft, 'scripts'),
  to: join(draft, 'review'),
  names: [...asked, 'pool', 'api-request', 'session-moment', 'token-count'],
});
rmSync(join(draft, 'scripts'), { recursive: true });
const { first, all } = await buildPage(join(draft, 'web'));
await buildPageOfFiles(join(draft, 'page'));
if (process.argv.includes('--sizes')) console.log(`The review page: ${first.toFixed(1)} kB gzip at first, ${all.toFixed(1)} kB in all.`);
// pi asks for a default export, which nothing in the source has.
writeFileSync(join(draft, 'pi.js'), "export { palimpsestForPi as default } from './pi-extension.js';\n");
if (existsSync(join(draft, 'cli.js'))) chmodSync(join(draft, 'cli.js'), 0o755);
if (existsSync(join(root, 'dist'))) renameSync(join(root, 'dist'), `${draft}-old`);
renameSync(draft, join(root, 'dist'));
rmSync(`${draft}-old`, { recursive: true, force: true });

if (process.argv.includes('--types')) {
  const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.types.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  process.exitCode = tsc.status ?? 1;
}
