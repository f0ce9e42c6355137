import { tmpdir } from 'node:os';
import { basename } from 'node:path';
import { ContextClient } from '../../client/session/context-client.js';
import { TOKENIZER } from '../../history/ask/tokenizer.js';
import { filesystemId } from '../../objects/ids.js';
import { DEFAULT_POLICY } from '../../session/step-policy.js';
import { defined } from '../../values/defined.js';
import { LossList } from '../recordings/import-counts.js';
import { importRecording } from '../recordings/import-recording.js';
import type { Loss } from '../recordings/importer.js';
import { openRecording } from '../recordings/open-recording.js';
import { memoryContextLog, openContextLog } from '../replay/context-log.js';
import { ReplayClock } from '../replay/replay-clock.js';
import type { ReplayConfig } from '../replay/replay-config.js';
import type { ReplayDatabase } from '../replay/replay-database.js';
import { replayDigest } from '../replay/replay-digest.js';
import { DATABASE_WAIT_MS, ReplayEngine } from '../replay/replay-engine.js';
import { recordingHash, replayIdentity } from '../replay/replay-identity.js';
import { makeReport } from './make-report.js';
import type { ReplayReport } from './replay-report.js';

/** The progress of a replay, in bytes read and total bytes of the recording. */
interface ReplayProgress {
  readonly entries: number;
  readonly steps: number;
  readonly contexts: number;
  readonly bytes: number;
  readonly total: number;
}

/** Settings of the replay of one recording. */
export interface ReplayFileOptions {
  readonly config: ReplayConfig;
  /** Distinguishes replays of one recording in one database; empty for the plain replay. */
  readonly variant?: string;
  /** The target session; derived from the recording if omitted. */
  readonly into?: string;
  /** The hash of the recording, if the caller knows it. */
  readonly sha256?: string;
  readonly onProgress?: (progress: ReplayProgress) => void;
  readonly onNotice?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** A filesystem id that no recording has, so that the client never reads a recorded path. */
const NO_FILESYSTEM = filesystemId('replay-none');

/**
 * The client's text cache. A replay reads back little except active content and its latest writes.
 */
const KEPT_UNITS = 4 * 1_048_576;
const REPORT_EVERY_ENTRIES = 64;
/** Maximum number of steps and contexts in flight to the database. */
const MOST_WAITING = 48;

/**
 * Replays a recording into a database and reports the result. No data of this machine enters it
 * (decision H6): recorded paths are not read, the clock is the recording's, and its content gives
 * the ids.
 *
 * @throws {RecordingError} if the recording cannot be read
 * @throws {ReplayError} if the replay cannot continue
 * @throws {SessionError} from the client
 * @throws {XtdbError} from the database. Replayed steps stay; the next replay into the same
 * database resumes there
 */
export async function replayFile(
  path: string,
  database: ReplayDatabase,
  options: ReplayFileOptions,
): Promise<ReplayReport> {
  const { config, variant = '', into, signal, onProgress, onNotice } = options;
  const source = await openRecording(path);
  const sha256 = options.sha256 ?? (await recordingHash(source, signal));
  const identity = replayIdentity(sha256, variant, into);
  const { dataDir } = database;
  const clock = new ReplayClock(Date.now());
  const log = dataDir === undefined ? memoryContextLog() : await openContextLog(dataDir, identity.session, config);
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
    what: 'a replay',
    clock: () => clock.now,
    ...defined({ dataDir, onNotice }),
  });
  const counter = config.tokens ? await import('../../history/ask/token-count.js') : undefined;
  const engine = new ReplayEngine({
    client,
    clock,
    identity,
    config,
    log,
    ...defined({ countTokens: counter?.countTokens, signal }),
  });
  const losses = new LossList();
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
      await engine.take(entry);
      entries += 1;
      // Back pressure: bounds the database's lag.
      if (client.status.waiting > MOST_WAITING) await client.backpressure(MOST_WAITING, DATABASE_WAIT_MS);
      if (entries % REPORT_EVERY_ENTRIES === 0) report();
    }
    await engine.finish();
    report();
    await client.backpressure(0, DATABASE_WAIT_MS);
    const sessions = engine.sessions.map(({ id, contexts, state }) => ({ id, contexts, index: state.sets.index }));
    const digest = await replayDigest(await client.snapshot(), sessions);
    const recording = { name: basename(path), sha256, bytes: source.size };
    return makeReport({
      recording,
      config,
      variant,
      engine,
      digest,
      losses,
      clock: clock.repairs,
      tokenizer: counter && TOKENIZER,
    });
  } finally {
    await client.close();
    await log.close();
  }
}
