import { type MaskLoader, NO_MASK } from '../client/record-mask.js';
import { LossList } from '../lab/recordings/import-counts.js';
import { importRecording } from '../lab/recordings/import-recording.js';
import { openRecording, RecordingError } from '../lab/recordings/open-recording.js';
import { defined } from '../values/defined.js';
import { type ContextUse, UseCollector } from './context-use.js';
import type { FoundFile } from './find-files.js';
import { asTitle, FactsCollector, type SessionFacts } from './session-facts.js';

/** The facts of a recording, or the reason why they could not be read. */
export type ReadFacts = { readonly facts: SessionFacts } | { readonly reason: string };

/** The results of reading a recording once. */
export interface ReadRecording {
  readonly read: ReadFacts;
  /** The context use of its answers. Undefined if `withUse` was false. */
  readonly use: ContextUse | undefined;
}

/** Options for reading a recording. */
export interface ReadOptions {
  /** Whether to compute the context use as well, which doubles the time. */
  readonly withUse: boolean;
  readonly mask: MaskLoader;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads a recording and returns its facts, together with those that the agent keeps next to it. For
 * a file that is not a recording, returns the reason.
 */
export async function readRecording(
  { home, path }: FoundFile,
  { withUse, mask: openMask, signal }: ReadOptions,
): Promise<ReadRecording> {
  const mask = (await openMask()) ?? NO_MASK;
  const collector = new FactsCollector(mask);
  const used = withUse ? new UseCollector() : undefined;
  const losses = new LossList();
  try {
    const source = await openRecording(path);
    const options = { onLoss: (loss: Parameters<LossList['add']>[0]) => losses.add(loss), ...defined({ signal }) };
    for await (const entry of importRecording(source, options)) {
      collector.take(entry);
      used?.take(entry);
    }
  } catch (error) {
    if (!(error instanceof RecordingError)) throw error;
    return { read: { reason: error.code }, use: undefined };
  }
  const use = used?.finish();
  const found = collector.finish(losses.by_reason);
  if (found === undefined) return { read: { reason: 'no session in it' }, use };
  const { id, title, folder } = await home.beside(path);
  const facts = {
    agent: home.agent,
    ...found,
    ...defined({ id, title: title === undefined ? undefined : asTitle(title, mask), folder: found.folder ?? folder }),
  };
  return { read: { facts }, use };
}
