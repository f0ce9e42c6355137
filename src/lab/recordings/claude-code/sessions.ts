import { defined } from '../../../values/defined.js';
import type { JsonObject } from '../../../values/json-object.js';
import type { EntryQueue, HeldEntry } from '../entries/entry-queue.js';
import { idAt, momentOf, objectAt, objectsAt, textAt, usageAt } from '../entries/fields.js';
import type { OnLoss, OpaqueContent } from '../importer.js';
import type { EntryOf } from '../neutral-session.js';

/** One answer of the model. The recording has a record for each block of it. */
interface Answer {
  readonly id: string;
  readonly held: HeldEntry<'message'>;
  readonly texts: string[];
  readonly thoughts: string[];
  /** Whether the answer has a call. */
  calls: boolean;
  /** Whether the entry left the queue early, because the file's current end was reached. */
  rested: boolean;
}

/** A result recorded before its call. */
interface EarlyResult {
  readonly read: () => void;
  /** Number of answers that have begun since this result. */
  answers: number;
}

/** The state of one of the sessions in a file. */
export interface ClaudeSession {
  readonly id: string;
  readonly head: HeldEntry<'session'>;
  cwd: string | undefined;
  readonly subagent: boolean;
  model: string | undefined;
  answer: Answer | undefined;
  /**
   * The prompt that follows each record, by id. A second prompt after the same record is a rewind.
   */
  readonly prompts: Map<string, string>;
  /** The tools of calls that have no result yet, by call id. */
  readonly calls: Map<string, string>;
  /**
   * Results whose calls have not been read yet, by call id. Claude Code writes the result first if
   * a call finishes at once.
   */
  readonly early: Map<string, EarlyResult>;
  /**
   * Results since the model's last answer, by call id. Claude Code may still replace their texts.
   */
  readonly unanswered: Map<string, HeldEntry<'result'>>;
  /** Ids of the calls whose results were replaced. */
  readonly replaced: Set<string>;
  /** The id of each result's record, by call id. */
  readonly resultRecords: Map<string, string>;
  /** The id of the call that started a sub-agent, by the sub-agent's prompt. */
  readonly spawns: Map<string, string>;
  /** A compaction whose summary has not been read yet. */
  boundary: EntryOf<'compaction'> | undefined;
  /** Whether the session has a message. */
  begun: boolean;
  /** Whether the session's records name their predecessors. */
  chained: boolean;
}

/** A record with its session and its place in the file. */
export interface ClaudeRecord {
  readonly session: ClaudeSession;
  readonly record: JsonObject;
  readonly place: string;
}

/** The state that all readers of a file's records share. */
export interface ClaudeContext {
  readonly queue: EntryQueue;
  readonly opaque: OpaqueContent;
  readonly onLoss: OnLoss;
}

/** Returns the fields that all entries of a record share. */
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

/**
 * Reads the early results for which `isOver` is true, because their calls are no longer expected.
 */
export function readEarly({ early }: ClaudeSession, isOver: (result: EarlyResult) => boolean): void {
  for (const [call, result] of early) {
    if (!isOver(result)) continue;
    early.delete(call);
    result.read();
  }
}

/** Ends the current answer. No later record is added to it. */
export function closeAnswer(session: ClaudeSession): void {
  session.answer?.held.release();
  session.answer = undefined;
}

/**
 * Releases entries that may still change, when the current end of the file was reached. Keeps an
 * answer that has only thoughts, because its text will follow. Also keeps a session entry without a
 * working directory.
 */
export function restSession({ answer, head, cwd, unanswered }: ClaudeSession): void {
  if (cwd !== undefined) head.release();
  for (const result of unanswered.values()) result.release();
  if (answer === undefined || (answer.texts.length === 0 && !answer.calls)) return;
  answer.rested = true;
  answer.held.release();
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

/** Returns the answer that an assistant's record belongs to: the current one, or a new one. */
export function answerOf(context: ClaudeContext, at: ClaudeRecord): Answer {
  const { session, record, place } = at;
  const message = objectAt(record, 'message');
  const id = idAt(message, 'id') ?? idAt(record, 'uuid') ?? place;
  const reported = objectAt(message, 'usage');
  const counts = usageAt(reported, {
    input: 'input_tokens',
    output: 'output_tokens',
    cache_read: 'cache_read_input_tokens',
    cache_write: 'cache_creation_input_tokens',
  });
  const hour = usageAt(objectAt(reported, 'cache_creation'), { cache_write_hour: 'ephemeral_1h_input_tokens' });
  const usage = counts === undefined || !hour?.cache_write_hour ? counts : { ...counts, ...hour };
  if (session.answer?.id === id) {
    if (usage !== undefined) session.answer.held.update({ usage });
    return session.answer;
  }
  closeAnswer(session);
  readEarly(session, ({ answers }) => answers > 0);
  for (const result of session.early.values()) result.answers += 1;
  for (const result of session.unanswered.values()) result.release();
  session.unanswered.clear();
  noteModel(context, at);
  const origin = record.isApiErrorMessage === true || textAt(message, 'model') === SYNTHETIC ? 'harness' : 'model';
  const held = context.queue.hold<'message'>({
    kind: 'message',
    ...commonOf(at),
    role: 'assistant',
    origin,
    text: '',
    usage,
  });
  session.answer = { id, held, texts: [], thoughts: [], calls: false, rested: false };
  return session.answer;
}

/**
 * Adds a text or a thought to the answer of a record. If the answer has left the queue, adds a new
 * message instead.
 */
export function addToAnswer(
  context: ClaudeContext,
  at: ClaudeRecord,
  { text, thinking }: { readonly text?: string; readonly thinking?: string },
): void {
  const answer = answerOf(context, at);
  if (text !== undefined) answer.texts.push(text);
  if (thinking !== undefined) answer.thoughts.push(thinking);
  const thoughts = answer.thoughts.length === 0 ? {} : { thinking: answer.thoughts.join('\n') };
  if (answer.held.update({ text: answer.texts.join('\n'), ...thoughts })) return;
  // Later thoughts of an answer that left the queue early are dropped.
  if (answer.rested && text === undefined) return;
  context.queue.push({
    kind: 'message',
    ...commonOf(at),
    role: 'assistant',
    origin: 'model',
    text: text ?? '',
    thinking,
  });
}

/**
 * Queues the pending compaction without a summary, because the conversation continued before one
 * was recorded.
 */
export function closeBoundary({ queue }: ClaudeContext, session: ClaudeSession): void {
  if (session.boundary !== undefined) queue.push(session.boundary);
  session.boundary = undefined;
}

/** Returns a record's prompt, which identifies the call that started a sub-agent. */
function promptText(record: JsonObject): string {
  const message = objectAt(record, 'message');
  const blocks = objectsAt(message, 'content').map((block) => textAt(block, 'text') ?? '');
  return textAt(message, 'content') ?? blocks.join('\n');
}

/**
 * The sessions in one file: the conversation and its sub-agents. A sub-agent is recorded as a side
 * chain, as the progress of its call, or in a separate file.
 */
export class ClaudeSessions {
  readonly #queue: EntryQueue;
  readonly #fallbackId: string;
  readonly #byId = new Map<string, ClaudeSession>();
  /** The sub-agent of each side-chain record without an agent id, by the id of the record. */
  readonly #chains = new Map<string, ClaudeSession>();
  #main: ClaudeSession | undefined;
  #mainId: string | undefined;

  /** `fallbackId` is the session's id if the records have none. */
  constructor(queue: EntryQueue, fallbackId: string) {
    this.#queue = queue;
    this.#fallbackId = fallbackId;
  }

  /** The main conversation; undefined before its first record. */
  get main(): ClaudeSession | undefined {
    return this.#main;
  }

  all(): Iterable<ClaudeSession> {
    return this.#byId.values();
  }

  /** Returns the session that a record belongs to. */
  of(record: JsonObject, place: string): ClaudeSession {
    const id = idAt(record, 'sessionId');
    this.#mainId ??= id;
    if (record.isSidechain === true) return this.#sidechain(record, place);
    const main = this.#conversation(record, place);
    main.chained ||= idAt(record, 'parentUuid') !== undefined;
    if (main.cwd === undefined) this.#complete(main, record);
    if (id !== undefined && id !== this.#mainId) {
      // When a session is resumed, it continues in the same file under another id.
      this.#mainId = id;
      this.#queue.push({
        kind: 'event',
        session: main.id,
        place,
        at: momentOf(record.timestamp),
        name: 'resumed',
        text: id,
      });
    }
    return main;
  }

  /** Returns the session of a sub-agent that is recorded as the progress of a call. */
  subagent(
    parent: ClaudeSession,
    agent: string,
    from: { readonly record: JsonObject; readonly place: string },
  ): ClaudeSession {
    const id = `${parent.id}/agent-${agent}`;
    const call = idAt(from.record, 'parentToolUseID');
    return this.#byId.get(id) ?? this.#open(id, from, { native_id: parent.id, relation: 'subagent', call_id: call });
  }

  /**
   * Sets the session's working directory from the first record that has one. The first records of a
   * file may lack it.
   */
  #complete(session: ClaudeSession, record: JsonObject): void {
    const cwd = textAt(record, 'cwd');
    if (cwd === undefined) return;
    if (session.head.update({ cwd, ...defined({ agent_version: textAt(record, 'version') }) })) session.cwd = cwd;
  }

  #conversation(record: JsonObject, place: string): ClaudeSession {
    if (this.#main !== undefined) return this.#main;
    const origin = idAt(objectAt(record, 'forkedFrom'), 'sessionId');
    const id = this.#mainId ?? this.#fallbackId;
    const parent = origin === undefined || origin === id ? undefined : { native_id: origin, relation: 'fork' as const };
    this.#main = this.#open(id, { record, place }, parent);
    return this.#main;
  }

  #sidechain(record: JsonObject, place: string): ClaudeSession {
    const main = this.#main?.id ?? this.#mainId ?? this.#fallbackId;
    const agent = idAt(record, 'agentId');
    const uuid = idAt(record, 'uuid') ?? place;
    const known =
      agent === undefined
        ? this.#chains.get(idAt(record, 'parentUuid') ?? '')
        : this.#byId.get(`${main}/agent-${agent}`);
    const prompt = promptText(record);
    const call = this.#main?.spawns.get(prompt);
    if (known === undefined && call !== undefined) this.#main?.spawns.delete(prompt);
    const parent = { native_id: main, relation: 'subagent' as const, call_id: call };
    const session = known ?? this.#open(`${main}/agent-${agent ?? uuid}`, { record, place }, parent);
    if (agent === undefined) this.#chains.set(uuid, session);
    return session;
  }

  #open(
    id: string,
    { record, place }: { readonly record: JsonObject; readonly place: string },
    parent: EntryOf<'session'>['parent'],
  ): ClaudeSession {
    const cwd = textAt(record, 'cwd');
    const head = this.#queue.hold<'session'>({
      kind: 'session',
      format: 'claude-code',
      native_id: id,
      place,
      agent: 'Claude Code',
      agent_version: textAt(record, 'version'),
      cwd,
      started_at: momentOf(record.timestamp),
      parent,
    });
    const session: ClaudeSession = {
      id,
      head,
      cwd,
      subagent: parent?.relation === 'subagent',
      model: undefined,
      answer: undefined,
      prompts: new Map(),
      calls: new Map(),
      early: new Map(),
      unanswered: new Map(),
      replaced: new Set(),
      resultRecords: new Map(),
      spawns: new Map(),
      boundary: undefined,
      begun: false,
      chained: false,
    };
    this.#byId.set(id, session);
    return session;
  }
}
