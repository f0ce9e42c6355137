import type { ChatMark } from '../../session/session-fold.js';
import type { Entry, ResultEntry } from '../projection/entry.js';
import { nativeId } from '../projection/measured-entries.js';
import type { Projection } from '../projection/project-session.js';
import {
  type AmplifierMessage,
  callsIn,
  type NamedMessage,
  namedEntries,
  RESULT_ROLES,
  SYSTEM_ROLES,
} from './amplifier-message.js';
import { type GivenMessage, type MessageShape, messageOf, whole } from './kept-shape.js';

/** The data that Amplifier's list needs beside a session's chat. */
export interface KeptShapes {
  /** The stored fields of each message, by the step of its entry. */
  readonly bySeq: ReadonlyMap<number, MessageShape>;
  /** The system messages that form the prompt, in order. */
  readonly prompts: readonly MessageShape[];
  /** The last step before the list was cleared; 0 if it never was. */
  readonly from: number;
}

/** An entry of the list with the message fields that the chat lacks. */
export interface ListedEntry {
  readonly entry: Entry;
  readonly shape: MessageShape | undefined;
}

/** Sorts results in the order of their calls. They may have arrived in another order. */
function inCallOrder(results: readonly ResultEntry[], maker: MessageShape | undefined): readonly ResultEntry[] {
  if (maker === undefined || results.length < 2) return results;
  const places = new Map(callsIn(maker.message as unknown as AmplifierMessage).map(({ id }, i) => [id, i]));
  const placeOf = ({ native }: ResultEntry): number => places.get(native) ?? places.size;
  return results.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** Returns the entries of a session since Amplifier's list was last cleared. */
export function listedEntries(
  { entries }: Pick<Projection, 'entries'>,
  { bySeq, from }: KeptShapes,
): readonly ListedEntry[] {
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

/**
 * Returns the prompt as its original system messages. If something else has set the prompt since,
 * returns it as one message.
 */
export function promptMessages(prompt: string, prompts: readonly MessageShape[]): readonly GivenMessage[] {
  const given = prompts.map(({ message }) => message as unknown as AmplifierMessage);
  const texts = given.map(({ content }) => (typeof content === 'string' ? content : ''));
  return texts.join('\n\n') === prompt ? given.map(whole) : [whole({ role: 'system', content: prompt })];
}

/** Counts the messages of a list. */
export const countMessages = (listed: readonly ListedEntry[], { prompts }: KeptShapes): number =>
  listed.reduce(
    (sum, { entry }) =>
      sum + (entry.kind === 'system' && entry.isPrompt ? promptMessages(entry.text, prompts).length : 1),
    0,
  );

/** Returns the whole list as it was given. */
export function listedMessages(listed: readonly ListedEntry[], { prompts }: KeptShapes): readonly GivenMessage[] {
  return listed.flatMap(({ entry, shape }) =>
    entry.kind === 'system' && entry.isPrompt ? promptMessages(entry.text, prompts) : [messageOf(entry, shape)],
  );
}

/**
 * Returns true if a sent list and the chat have the same ids, up to the shorter length. The list is
 * then a retry. Leading system messages form the prompt and are not compared.
 */
export function isRunOf(sent: readonly NamedMessage[], marks: readonly ChatMark[]): boolean {
  const entries = sent.flatMap((one) => namedEntries(one, 0));
  const first = entries.findIndex(({ message }) => !SYSTEM_ROLES.has(message.role));
  const theirs = first < 0 ? [] : entries.slice(first);
  const ours = marks.flatMap(({ message, native, call }) => [
    ...(message === undefined ? [] : [{ native }]),
    ...(call === undefined ? [] : [{ call: nativeId(call) }]),
  ]);
  const isSame = ({ id, message }: NamedMessage, own: (typeof ours)[number] | undefined): boolean => {
    if (own === undefined) return true;
    if (!RESULT_ROLES.has(message.role)) return 'native' in own && own.native === id;
    return 'call' in own && own.call === (message.tool_call_id ?? own.call);
  };
  return theirs.length > 0 && ours.length > 0 && theirs.every((one, i) => isSame(one, ours[i]));
}
