import { LossList } from '../lab/recordings/import-counts.js';
import { importRecording } from '../lab/recordings/import-recording.js';
import { openRecording, RecordingError } from '../lab/recordings/open-recording.js';
import { defined } from '../values/defined.js';
import type { FoundFile } from './find-files.js';
import { asTitle, FactsCollector, type SessionFacts } from './session-facts.js';

/** The facts of a file, or the reason why it has none. */
export type ReadFacts = { readonly facts: SessionFacts } | { readonly reason: string };

/**
 * Reads a recording and returns its facts, completed by those that the agent keeps beside it. A
 * file that is no recording gives a reason.
 */
export async function readFacts({ home, path }: FoundFile, signal?: AbortSignal): Promise<ReadFacts> {
  const collector = new FactsCollector();
  const losses = new LossList();
  try {
    const source = await openRecording(path);
    const options = { onLoss: (loss: Parameters<LossList['add']>[0]) => losses.add(loss), ...defined({ signal }) };
    for await (const entry of importRecording(source, options)) collector.take(entry);
  } catch (error) {
    if (!(error instanceof RecordingError)) throw error;
    return { reason: error.code };
  }
  const found = collector.finish(losses.by_reason);
  if (found === undefined) return { reason: 'no session in it' };
  const { id, title, folder } = await home.beside(path);
  return {
    facts: {
      agent: home.agent,
      ...found,
      ...defined({ id, title: title === undefined ? undefined : asTitle(title), folder: found.folder ?? folder }),
    },
  };
}
