import { AsyncLocalStorage } from 'node:async_hooks';
import { ModuleMocker } from 'jest-mock';

/** Storages that ran something in this suite. */
const storages = new Set();
const { run } = AsyncLocalStorage.prototype;
AsyncLocalStorage.prototype.run = function (...given) {
  storages.add(this);
  return run.apply(this, given);
};

/**
 * Runs suites in the worker's own realm, one after the other. Jest's environment creates a context
 * for each. There every access to a global (`Array`, `JSON`, `Promise`) goes through a proxy and
 * takes forty times as long, and suites share no loaded code. Restores `process` after each suite.
 * Has no fake timers.
 */
export default class OneRealmEnvironment {
  global = globalThis;
  moduleMocker = new ModuleMocker(globalThis);
  fakeTimers = null;
  fakeTimersModern = null;
  #console = console;
  #exit = process.exit;
  #exitCode = process.exitCode;
  #env = { ...process.env };
  #listeners = new Map(process.eventNames().map((event) => [event, process.rawListeners(event)]));

  async setup() {
    // Jest sets 100. `expect` makes two errors per call, and long traces took a quarter of the time
    // of a suite with many. This is the limit of a user's process.
    Error.stackTraceLimit = 10;
  }

  async teardown() {
    // Before Node 24 each promise passes through every storage ever used, and each suite has its
    // own.
    for (const storage of storages) storage.disable();
    storages.clear();
    globalThis.console = this.#console;
    process.exit = this.#exit;
    process.exitCode = this.#exitCode;
    for (const name of Object.keys(process.env)) if (!(name in this.#env)) delete process.env[name];
    Object.assign(process.env, this.#env);
    for (const event of process.eventNames()) {
      const before = this.#listeners.get(event) ?? [];
      for (const listener of process.rawListeners(event))
        if (!before.includes(listener)) process.removeListener(event, listener);
    }
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  getVmContext() {
    return null;
  }
}
