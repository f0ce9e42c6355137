import { quoted } from '../objects/errors.js';
import type { ObjectId } from '../objects/ids.js';
import type { Message, Turn } from '../objects/object-type.js';
import type { ObjectVersion } from '../objects/seal.js';
import { CodedError } from '../values/coded-error.js';
import type { ShownCall } from './edit-input.js';
import { argsMark, type NameOf, namesOf, type ObjectMetadata, poolLines, referenceLine } from './metadata.js';
import { renderedValue } from './rendered-value.js';

/** Why a context cannot be assembled. */
export type AssemblyErrorCode = 'unknown-object';

/**
 * Thrown if the parts of a context do not match [§4]: the chat refers to a call that the pool
 * lacks.
 */
export class AssemblyError extends CodedError<AssemblyErrorCode> {
  override readonly name = 'AssemblyError';
}

/** The harness's choices for the rendering. */
export interface AssemblyOptions {
  /** Follows §4.1 literally where a ruling departs from it (decision E8). */
  readonly strict: boolean;
  /** Uses the shortest unique prefixes instead of full ids (decision D6). */
  readonly shortIds: boolean;
  /** Shows the arguments of calls in layout `epoch` (divergence E9). Absent in older contexts. */
  readonly described?: boolean;
  /**
   * Shows the text that an active edit wrote, in layout `epoch` (divergence E9). Absent in older
   * contexts.
   */
  readonly inputs?: boolean;
  /** The version of the guide before our first text, in layout `epoch`. Absent: none. */
  readonly guide?: number;
}

/** An active object. Null content (a deleted file that is still active) differs from empty text. */
export interface ActiveObject {
  readonly metadata: ObjectMetadata;
  readonly content: string | null;
  /** The tool and arguments of a call. */
  readonly call?: ShownCall;
}

/** Returns an active object by its metadata and version. */
export const activeObject = (metadata: ObjectMetadata, version: ObjectVersion): ActiveObject => ({
  metadata,
  content: version.content,
  ...(version.type === 'toolcall' ? { call: version } : {}),
});

/**
 * The input of a context [§4.1]: the pool in insertion order, active objects in activation order
 * (decision E5).
 */
export interface AssemblyInput {
  /** Null if the harness has set none. */
  readonly systemPrompt: string | null;
  readonly pool: readonly ObjectMetadata[];
  readonly turns: readonly Turn[];
  readonly active: readonly ActiveObject[];
  readonly options: AssemblyOptions;
}

/** A chat message and the lines of its tool calls. */
export interface ChatEntry {
  readonly message: Message;
  readonly references: readonly string[];
}

/** A block of active content: its header line and its body; null if it has no body. */
export interface Block {
  readonly id: ObjectId;
  readonly header: string;
  readonly body: string | null;
}

/** The parts of the four sections, input of a renderer. */
export interface Layout {
  readonly system: string;
  readonly pool: readonly string[];
  readonly chat: readonly ChatEntry[];
  readonly blocks: readonly Block[];
}

/** All sections but the chat, and the helpers for rendering it. */
export interface Frame extends Omit<Layout, 'chat'> {
  /** Whether a call's line ends with its arguments. */
  readonly described?: boolean;
  readonly nameOf: NameOf;
  /** Returns the metadata of an object in the pool. */
  readonly metadata: (id: ObjectId) => ObjectMetadata | undefined;
}

/**
 * Returns the tool calls that a message refers to.
 * @throws {AssemblyError} `unknown-object` if the pool lacks one
 */
function callsOf(message: Message, { metadata }: Pick<Frame, 'metadata'>): readonly ObjectMetadata<'toolcall'>[] {
  return (message.toolcall_refs ?? []).map((id) => {
    const call = metadata(id);
    if (call?.type !== 'toolcall')
      throw new AssemblyError(
        'unknown-object',
        `the chat refers to the tool call ${quoted(id)}, which the pool does not hold`,
      );
    return call;
  });
}

/** Returns a message with the lines of its tool calls. Throws like `callsOf`. */
export function chatEntry(message: Message, frame: Pick<Frame, 'metadata' | 'nameOf' | 'described'>): ChatEntry {
  const { nameOf, described = false } = frame;
  const lines = callsOf(message, frame).map((call) => referenceLine(call, nameOf) + (described ? argsMark(call) : ''));
  return { message, references: lines };
}

/**
 * Returns the active file that a whole read repeats verbatim; undefined if there is none
 * (divergence E4).
 */
export function repeatedFile(
  metadata: ObjectMetadata,
  active: ReadonlyMap<ObjectId, ObjectMetadata>,
): ObjectId | undefined {
  if (metadata.type !== 'toolcall' || !metadata.wholeRead || metadata.contentHash === null) return undefined;
  const [ref, ...others] = metadata.fileRefs;
  const file = ref === undefined || others.length > 0 ? undefined : active.get(ref);
  return file?.type === 'file' && file.state === 'indexed' && file.contentHash === metadata.contentHash
    ? file.id
    : undefined;
}

interface BlockContext {
  readonly active: ReadonlyMap<ObjectId, ObjectMetadata>;
  readonly nameOf: NameOf;
  readonly strict: boolean;
}

/** Returns the block of an active object. */
export function blockOf({ metadata, content }: ActiveObject, { active, nameOf, strict }: BlockContext): Block {
  const { id } = metadata;
  const header = `ACTIVE_CONTENT id=${nameOf(id)}`;
  const file = strict ? undefined : repeatedFile(metadata, active);
  if (file !== undefined) return { id, header, body: `file_ref id=${nameOf(file)}` };
  // A deleted file stays in the active set (decision C3) without content. An empty line below its
  // header would look like an empty file.
  return { id, header, body: metadata.contentHash === null ? null : content };
}

function* idsOf({ pool, active }: AssemblyInput): Iterable<ObjectId> {
  for (const { id } of pool) yield id;
  for (const { metadata } of active) yield metadata.id;
}

/**
 * Lays out all sections of a context but the chat [§4.1]. `nameOf` names the objects. Default: the
 * names that the options choose.
 */
export function frameOf(input: AssemblyInput, nameOf: NameOf = namesOf(idsOf(input), input.options.shortIds)): Frame {
  const { systemPrompt, pool, active, options } = input;
  const { strict } = options;
  const pooled = new Map(pool.map((metadata) => [metadata.id, metadata]));
  const context = { active: new Map(active.map(({ metadata }) => [metadata.id, metadata])), nameOf, strict };
  return {
    nameOf,
    metadata: (id) => pooled.get(id),
    system: systemPrompt ?? '',
    pool: poolLines(pool, nameOf, options),
    blocks: active.map((object) => blockOf(object, context)),
  };
}

/**
 * Lays out the four sections of a context [§4.1].
 * @throws {AssemblyError} `unknown-object` if the pool lacks a call of the chat
 */
export function layoutOf(input: AssemblyInput): Layout {
  const frame = frameOf(input);
  const { system, pool, blocks } = frame;
  return {
    system,
    pool,
    blocks,
    chat: input.turns.flatMap(({ messages }) => messages.map((message) => chatEntry(message, frame))),
  };
}

/**
 * Returns the lines of a chat message: its text, if any, and its tool calls. A message's name is
 * not shown (decision E1).
 */
export function chatLines({ message, references }: ChatEntry): readonly string[] {
  return message.text === '' ? references : [`${renderedValue(message.role)}: ${message.text}`, ...references];
}

interface TurnText {
  readonly text: string;
  /** The tool calls whose lines it contains. */
  readonly calls: readonly ObjectMetadata[];
}

/**
 * Cached turns with full ids. A session keeps its closed turns unchanged, and every context
 * contains them all.
 */
const known = new WeakMap<Turn, TurnText>();

function turnText(turn: Turn, frame: Frame, shortIds: boolean): string {
  const before = shortIds ? undefined : known.get(turn);
  if (before?.calls.every((call) => frame.metadata(call.id) === call)) return before.text;
  const { messages } = turn;
  const text = messages.flatMap((message) => chatLines(chatEntry(message, frame))).join('\n');
  if (!shortIds) known.set(turn, { text, calls: messages.flatMap((message) => callsOf(message, frame)) });
  return text;
}

/**
 * Returns the chat of a context as text: the lines of every message, turn by turn. A closed turn is
 * rendered once, not for each context of a long session.
 * @throws {AssemblyError} `unknown-object`
 */
export function chatText({ turns, options }: AssemblyInput, frame: Frame): string {
  return turns
    .map((turn) => turnText(turn, frame, options.shortIds))
    .filter((text) => text !== '')
    .join('\n');
}
