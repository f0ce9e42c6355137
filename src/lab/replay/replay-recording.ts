import { tmpdir } from 'node:os';
import { ContextClient } from '../../client/session/context-client.js';
import { NO_FILESYSTEM, type SessionId } from '../../objects/ids.js';
import { DEFAULT_POLICY } from '../../session/step-policy.js';
import { defined } from '../../values/defined.js';
import { LossList } from '../recordings/import-counts.js';
import { importRecording } from '../recordings/import-recording.js';
import type { Loss, RecordingSource } from '../recordings/importer.js';
import type { RecordedEntry } from '../recordings/neutral-session.js';
import { memoryContextLog, openContextLog } from './context-log.js';
import type { DiskAtCalls } from './disk-at-calls.js';
import { ReplayClock } from './replay-clock.js';
import type { ReplayConfig } from './replay-config.js';
import type { ReplayDatabase } from './replay-database.js';
import { DATABASE_WAIT_MS, ReplayEngine } from './replay-engine.js';
import type { ReplayIdentity } from './replay-identity.js';

/** The progress of a replay. `bytes` were read of the recording's `total`. */
export interface ReplayProgress {
  readonly entries: number;
  readonly steps: number;
  readonly contexts: number;
  readonly bytes: number;
  readonly total: number;
}

/** Settings of one replay. */
export interface RecordingReplay {
  readonly config: ReplayConfig;
  readonly identity: ReplayIdentity;
  /**
   * Set if the recording may still grow, so that a later replay continues in the same session.
   * Calls without results, and a last answer without text, then stay open. The replay skips journal
   * and measures, so that a waiting person sees the session sooner.
   */
  readonly growing?: boolean;
  /** Returns our id of a session in another recording. Used to record the parents of sessions. */
  readonly sessionOf?: (native: string) => SessionId;
  /** Access to the disk, for a recording that is imported while its agent works. */
  readonly disk?: DiskAtCalls;
  /**
   * Called before the first entry with the client, the engine and the other parts of the replay.
   */
  readonly onBegin?: (running: DeliveredReplay) => void;
  /** Called with every entry before it is replayed. */
  readonly onEntry?: (entry: RecordedEntry) => void;
  /** This process's name in the error of another process that imports the same recording. */
  readonly what?: string;
  readonly countTokens?: (text: string) => number;
  readonly onProgress?: (progress: ReplayProgress) => void;
  readonly onNotice?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** The parts of a replay. When `conclude` is called with them, all writes are in the database. */
export interface DeliveredReplay {
  readonly client: ContextClient;
  readonly engine: ReplayEngine;
  readonly losses: LossList;
  readonly clock: ReplayClock;
}

/** Size of the client's text cache. A replay mostly reads active content and its newest writes. */
const KEPT_UNITS = 4 * 1_048_576;
const REPORT_EVERY_ENTRIES = 64;
/** Maximum number of steps and contexts that wait for the database. */
const MOST_WAITING = 48;

/**
 * Replays a recording into a database and passes the result to `conclude` before it closes the
 * client.
 *
 * @throws {RecordingError} if the recording cannot be read
 * @throws {ReplayError} if the replay cannot continue
 * @throws {SessionError} from the client
 * @throws {XtdbError} from the database. Replayed steps stay
 */
export async function replayRecording<T>(
  source: RecordingSource,
  database: ReplayDatabase,
  options: RecordingReplay & { readonly conclude: (replay: DeliveredReplay) => Promise<T> | T },
): Promise<T> {
  const { config, identity, growing = false, countTokens, signal, onProgress, onNotice, conclude } = options;
  const { dataDir } = database;
  const clock = new ReplayClock(Date.now);
  const log =
    dataDir === undefined || growing ? memoryContextLog() : await openContextLog(dataDir, identity.session, config);
  const client = await ContextClient.create({
    address: database.address,
    roots: [tmpdir()],
    cwd: '/',
    filesystemId: NO_FILESYSTEM,
    agentFilesystemId: identity.filesystemId,
    policy: { ...DEFAULT_POLICY, window: config.window },
    strict: config.strict,
    shortIds: config.shortIds,
    track: false,
    soleWriter: true,
    // The replay itself checks who owns a session.
    shareSessions: true,
    keptUnits: KEPT_UNITS,
    what: options.what ?? 'a replay',
    clock: () => clock.now,
    // Without a journal, transactions need not wait for each other. After a kill, the next import
    // continues behind the steps in the database.
    journal: !growing,
    ...defined({ dataDir, onNotice, mask: await database.mask?.() }),
  });
  const engine = new ReplayEngine({
    client,
    clock,
    identity,
    config,
    log,
    growing,
    ...defined({ countTokens, signal, disk: options.disk, sessionOf: options.sessionOf }),
  });
  const losses = new LossList();
  options.onBegin?.({ client, engine, losses, clock });
  let bytes = 0;
  let entries = 0;
  const report = (): void => {
    const contexts = engine.sessions.reduce((sum, session) => sum + session.contexts.length, 0);
    const steps = engine.sessions.reduce((sum, { state }) => sum + state.seq, 0);
    onProgress?.({ entries, steps, contexts, bytes, total: source.size });
  };
  const importing = {
    onLoss: (loss: Loss) => losses.add(loss),
    onItem: (session: string) => engine.entries.addItem(session),
    onProgress: (done: number) => {
      bytes = done;
    },
    ...defined({ signal }),
  };
  try {
    for await (const entry of importRecording(source, importing)) {
      options.onEntry?.(entry);
      await engine.take(entry);
      entries += 1;
      // Limits the number of writes that wait for the database.
      if (client.status.waiting > MOST_WAITING) await client.backpressure(MOST_WAITING, DATABASE_WAIT_MS);
      if (entries % REPORT_EVERY_ENTRIES === 0) report();
    }
    await engine.finish();
    report();
    await client.backpressure(0, DATABASE_WAIT_MS);
    return await conclude({ client, engine, losses, clock });
  } finally {
    await client.close();
    await log.close();
  }
}
