import { canonicalJson } from '../objects/canonical-json.js';
import { quoted } from '../objects/errors.js';
import { hashText } from '../objects/hashes.js';
import type { ObjectId } from '../objects/ids.js';
import type { ChatMark } from '../session/session-fold.js';
import { defined } from '../values/defined.js';
import { blockText, bodyPlace } from './assemble.js';
import { type AssemblyRecord, RENDERER_VERSION, type SectionName, type SectionRecord } from './assembly-record.js';
import { AssemblyError, type AssemblyInput, type ChatEntry, type Layout, layoutOf } from './layout.js';
import { argsMark, type ObjectMetadata, referenceLine } from './metadata.js';
import { renderedValue } from './rendered-value.js';

/** One text of a message. In an active block, `id` is the object that it shows. */
export interface RenderedPart {
  readonly text: string;
  readonly id?: ObjectId;
}

/** One message for a model; pool and active content have the user's role. */
export interface RenderedMessage {
  readonly section: Exclude<SectionName, 'system'>;
  readonly role: string;
  readonly name?: string;
  readonly parts: readonly RenderedPart[];
}

/** A context as messages with parts (decision E3). */
export interface MessageAssembly {
  /** The system prompt; null if the session has none or an empty one. */
  readonly system: string | null;
  readonly messages: readonly RenderedMessage[];
  /**
   * The whole is hashed and measured as canonical JSON of `{system, messages}`. A section is hashed
   * and measured as the canonical JSON of its messages, but the system section as its text.
   */
  readonly record: AssemblyRecord;
}

function chatMessage({ message, references }: ChatEntry): readonly RenderedMessage[] {
  const { role, name, text } = message;
  const parts = [
    ...(text === '' ? [] : [{ text }]),
    ...(references.length === 0 ? [] : [{ text: references.join('\n') }]),
  ];
  return parts.length === 0 ? [] : [{ section: 'chat', role, ...defined({ name }), parts }];
}

function messagesOf({ pool, chat, blocks }: Layout): readonly RenderedMessage[] {
  const summary: RenderedMessage = { section: 'pool', role: 'user', parts: [{ text: pool.join('\n') }] };
  const content: RenderedMessage = {
    section: 'active',
    role: 'user',
    parts: blocks.map((block) => ({ id: block.id, text: blockText(block) })),
  };
  return [
    ...(pool.length === 0 ? [] : [summary]),
    ...chat.flatMap(chatMessage),
    ...(blocks.length === 0 ? [] : [content]),
  ];
}

const ASSISTANT = 'assistant';

/**
 * Returns the chat additions of some steps as messages, in order of the steps. The text and the
 * reference lines of calls are separate parts. Calls have full ids, which never change, so no part
 * of a request is rendered again.
 * @throws {AssemblyError} `unknown-object` for an unknown call
 */
export function recordedChat(
  marks: readonly ChatMark[],
  metadata: (id: ObjectId) => ObjectMetadata | undefined,
  described = false,
): readonly RenderedMessage[] {
  const lineOf = (id: ObjectId): string => {
    const call = metadata(id);
    if (call?.type === 'toolcall') return referenceLine(call, renderedValue) + (described ? argsMark(call) : '');
    throw new AssemblyError('unknown-object', `the chat refers to the tool call ${quoted(id)}, which is not known`);
  };
  const entries: { readonly message: ChatEntry['message']; readonly references: string[] }[] = [];
  for (const { message, call } of marks) {
    if (message !== undefined) entries.push({ message, references: [] });
    if (call === undefined) continue;
    const last = entries.at(-1);
    if (last?.message.role === ASSISTANT) last.references.push(lineOf(call));
    // The call's message is in an earlier request, or the call had none.
    else entries.push({ message: { role: ASSISTANT, text: '' }, references: [lineOf(call)] });
  }
  return entries.flatMap(chatMessage);
}

/** Returns the record of a section's text. */
export const sectionText = (text: string): Omit<SectionRecord, 'name'> => ({
  chars: text.length,
  sha256: hashText(text),
});

/**
 * Returns the record of each section of a message list: of the prompt's text, and of the canonical
 * JSON of a section's messages. A caller may pass a `recordOf` with a cache.
 */
export function sectionRecords(
  system: string | null,
  messages: readonly RenderedMessage[],
  recordOf = (own: readonly RenderedMessage[]): Omit<SectionRecord, 'name'> => sectionText(canonicalJson(own)),
): readonly SectionRecord[] {
  const sections = new Map<SectionName, RenderedMessage[]>();
  for (const one of messages) {
    const there = sections.get(one.section);
    if (there === undefined) sections.set(one.section, [one]);
    else there.push(one);
  }
  const records = [...sections].map(([name, own]): SectionRecord => ({ name, ...recordOf(own) }));
  return system === null ? records : [{ name: 'system', ...sectionText(system) }, ...records];
}

/**
 * Renders a context for models that take messages in parts. The system prompt is separate. Then, in
 * the order of §4.1, the pool is one part, and the chat's messages have their reference lines as a
 * separate part. Each active block is one part, so that no content can pass for another block.
 * Pure, with the errors of `assemble`.
 */
export function renderMessages(input: AssemblyInput): MessageAssembly {
  const layout = layoutOf(input);
  const system = layout.system === '' ? null : layout.system;
  const messages = messagesOf(layout);
  const whole = canonicalJson({ system, messages });
  const record: AssemblyRecord = {
    renderer: 'messages',
    layout: 'ssot',
    version: RENDERER_VERSION,
    options: { strict: input.options.strict, shortIds: input.options.shortIds },
    sections: sectionRecords(system, messages),
    blocks: layout.blocks.map((block) => bodyPlace(block, 0)),
    chars: whole.length,
    sha256: hashText(whole),
  };
  return { system, messages, record };
}
