import type { LoopContext } from '../../src/extensions/loop/loop-context.js';
import type { LoopSession } from '../../src/extensions/loop/loop-session.js';
import type { ReportedMessage } from '../../src/harness/message-schema.js';
import { hashText } from '../../src/objects/hashes.js';

/** A message of the user; `id` is the harness's own. */
export const user = (text: string, id?: string): ReportedMessage => ({
  role: 'user',
  content: text,
  ...(id === undefined ? {} : { id }),
});

/** A message of the model; `id` is the harness's own. */
export const reply = (text: string, id?: string): ReportedMessage => ({ ...user(text, id), role: 'assistant' });

/** A call of the model, and its result. */
export const call = (
  id: string,
  name: string,
  args: Record<string, unknown>,
  output: string,
): readonly ReportedMessage[] => [
  { role: 'assistant', content: '', tool_calls: [{ id, name, arguments: args }] },
  { role: 'toolResult', tool_call_id: id, content: output },
];

/** Returns the request as a harness assembles it: one line for each message. */
export function requestOf(messages: readonly ReportedMessage[], context: LoopContext): readonly string[] {
  const { from, before, inserts, after, references } = context;
  const notes = new Map(inserts.map(({ index, message }) => [index, JSON.stringify(message)]));
  const lines = new Map(references.map(({ index, text }) => [index, text]));
  const own = messages
    .slice(from)
    .flatMap((message, i) => [lines.get(from + i) ?? JSON.stringify(message), notes.get(from + i) ?? []].flat());
  return [
    ...before.map((message) => JSON.stringify(message)),
    ...own,
    ...after.map((message) => JSON.stringify(message)),
  ];
}

/** Returns whether request `b` begins with the whole of `a`. */
export const isPrefix = (a: readonly string[], b: readonly string[]): boolean => a.every((line, i) => b[i] === line);

/**
 * Makes one model call of a harness that sends its list with the context around it. Waits until its
 * record is stored.
 */
export async function callModel(session: LoopSession, messages: readonly ReportedMessage[], more: object = {}) {
  const context = await session.context({ messages, system: 'be good', ...more });
  if (context === undefined) throw new Error('no context');
  const lines = requestOf(messages, context);
  const text = lines.join('\n');
  await session.handed({ sha256: hashText(text), chars: text.length, messages: lines.length });
  return { context, lines, text };
}
