const { createRequire } = require('node:module');
const { sep } = require('node:path');
const { pathToFileURL } = require('node:url');
const { SyntheticModule } = require('node:vm');
const JestRuntime = require('jest-runtime').default;

const PACKAGES = `${sep}node_modules${sep}`;
/** What each suite's tests and their results are kept in: evaluated anew for each. */
const OF_ONE_SUITE = createRequire(require.resolve('jest-circus/runner')).resolve('./jestAdapterInit');
const packages = new Map();

/** A module of a package, as Node itself loads it. */
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

/**
 * Loads for the one-realm environment. Packages are loaded by Node, once for all suites of a worker; the project's own modules are evaluated anew for each
 * suite, so that none sees what another one left in them.
 */
module.exports = class OneRealmRuntime extends JestRuntime {
  constructor(...given) {
    super(...given);
    const loader = this.esmLoader ?? {};
    const { getContext, loadEsmModule, loadCjsAsEsm, resolution } = loader;
    // These are Jest's own affair: whoever raises its version is told here, not by suites that fail or load everything twice.
    if (
      ![getContext, loadEsmModule, loadCjsAsEsm, resolution?.canResolveSync].every(
        (method) => typeof method === 'function',
      )
    )
      throw new Error(
        'test/support/one-realm-runtime.cjs does not fit this version of jest-runtime: see how its EsmLoader loads a module.',
      );
    loader.getContext = () => undefined;
    // From Node 24.9 on Jest would load a whole graph at once, packages and all.
    resolution.canResolveSync = () => false;
    loader.loadEsmModule = (path, ...rest) =>
      path.includes(PACKAGES) ? loadOnce(path) : loadEsmModule.call(loader, path, ...rest);
    loader.loadCjsAsEsm = (from, path, ...rest) =>
      path.includes(PACKAGES) ? loadOnce(path) : loadCjsAsEsm.call(loader, from, path, ...rest);
    delete require.cache[OF_ONE_SUITE];
  }

  requireInternalModule(from, to) {
    return createRequire(from)(to ?? from);
  }
};
