import { basename } from 'node:path';
import { TOKENIZER } from '../../history/rebuild/tokenizer.js';
import { defined } from '../../values/defined.js';
import { openRecording } from '../recordings/open-recording.js';
import type { ReplayConfig } from '../replay/replay-config.js';
import type { ReplayDatabase } from '../replay/replay-database.js';
import { replayDigest } from '../replay/replay-digest.js';
import { recordingHash, replayIdentity } from '../replay/replay-identity.js';
import { type ReplayProgress, replayRecording } from '../replay/replay-recording.js';
import { makeReport } from './make-report.js';
import type { ReplayReport } from './replay-report.js';

/** Settings of the replay of one recording. */
export interface ReplayFileOptions {
  readonly config: ReplayConfig;
  /** Distinguishes several replays of a recording in one database; empty by default. */
  readonly variant?: string;
  /** The session to replay into; derived from the recording if omitted. */
  readonly into?: string;
  /** The hash of the recording, if the caller knows it. */
  readonly sha256?: string;
  readonly onProgress?: (progress: ReplayProgress) => void;
  readonly onNotice?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Replays a recording into a database and reports the result. The result does not depend on this
 * machine (decision H6). Recorded paths are not read. Times come from the recording, and ids from
 * its content.
 *
 * @throws {RecordingError} if the recording cannot be read
 * @throws {ReplayError} if the replay cannot continue
 * @throws {SessionError} from the client
 * @throws {XtdbError} from the database. Replayed steps stay, and the next replay into the same
 *   database continues after them
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
  const counter = config.tokens ? await import('../../review/ask/token-count.js') : undefined;
  return replayRecording(source, database, {
    config,
    identity,
    ...defined({ countTokens: counter?.countTokens, signal, onProgress, onNotice }),
    conclude: async ({ client, engine, losses, clock }) => {
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
    },
  });
}
