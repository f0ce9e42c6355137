import { mkdir, readFile, rm, utimes } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { identifySelf, type ProcessIdentity } from '../process/process-identity.js';
import { defined } from '../values/defined.js';
import { dataFolderAt, diskRoom } from './data-folder.js';
import { NodeError, type NodeErrorCode } from './errors.js';
import { type FrontExit, type FrontProcess, type LaunchPlan, type ReadyLine, startFront } from './launch.js';
import { type LogFile, openLogFile } from './log-file.js';
import {
  type NodeProfile,
  type NodeState,
  type OwnNodeAddress,
  removeState,
  sharesLog,
  startingState,
  writeState,
} from './node-state.js';
import { lastLines } from './run-process.js';
import { TIME_LIMITS } from './time-limits.js';

/** The supervisor's decision after the JVM ended. */
export type ExitVerdict =
  | { readonly kind: 'clean' }
  | { readonly kind: 'crashed'; readonly reason: string }
  | { readonly kind: 'failed'; readonly error: NodeError };

/**
 * The error and the next step for each reason of a failed start. The keys are codes of the front.
 */
const FAILURES = {
  'corrupt-data': {
    code: 'data-corrupt',
    nextStep:
      'Restore the data folder from a backup. If only its index is damaged, remove the folder `index` in it: ' +
      'the node rebuilds that from the log.',
  },
  'newer-data': {
    code: 'data-newer',
    nextStep: 'Use the newer version that wrote it, or name another folder with --data.',
  },
  'older-data': {
    code: 'data-older',
    nextStep:
      'Use the version that wrote it for as long as its nodes run, or begin a new log: ' +
      'this version cannot migrate it.',
  },
  'log-unreachable': {
    code: 'log-unreachable',
    nextStep:
      'Check its address, that it runs and that this host may reach it (for TLS, the certificates), then start ' +
      'the node again.',
  },
  'log-denied': {
    code: 'log-denied',
    nextStep:
      'Put the right password into the file of --password-file or into PALIMPSEST_DATABASE_PASSWORD (for Kafka, ' +
      'into the file of --kafka-properties), then start the node again.',
  },
  'log-missing': {
    code: 'log-missing',
    nextStep:
      'Create the database (CREATE DATABASE …), or the topic with --create-topic, or correct its name; ' +
      'then start the node again.',
  },
  'log-unfit': {
    code: 'log-unfit',
    nextStep: 'Meet the requirements in docs/operations.md, then start the node again.',
  },
  'log-mismatch': {
    code: 'log-mismatch',
    nextStep:
      'Name the log that this data folder was used with, or another folder with --data. ' +
      'If the log was reset on purpose, remove the folder `index` in it; the node rebuilds it from the log.',
  },
  'no-space': { code: 'no-space', nextStep: 'Free some space on that disk, then start the node again.' },
  'bind-failed': {
    code: 'start-failed',
    nextStep: 'Check that the folder of the socket is writable and belongs to you.',
  },
  'config-invalid': { code: 'start-failed', nextStep: 'Install the package again.' },
  'start-failed': { code: 'start-failed', nextStep: 'The log says more: palimpsest node logs' },
  locked: { code: 'locked', nextStep: 'Stop that node (palimpsest node stop), or name another folder with --data.' },
  'out-of-memory': { code: 'out-of-memory', nextStep: 'Free some memory, or give the node more with --heap.' },
} as const satisfies Readonly<Record<string, { readonly code: NodeErrorCode; readonly nextStep: string }>>;

const isFailure = (word: string): word is keyof typeof FAILURES => Object.hasOwn(FAILURES, word);

function failure(why: keyof typeof FAILURES, dataDir: string, said: string): ExitVerdict {
  const { code, nextStep } = FAILURES[why];
  return {
    kind: 'failed',
    error: new NodeError(code, `The node of ${dataDir} did not start: ${said.trim()}. ${nextStep}`),
  };
}

/**
 * Classifies the exit of a JVM: clean (requested, or idle), crashed (worth a restart), or failed
 * (the next start would fail too). An abnormal exit before the node was ever ready counts as
 * failed. An exit by a signal does not, because it says nothing about the next start.
 */
export function judgeFrontExit(
  exit: FrontExit,
  context: { readonly wasReady: boolean; readonly dataDir: string },
): ExitVerdict {
  if (exit.code === 0) return { kind: 'clean' };
  const said = [...exit.tail.matchAll(/^front: ([a-z-]+): (.*)$/gm)].at(-1);
  const [, word = '', detail = ''] = said ?? [];
  if (exit.code === 70 && isFailure(word)) return failure(word, context.dataDir, detail);
  if (exit.code === 75) return failure('locked', context.dataDir, 'another process has its database open');
  if (/No space left on device/.test(exit.tail) && !context.wasReady)
    return failure('no-space', context.dataDir, 'no space left on device');
  const how = exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`;
  if (exit.code === 3) {
    const reason = 'out of memory';
    return context.wasReady
      ? { kind: 'crashed', reason }
      : failure('out-of-memory', context.dataDir, 'it ran out of memory');
  }
  if (context.wasReady || exit.signal !== null) return { kind: 'crashed', reason: how };
  return failure('start-failed', context.dataDir, `${how}; it said last:\n${lastLines(exit.tail, 8)}\n`);
}

/**
 * Returns the delay before the n-th restart in a row (n from 1): none after a first crash, then
 * doubling up to 30 s.
 */
export function restartDelayMs(crashesInARow: number): number {
  return crashesInARow <= 1
    ? 0
    : Math.min(TIME_LIMITS.longestRestartMs, TIME_LIMITS.firstRestartMs * 2 ** (crashesInARow - 2));
}

/**
 * Returns whether a failed start is retried indefinitely because the node was ready before. The
 * node's shared servers may be temporarily unavailable, and not every such failure is recognisable.
 */
export function outlastsFailure(code: NodeErrorCode, profile: NodeProfile): boolean {
  return code === 'log-unreachable' || (code === 'start-failed' && sharesLog(profile));
}

/**
 * Number of consecutive crashes after which the supervisor gives up, if the node was never ready.
 */
const GIVE_UP_AFTER = 3;
/** Exit code for a full disk, on which no state file can be written. */
export const NO_SPACE_EXIT = 28;

/** Options of a supervisor. */
export interface SuperviseOptions {
  readonly plan: LaunchPlan;
  /** Environment of the JVM. */
  readonly env: NodeJS.ProcessEnv;
  /** Fires when the node must stop. */
  readonly stop: AbortSignal;
  /** Called whenever the JVM is ready. */
  onReady?(): void;
}

async function addressOf(ready: ReadyLine, plan: LaunchPlan): Promise<OwnNodeAddress> {
  if (plan.socketPath !== null) return { kind: 'unix', socketPath: plan.socketPath };
  const token = plan.tokenFile === null ? '' : (await readFile(plan.tokenFile, 'utf8')).trim();
  return { kind: 'tcp', origin: `http://127.0.0.1:${ready.port ?? 0}`, token };
}

/** A supervised node: its state on disk and its JVM. */
class Supervision {
  readonly #plan: LaunchPlan;
  readonly #options: SuperviseOptions;
  readonly #log: LogFile;
  readonly #stateFile: string;
  #state: NodeState;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: SuperviseOptions, self: ProcessIdentity, log: LogFile) {
    this.#options = options;
    this.#plan = options.plan;
    this.#log = log;
    this.#stateFile = dataFolderAt(options.plan.dataDir).stateFile;
    this.#state = startingState(self, options.plan.profile);
  }

  /** Changes the state in memory at once, and writes it to disk after earlier changes. */
  #set(change: Partial<NodeState>): Promise<void> {
    this.#state = { ...this.#state, ...change };
    const state = this.#state;
    this.#writing = this.#writing
      .then(() => writeState(this.#stateFile, state))
      .catch((error: unknown) => this.#say(`state not written: ${String(error)}`));
    return this.#writing;
  }

  /** Records that the JVM exited and starts again. */
  #restarting(frontExit: NodeState['frontExit']): Promise<void> {
    const restarts = this.#state.restarts + 1;
    return this.#set({ phase: 'restarting', jvm: null, indexing: null, frontExit, restarts });
  }

  #say(message: string): void {
    this.#log.write(`${new Date().toISOString()} supervisor: ${message}\n`);
  }

  /**
   * Runs the JVM once. If the JVM stops accepting writes, it keeps answering for `patienceMs` and
   * is then ended. `replaced` is the reason why it stopped accepting writes.
   */
  async #runOnce(
    plan: LaunchPlan,
    patienceMs: number,
  ): Promise<{
    readonly exit: FrontExit;
    readonly readyForMs: number | undefined;
    readonly replaced: string | undefined;
  }> {
    const { tmpDir } = dataFolderAt(plan.dataDir);
    await rm(tmpDir, { recursive: true, force: true });
    await mkdir(tmpDir, { recursive: true, mode: 0o700 });
    // The socket file of a killed JVM would keep the next JVM from binding.
    if (plan.socketPath !== null) await rm(plan.socketPath, { force: true });
    let readyAt: number | undefined;
    let over = false;
    let replaced: string | undefined;
    const ended = new AbortController();
    const front: FrontProcess = startFront(plan, {
      env: this.#options.env,
      log: this.#log,
      onIndexing: (indexing) => {
        if (this.#state.indexing == null)
          this.#say(`the index is behind the log: ${indexing.indexed} of ${indexing.of} transactions`);
        void this.#set({ indexing });
      },
      onReady: (line) => {
        readyAt = performance.now();
        this.#say(`the node is ready: XTDB ${line.version} (${plan.profile}), process ${line.pid}`);
        this.#options.onReady?.();
        void addressOf(line, plan).then((address) => {
          return over || this.#options.stop.aborted
            ? undefined
            : this.#set({ phase: 'ready', address, version: line.version, indexing: null });
        });
      },
      onFailed: (reason) => {
        // A restart would lose all data of this node.
        if (plan.profile === 'memory') return;
        // The JVM still answers queries from its index, so it is ended only once the next one can
        // accept writes.
        this.#say(
          `the indexer or the store of the node has failed (${reason}); it restarts as soon as its disk has space`,
        );
        const signal = AbortSignal.any([this.#options.stop, ended.signal]);
        const pause = delay(patienceMs, undefined, { signal }).catch(() => undefined);
        void Promise.all([this.#untilRoom(signal), pause]).then(([hasRoom]) => {
          if (!hasRoom || signal.aborted) return;
          replaced = reason;
          end();
        });
      },
    });
    let killTimer: NodeJS.Timeout | undefined;
    const end = (): void => {
      front.kill('SIGTERM');
      killTimer ??= setTimeout(() => front.kill('SIGKILL'), TIME_LIMITS.frontStopMs);
    };
    const onStop = (): void => {
      void this.#set({ phase: 'stopping' });
      end();
    };
    this.#options.stop.addEventListener('abort', onStop, { once: true });
    if (this.#options.stop.aborted) onStop();
    void front.identity
      .then((identity) => (identity === undefined ? undefined : this.#set({ jvm: identity })))
      .then(front.proceed);
    const exit = await front.ended;
    over = true;
    ended.abort();
    clearTimeout(killTimer);
    this.#options.stop.removeEventListener('abort', onStop);
    return { exit, readyForMs: readyAt === undefined ? undefined : performance.now() - readyAt, replaced };
  }

  /** Waits until the data folder's disk has space for a node; false if the wait is aborted. */
  async #untilRoom(signal: AbortSignal): Promise<boolean> {
    for (let look = 2; !signal.aborted; look++) {
      const { free, suffices } = await diskRoom(this.#plan.dataDir);
      if (free !== undefined && suffices && !signal.aborted) return true;
      await delay(Math.min(restartDelayMs(look), TIME_LIMITS.longestRoomLookMs), undefined, { signal }).catch(
        () => undefined,
      );
    }
    return false;
  }

  async run(): Promise<number> {
    const { stop } = this.#options;
    let crashes = 0;
    let wasEverReady = false;
    let plan = this.#plan;
    await this.#set({});
    for (;;) {
      // The cause of a failure may persist. From the second failure on, the JVM keeps answering for
      // a while before it is replaced.
      const { exit, readyForMs, replaced } = await this.#runOnce(plan, restartDelayMs(crashes + 1));
      const wasReady = readyForMs !== undefined;
      wasEverReady ||= wasReady;
      const frontExit = {
        code: exit.code,
        signal: exit.signal,
        at: new Date().toISOString(),
        ...defined({ reason: replaced }),
      };
      const verdict: ExitVerdict =
        replaced !== undefined
          ? { kind: 'crashed', reason: `it took no more writes: ${replaced}` }
          : judgeFrontExit(exit, { wasReady, dataDir: plan.dataDir });
      if (stop.aborted || verdict.kind === 'clean') {
        this.#say(stop.aborted ? 'stopped' : 'the node ended by itself');
        return this.#leave();
      }
      crashes = (readyForMs ?? 0) >= TIME_LIMITS.healthyMs ? 1 : crashes + 1;
      if (wasEverReady && verdict.kind === 'failed' && verdict.error.code === 'no-space') {
        this.#say(`${verdict.error.message} It restarts as soon as its disk has space`);
        await this.#restarting(frontExit);
        await delay(restartDelayMs(crashes), undefined, { signal: stop }).catch(() => undefined);
        if (await this.#untilRoom(stop)) continue;
        return this.#leave();
      }
      if (wasEverReady && verdict.kind === 'failed' && outlastsFailure(verdict.error.code, plan.profile)) {
        this.#say(`${verdict.error.message} The supervisor tries again`);
        await this.#restarting(frontExit);
        await delay(restartDelayMs(crashes), undefined, { signal: stop }).catch(() => undefined);
        if (stop.aborted) return this.#leave();
        continue;
      }
      const hopeless = !wasEverReady && crashes >= GIVE_UP_AFTER;
      if (verdict.kind === 'failed' || hopeless) {
        const failure =
          verdict.kind === 'failed'
            ? { code: verdict.error.code, message: verdict.error.message }
            : {
                code: 'start-failed',
                message:
                  `The node of ${plan.dataDir} was ended ${crashes} times before it was ready ` +
                  `(${verdict.reason}). See: palimpsest node logs`,
              };
        this.#say(`gave up: ${failure.message}`);
        await this.#set({ phase: 'failed', jvm: null, address: null, frontExit, failure });
        return failure.code === 'no-space' ? NO_SPACE_EXIT : 1;
      }
      // If a JVM dies before it is ready, its class-data archive may be the cause.
      if (!wasReady) plan = { ...plan, archive: null };
      const pauseMs = replaced === undefined ? restartDelayMs(crashes) : 0;
      this.#say(`the node crashed (${verdict.reason}); starting it again${pauseMs > 0 ? ` in ${pauseMs} ms` : ''}`);
      await this.#restarting(frontExit);
      await delay(pauseMs, undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) return this.#leave();
    }
  }

  async #leave(): Promise<number> {
    await this.#writing;
    if (this.#plan.socketPath !== null) await rm(this.#plan.socketPath, { force: true });
    await rm(dataFolderAt(this.#plan.dataDir).tmpDir, { recursive: true, force: true });
    await removeState(this.#stateFile, this.#state.supervisor);
    return 0;
  }
}

/**
 * Runs the node of a plan until it is stopped or ends by itself. Writes the state file, keeps the
 * log, and restarts the JVM after a crash. If the indexer or the store fails, it restarts the JVM
 * once there is space.
 *
 * Resolves to the exit code of this process: 0 after a clean end, 28 on a full disk, 1 otherwise.
 * The state file names the reason if it could be written.
 */
export async function superviseNode(options: SuperviseOptions): Promise<number> {
  const log = openLogFile(dataFolderAt(options.plan.dataDir).logFile);
  // Marks this installation as used, so that the clean-up of the cache keeps it.
  const touch = setInterval(
    () => void utimes(options.plan.cached, new Date(), new Date()).catch(() => undefined),
    TIME_LIMITS.touchMs,
  );
  try {
    return await new Supervision(options, await identifySelf(), log).run();
  } finally {
    clearInterval(touch);
    log.close();
  }
}
