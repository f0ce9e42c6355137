import { hashText } from '../objects/hashes.js';
import type { SectionRecord } from './assembly-record.js';

type Json = Readonly<Record<string, unknown>>;

/**
 * A part of a request that an agent built itself: its settings, a tool, a block of its prompt, or a
 * block of a message. `text` leaves out cache marks, which move from request to request.
 */
export interface SentPart {
  readonly section: 'system' | 'chat';
  readonly text: string;
  /** The role of the message. */
  readonly role?: string;
  /** The text of a text block. */
  readonly said?: string;
  /** The agent's id of the call that the block makes or answers. */
  readonly call?: string;
}

const object = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
const list = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
const word = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Serialises a value without its cache marks. Lone surrogates become escapes. */
const jsonOf = (value: unknown): string =>
  JSON.stringify(value, (key, one: unknown) => (key === 'cache_control' ? undefined : one)) ?? '';

/** Members that hold the messages, the prompt and the tools, in all supported wire formats. */
const MESSAGES = ['messages', 'input', 'contents'] as const;
const PROMPTS = ['system', 'instructions', 'systemInstruction', 'system_instruction'] as const;
const OTHERS: ReadonlySet<string> = new Set([...MESSAGES, ...PROMPTS, 'tools', 'request']);

/** Claude Code begins its prompt with a block whose value differs in every request. */
const VARYING = /^x-anthropic-billing-header:.*$/s;

function promptPart(block: unknown): SentPart {
  const text = word(block) ?? word(object(block).text);
  const shown = text === undefined ? jsonOf(block) : text.replace(VARYING, 'x-anthropic-billing-header');
  return { section: 'system', text: shown };
}

/** The id of the call that a block or an item makes or answers. */
function callOf(block: Json): string | undefined {
  const { tool_use_id, call_id, id, type, functionCall, functionResponse } = block;
  const inner = object(functionCall ?? functionResponse);
  const own = typeof type === 'string' && /(?:tool_use|function|custom)/.test(type) ? word(id) : undefined;
  return word(tool_use_id) ?? word(call_id) ?? word(inner.id) ?? own;
}

function blockPart(role: string, block: unknown): SentPart {
  const read = object(block);
  const said = word(block) ?? (read.thought === true ? undefined : word(read.text));
  const call = callOf(read);
  const text = said === undefined ? `${role}: ${jsonOf(block)}` : `${role}: ${said}`;
  return {
    section: 'chat',
    role,
    text,
    ...(said === undefined ? {} : { said }),
    ...(call === undefined ? {} : { call }),
  };
}

function entryParts(entry: unknown): readonly SentPart[] {
  const message = object(entry);
  const role = word(message.role) ?? word(message.type) ?? 'user';
  if (typeof entry === 'string') return [blockPart('user', entry)];
  if (role === 'tool') return [{ ...blockPart(role, message.content), ...callPart(message.tool_call_id) }];
  const content = message.content ?? message.parts;
  // An item of the Responses API without content is a block itself.
  if (content === undefined && message.tool_calls === undefined) return [blockPart(role, entry)];
  const calls = list(message.tool_calls);
  return [...list(content), ...calls].map((block) => blockPart(role, block));
}

const callPart = (id: unknown): { readonly call?: string } => (typeof id === 'string' ? { call: id } : {});

/**
 * Splits the body of a request into its parts, in the order in which providers cache them: settings
 * and tools, the prompt, the messages. A body that is not a JSON object is one part.
 */
export function sentParts(body: string): readonly SentPart[] {
  let whole: Json;
  try {
    whole = object(JSON.parse(body));
  } catch {
    return [{ section: 'chat', text: body }];
  }
  // Code Assist wraps the request of Gemini.
  const read = { ...object(whole.request), ...whole };
  const settings = Object.fromEntries(Object.entries(read).filter(([name]) => !OTHERS.has(name)));
  return [
    { section: 'system', text: jsonOf(settings) },
    ...list(read.tools).map((tool): SentPart => ({ section: 'system', text: jsonOf(tool) })),
    ...PROMPTS.flatMap((name) => list(read[name])).map(promptPart),
    ...MESSAGES.flatMap((name) => list(read[name])).flatMap(entryParts),
  ];
}

/** Returns the sizes and hashes of the two sections of a body. */
export function sentSections(body: string): readonly { readonly record: SectionRecord; readonly text: string }[] {
  const parts = sentParts(body);
  return (['system', 'chat'] as const).flatMap((name) => {
    const text = parts.flatMap((part) => (part.section === name ? [part.text] : [])).join('\n');
    return text === '' ? [] : [{ record: { name, chars: text.length, sha256: hashText(text.toWellFormed()) }, text }];
  });
}
