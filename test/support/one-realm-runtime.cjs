const { createRequire } = require('node:module');
const { join, sep } = require('node:path');
const { pathToFileURL } = require('node:url');
const { SyntheticModule } = require('node:vm');
const JestRuntime = require('jest-runtime').default;

const PACKAGES = `${sep}node_modules${sep}`;
/** The module that keeps a suite's tests and their results. Each suite evaluates it again. */
const OF_ONE_SUITE = createRequire(require.resolve('jest-circus/runner')).resolve('./jestAdapterInit');
const SOURCE = join(__dirname, '..', '..', 'src', sep);
/** The page in a browser keeps the state of one tab, so each suite has its own. */
const PAGE = join(SOURCE, 'page', sep);
const SERVER_OF_PAGE = join(PAGE, 'server', sep);
const packages = new Map();
const source = new Map();
const sourceMaps = new Map();
/** The import function of the running suite. */
let importNow;

/** Loads a module of a package through Node. */
async function load(path) {
  const namespace = await import(pathToFileURL(path).href);
  const names = Object.keys(namespace);
  function setExports() {
    for (const name of names) this.setExport(name, namespace[name]);
  }
  const module = new SyntheticModule(names, setExports, { identifier: path });
  await module.link(() => undefined);
  await module.evaluate();
  return module;
}

function loadOnce(path) {
  const module = packages.get(path) ?? load(path);
  packages.set(path, module);
  return module;
}

/** Loads a module of `src/`. Loads it again if the end of a suite interrupted its loading. */
async function loadSource(path, begin) {
  if ((await source.get(path)?.catch(() => undefined))?.status === 'errored') source.delete(path);
  if (!source.has(path)) source.set(path, begin());
  return source.get(path);
}

const isKept = (path) => path.startsWith(SOURCE) && (!path.startsWith(PAGE) || path.startsWith(SERVER_OF_PAGE));

/**
 * The module loader of the one-realm environment. Each worker loads a package, through Node, and a
 * module of `src/` only once for all its suites, like a user's process. So the compiled code stays
 * warm. Each suite evaluates the modules of tests and of the review page again.
 */
module.exports = class OneRealmRuntime extends JestRuntime {
  constructor(...given) {
    super(...given);
    const loader = this.esmLoader ?? {};
    const { getContext, loadEsmModule, loadCjsAsEsm, dynamicImport, resolution, transformCache } = loader;
    // These are internals of Jest. After an upgrade, this check fails instead of suites that fail or
    // load everything twice.
    if (
      ![getContext, loadEsmModule, loadCjsAsEsm, dynamicImport, resolution?.canResolveSync].every(
        (method) => typeof method === 'function',
      ) ||
      !(transformCache?.sourceMaps instanceof Map)
    )
      throw new Error(
        'test/support/one-realm-runtime.cjs does not fit this version of jest-runtime: see how its EsmLoader loads a module.',
      );
    loader.getContext = () => undefined;
    // Since Node 24.9, Jest would otherwise load a whole graph at once, including packages.
    resolution.canResolveSync = () => false;
    loader.loadEsmModule = (path, ...rest) => {
      if (path.includes(PACKAGES)) return loadOnce(path);
      if (!isKept(path)) return loadEsmModule.call(loader, path, ...rest);
      return loadSource(path, () => loadEsmModule.call(loader, path, ...rest));
    };
    loader.loadCjsAsEsm = (from, path, ...rest) =>
      path.includes(PACKAGES) ? loadOnce(path) : loadCjsAsEsm.call(loader, from, path, ...rest);
    transformCache.sourceMaps = sourceMaps;
    importNow = dynamicImport;
    loader.dynamicImport = (...request) => importNow(...request);
    delete require.cache[OF_ONE_SUITE];
  }

  requireInternalModule(from, to) {
    return createRequire(from)(to ?? from);
  }
};
