import type { EntryQueue, HeldEntry } from '../entries/entry-queue.js';
import { idAt, momentOf, numberAt, objectAt, textAt } from '../entries/fields.js';
import type { OpaqueContent } from '../entries/opaque-content.js';
import type { OnLoss } from '../importer.js';
import type { JsonObject } from '../json/json-text.js';
import type { EntryOf } from '../neutral-session.js';

type Usage = NonNullable<EntryOf<'message'>['usage']>;

/** One answer of the model: the recording spreads it over several records, each with one block of it. */
interface Answer {
  readonly id: string;
  readonly held: HeldEntry<'message'>;
  readonly texts: string[];
  readonly thoughts: string[];
}

/** What is remembered of one session of the file. */
export interface ClaudeSession {
  readonly id: string;
  readonly head: HeldEntry<'session'>;
  cwd: string | undefined;
  readonly subagent: boolean;
  model: string | undefined;
  answer: Answer | undefined;
  /** The prompt of the person under each record, for telling where the conversation went back. */
  readonly prompts: Map<string, string>;
  /** Calls without a result: their tools. */
  readonly calls: Map<string, string>;
  /** Calls that began sub-agents: the call by its prompt. */
  readonly spawns: Map<string, string>;
  /** A compaction whose summary is still to come. */
  boundary: EntryOf<'compaction'> | undefined;
  /** Whether anything was said in it. */
  begun: boolean;
}

/** A record, the session that it belongs to, and where it stands. */
export interface ClaudeRecord {
  readonly session: ClaudeSession;
  readonly record: JsonObject;
  readonly place: string;
}

/** What the records of a file are read with. */
export interface ClaudeContext {
  readonly queue: EntryQueue;
  readonly opaque: OpaqueContent;
  readonly onLoss: OnLoss;
}

/** What all entries of a record have. */
export function commonOf({ session, record, place }: ClaudeRecord) {
  return {
    session: session.id,
    place,
    at: momentOf(record.timestamp),
    native_id: idAt(record, 'uuid'),
    parent_id: idAt(record, 'parentUuid') ?? idAt(record, 'logicalParentUuid'),
    ...(objectAt(record, 'forkedFrom') === undefined ? {} : { copied: true }),
  };
}

/** Tokens of an answer as the provider counted them. */
export function usageOf(usage: JsonObject | undefined): Usage | undefined {
  if (usage === undefined) return undefined;
  const counted = {
    input: numberAt(usage, 'input_tokens'),
    output: numberAt(usage, 'output_tokens'),
    cache_read: numberAt(usage, 'cache_read_input_tokens'),
    cache_write: numberAt(usage, 'cache_creation_input_tokens'),
  };
  return Object.values(counted).some((count) => count !== undefined) ? counted : undefined;
}

/** The end of an answer: nothing of it comes any more. */
export function closeAnswer(session: ClaudeSession): void {
  session.answer?.held.release();
  session.answer = undefined;
}

const SYNTHETIC = '<synthetic>';

function noteModel({ queue }: ClaudeContext, at: ClaudeRecord): void {
  const { session, record } = at;
  const model = textAt(objectAt(record, 'message'), 'model');
  if (model === undefined || model === SYNTHETIC || model === session.model) return;
  const first = session.model === undefined;
  session.model = model;
  if (first && session.head.update({ model })) session.head.release();
  else queue.push({ kind: 'event', ...commonOf(at), name: 'model-change', text: model });
}

/** The answer that a record of the assistant belongs to: the one under way, or a new one. */
export function answerOf(context: ClaudeContext, at: ClaudeRecord): Answer {
  const { session, record, place } = at;
  const message = objectAt(record, 'message');
  const id = idAt(message, 'id') ?? idAt(record, 'uuid') ?? place;
  const usage = usageOf(objectAt(message, 'usage'));
  if (session.answer?.id === id) {
    if (usage !== undefined) session.answer.held.update({ usage });
    return session.answer;
  }
  closeAnswer(session);
  noteModel(context, at);
  const harness = record.isApiErrorMessage === true || textAt(message, 'model') === SYNTHETIC;
  const held = context.queue.hold<'message'>({
    kind: 'message',
    ...commonOf(at),
    role: 'assistant',
    origin: harness ? 'harness' : 'model',
    text: '',
    usage,
  });
  session.answer = { id, held, texts: [], thoughts: [] };
  return session.answer;
}

/** Adds a text or a thought to an answer; a message of its own where the answer has gone out already. */
export function addToAnswer(
  { queue }: ClaudeContext,
  at: ClaudeRecord,
  answer: Answer,
  { text, thinking }: { readonly text?: string; readonly thinking?: string },
): void {
  if (text !== undefined) answer.texts.push(text);
  if (thinking !== undefined) answer.thoughts.push(thinking);
  const thoughts = answer.thoughts.length === 0 ? {} : { thinking: answer.thoughts.join('\n') };
  if (answer.held.update({ text: answer.texts.join('\n'), ...thoughts })) return;
  queue.push({ kind: 'message', ...commonOf(at), role: 'assistant', origin: 'model', text: text ?? '', thinking });
}

/** A compaction goes out without a summary where the conversation goes on before one came. */
export function closeBoundary({ queue }: ClaudeContext, session: ClaudeSession): void {
  if (session.boundary !== undefined) queue.push(session.boundary);
  session.boundary = undefined;
}
