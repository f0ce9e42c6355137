import type { Entry, ResultEntry } from '../../projection/entry.js';
import type { Projection } from '../../projection/project-session.js';
import { type AmplifierMessage, callsIn, type MessageShape, messageOf } from './amplifier-message.js';

/** What is kept of a session for Amplifier beside its chat. */
export interface KeptShapes {
  /** By the step of the entry. */
  readonly bySeq: ReadonlyMap<number, MessageShape>;
  /** The system messages that are the prompt together, in their order. */
  readonly prompts: readonly MessageShape[];
  /** The last step before the list began anew; 0 where it never did. */
  readonly from: number;
}

/** An entry of the list, with what it says beside its text. */
export interface ListedEntry {
  readonly entry: Entry;
  readonly shape: MessageShape | undefined;
}

/** Results in the order in which their message made the calls, which need not be that of their arrival. */
function inCallOrder(results: readonly ResultEntry[], maker: MessageShape | undefined): readonly ResultEntry[] {
  if (maker === undefined || results.length < 2) return results;
  const places = new Map(callsIn(maker.message as unknown as AmplifierMessage).map(({ id }, i) => [id, i]));
  const placeOf = ({ native }: ResultEntry): number => places.get(native) ?? places.size;
  return results.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** The entries of a session that Amplifier's list has, since it began. */
export function listedEntries({ entries }: Pick<Projection, 'entries'>, { bySeq, from }: KeptShapes): readonly ListedEntry[] {
  const listed: ListedEntry[] = [];
  for (let at = 0; at < entries.length; at += 1) {
    const entry = entries[at] as Entry;
    const isPrompt = entry.kind === 'system' && entry.isPrompt;
    if (entry.kind === 'approval' || (!isPrompt && entry.seq <= from)) continue;
    if (isPrompt) {
      listed.push({ entry, shape: undefined });
      continue;
    }
    const shape = entry.kind === 'assistant' && entry.id.startsWith('c') ? undefined : bySeq.get(entry.seq);
    listed.push({ entry, shape });
    const results: ResultEntry[] = [];
    for (let next = entries[at + 1]; next?.kind === 'result'; next = entries[at + 1]) {
      results.push(next);
      at += 1;
    }
    for (const result of inCallOrder(results, shape)) listed.push({ entry: result, shape: bySeq.get(result.seq) });
  }
  return listed;
}

/** The prompt as the system messages that it was given as; as one where it was set in another way since. */
export function promptMessages(prompt: string, prompts: readonly MessageShape[]): readonly AmplifierMessage[] {
  const given = prompts.map(({ message }) => message as unknown as AmplifierMessage);
  const texts = given.map(({ content }) => (typeof content === 'string' ? content : ''));
  return texts.join('\n\n') === prompt ? given : [{ role: 'system', content: prompt }];
}

/** The whole list, as it was given. */
export function listedMessages(listed: readonly ListedEntry[], { prompts }: KeptShapes): readonly AmplifierMessage[] {
  return listed.flatMap(({ entry, shape }) =>
    entry.kind === 'system' && entry.isPrompt ? promptMessages(entry.text, prompts) : [messageOf(entry, shape)],
  );
}
