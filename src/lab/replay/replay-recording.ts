import { basename } from 'node:path';
import type { ContextClient } from '../../client/session/context-client.js';
import { defined } from '../../values/defined.js';
import { LossList } from '../recordings/import-counts.js';
import type { OnItem, RecordingSource } from '../recordings/importer.js';
import type { RecordedEntry } from '../recordings/neutral-session.js';
import type { ClockRepairs, ReplayClock } from './replay-clock.js';
import type { ReplayConfig } from './replay-config.js';
import { type ReplayDigest, replayDigest } from './replay-digest.js';
import { type ContextLog, DATABASE_WAIT_MS, ReplayEngine } from './replay-engine.js';
import type { ReplayIdentity } from './replay-identity.js';

/** How far a replay is. */
export interface ReplayProgress {
  readonly entries: number;
  readonly steps: number;
  readonly contexts: number;
}

/** One recording on its way through the real client. */
interface ReplayWork {
  readonly client: ContextClient;
  readonly clock: ReplayClock;
  readonly source: Pick<RecordingSource, 'name' | 'size'>;
  readonly sha256: string;
  readonly identity: ReplayIdentity;
  readonly config: ReplayConfig;
  readonly variant: string;
  readonly log: ContextLog;
  /** Opens the recording; losses and items of its transcripts are reported as they are found. */
  readonly entries: (losses: LossList, onItem: OnItem) => AsyncIterable<RecordedEntry>;
  readonly onProgress?: (progress: ReplayProgress) => void;
  readonly signal?: AbortSignal;
}

/** A recording that was replayed to its end, for a report. */
export interface FinishedReplay {
  readonly recording: { readonly name: string; readonly sha256: string; readonly bytes: number };
  readonly config: ReplayConfig;
  readonly variant: string;
  readonly engine: ReplayEngine;
  readonly digest: ReplayDigest;
  readonly losses: LossList;
  readonly clock: ClockRepairs;
  /** The tokenizer that counted; undefined where tokens were not counted. */
  readonly tokenizer: string | undefined;
}

const TELL_EVERY = 64;
/** Steps and contexts that may be on their way to the database. */
const MOST_WAITING = 48;
/**
 * Replays a recording to its end [§6].
 * @throws {RecordingError} before the first entry
 * @throws {ReplayError}
 * @throws {SessionError}
 * @throws {XtdbError} what was replayed until then stays, and the next replay of the same recording into the same database goes on from
 *   there
 */
export async function replayRecording(work: ReplayWork): Promise<FinishedReplay> {
  const { client, clock, source, config, identity, log, onProgress, signal } = work;
  const counter = config.tokens ? await import('../../history/ask/token-count.js') : undefined;
  const engine = new ReplayEngine({
    client,
    clock,
    identity,
    config,
    log,
    ...(counter === undefined ? {} : { countTokens: (text: string) => counter.countTokens(text).tokens }),
    ...defined({ signal }),
  });
  const losses = new LossList();
  let entries = 0;
  const tell = (): void => {
    const contexts = engine.sessions.reduce((sum, session) => sum + session.contexts.length, 0);
    const steps = engine.sessions.reduce((sum, { driver }) => sum + driver.state.seq, 0);
    onProgress?.({ entries, steps, contexts });
  };
  for await (const entry of work.entries(losses, (session) => engine.tally.item(session))) {
    await engine.take(entry);
    entries += 1;
    // The database follows behind; it must not fall back without end.
    if (client.status.waiting > MOST_WAITING) await client.backpressure(MOST_WAITING, DATABASE_WAIT_MS);
    if (entries % TELL_EVERY === 0) tell();
  }
  await engine.finish();
  tell();
  await client.backpressure(0, DATABASE_WAIT_MS);
  const snapshot = await client.snapshot();
  const sessions = engine.sessions.map(({ driver, contexts }) => ({ id: driver.id, contexts, index: driver.state.sets.index }));
  return {
    recording: { name: basename(source.name), sha256: work.sha256, bytes: source.size },
    config,
    variant: work.variant,
    engine,
    digest: await replayDigest(snapshot, sessions),
    losses,
    clock: clock.repairs,
    tokenizer: counter?.TOKENIZER,
  };
}
