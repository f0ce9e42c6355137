import { tmpdir } from 'node:os';
import { ContextClient } from '../../client/session/context-client.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import { filesystemId } from '../../objects/ids.js';
import { DEFAULT_POLICY } from '../../session/step-policy.js';
import { defined } from '../../values/defined.js';
import { importRecording } from '../recordings/import-recording.js';
import { openRecording } from '../recordings/open-recording.js';
import { memoryContextLog, openContextLog } from '../replay/context-log.js';
import { ReplayClock } from '../replay/replay-clock.js';
import type { ReplayConfig } from '../replay/replay-config.js';
import type { ReplayDatabase } from '../replay/replay-database.js';
import { recordingHash, replayIdentity } from '../replay/replay-identity.js';
import { type ReplayProgress, replayRecording } from '../replay/replay-recording.js';
import { makeReport } from './make-report.js';
import type { ReplayReport } from './replay-report.js';

/** How one recording is replayed. */
export interface ReplayFileOptions {
  readonly config: ReplayConfig;
  /** Distinguishes replays of one recording in one database; empty for the plain replay. */
  readonly variant?: string;
  /** The session to replay into; one derived from the recording where absent. */
  readonly into?: string;
  /** The hash of the recording, where the caller has it already. */
  readonly sha256?: string;
  readonly onProgress?: (progress: ReplayProgress & { readonly bytes: number; readonly total: number }) => void;
  readonly onNotice?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** The filesystem of this machine for a client that must never reach a recorded path: no recording has it. */
const NO_FILESYSTEM = filesystemId('replay-none');

/** How much text the client caches: a replay reads back little but what is active and what it has just written. */
const KEPT_UNITS = 4 * 1_048_576;

/**
 * Replays the recording at a path into a database and reports the result. Nothing of this machine gets into it: no recorded path is looked up here, the clock
 * is the recording's, and ids are derived from its content (decision H6).
 * @throws {RecordingError} – the recording cannot be read
 * @throws {ReplayError} – the replay cannot go on
 * @throws {SessionError} – the client refuses a step
 * @throws {XtdbError} – the database fails
 */
export async function replayFile(path: string, database: ReplayDatabase, options: ReplayFileOptions): Promise<ReplayReport> {
  const { config, variant = '', into, signal, onProgress, onNotice } = options;
  const source = await openRecording(path);
  const sha256 = options.sha256 ?? (await recordingHash(source, signal));
  const identity = replayIdentity(sha256, variant, into);
  const { dataDir } = database;
  const clock = new ReplayClock(Date.now());
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
    keptUnits: KEPT_UNITS,
    what: 'a replay',
    clock: () => clock.now,
    ...defined({ dataDir, onNotice }),
  });
  const log = dataDir === undefined ? memoryContextLog() : await openContextLog(dataDir, identity.session, hashText(canonicalJson(config)));
  let bytes = 0;
  try {
    const finished = await replayRecording({
      client,
      clock,
      source,
      sha256,
      identity,
      config,
      variant,
      log,
      entries: (losses, onItem) =>
        importRecording(source, {
          onLoss: (loss) => losses.add(loss),
          onItem,
          onProgress: (done) => {
            bytes = done;
          },
          ...defined({ signal }),
        }),
      onProgress: (progress) => onProgress?.({ ...progress, bytes, total: source.size }),
      ...defined({ signal }),
    });
    return makeReport(finished);
  } finally {
    await client.close();
    await log.close();
  }
}
