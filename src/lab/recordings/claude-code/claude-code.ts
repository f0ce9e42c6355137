import type { JsonObject } from '../../../values/json-object.js';
import { ownMember } from '../../../values/own-member.js';
import { EntryQueue } from '../entries/entry-queue.js';
import { idAt, objectAt, textAt } from '../entries/fields.js';
import { excerpt, type Importer, type OnItem, type OnLoss, OpaqueContent } from '../importer.js';
import { type LineReader, lineImporter } from '../json/line-format.js';
import type { RecordedEntry } from '../neutral-session.js';
import { QueuedPrompts, readAttached, readQueueOperation, readSystem } from './asides.js';
import { readReplacements } from './replacements.js';
import {
  type ClaudeContext,
  type ClaudeRecord,
  ClaudeSessions,
  closeBoundary,
  readEarly,
  restSession,
} from './sessions.js';
import { readAssistant, readUser } from './turns.js';

/** Records that are not part of the conversation, such as file snapshots for undo. */
const BOOKKEEPING = new Set([
  'file-history-snapshot',
  'last-prompt',
  'agent-name',
  'agent-color',
  'agent-setting',
  'tag',
  'mode',
  'permission-mode',
  'pr-link',
  'worktree-state',
  'artifact-autoreact-ledger',
  'artifact-comment-monitor',
  'atis-latch',
  'attribution-snapshot',
  'bridge-session',
  'cost-state',
  'ended-by-model',
  'file-history-delta',
  'frame-link',
  'history-suppression',
  'isolation-latch',
  'observer-ref',
  'relocated',
]);

/**
 * The kinds of title records, each with the field that has the title. Ranks rise from first to
 * last. A title never replaces one of higher rank, so a person's title stays.
 */
const TITLES: Readonly<Record<string, string>> = {
  summary: 'summary',
  'ai-title': 'aiTitle',
  'custom-title': 'customTitle',
};
const RANKS = Object.keys(TITLES);

/** Records of the conversation. Only these are counted as the format's items. */
const SAID = new Set(['user', 'assistant']);

class ClaudeCodeReader implements LineReader {
  readonly #context: ClaudeContext;
  readonly #onItem: OnItem;
  readonly #sessions: ClaudeSessions;
  readonly #queued = new QueuedPrompts();
  readonly #seen = new Set<string>();
  #title: { readonly rank: number; readonly text: string; readonly place: string; isQueued: boolean } | undefined;
  readonly #handlers: Readonly<Record<string, (at: ClaudeRecord) => void>> = {
    user: (at) => readUser(this.#context, at),
    assistant: (at) => readAssistant(this.#context, at),
    system: (at) => readSystem(this.#context, at),
    attachment: (at) => readAttached(this.#context, at, this.#queued),
    progress: (at) => this.#progress(at),
    'queue-operation': (at) => readQueueOperation(this.#context, at, this.#queued),
  };

  constructor(fallbackId: string, onLoss: OnLoss, onItem: OnItem) {
    this.#onItem = onItem;
    const queue = new EntryQueue();
    this.#context = { queue, opaque: new OpaqueContent(), onLoss };
    this.#sessions = new ClaudeSessions(queue, fallbackId);
  }

  read(record: JsonObject, place: string): readonly RecordedEntry[] {
    const type = textAt(record, 'type') ?? '';
    const handler = ownMember(this.#handlers, type);
    if (handler !== undefined) this.#handle(handler, type, { record, place });
    else if (RANKS.includes(type))
      this.#titled(RANKS.indexOf(type), textAt(record, ownMember(TITLES, type) ?? ''), place);
    else if (type === 'content-replacement') readReplacements(this.#context, this.#sessions.all(), { record, place });
    else if (!BOOKKEEPING.has(type)) this.#unknown(place, `a record of the kind ${JSON.stringify(excerpt(type))}`);
    return this.#context.queue.take();
  }

  rest(): readonly RecordedEntry[] {
    for (const session of this.#sessions.all()) restSession(session);
    return this.#context.queue.take();
  }

  finish(): readonly RecordedEntry[] {
    for (const session of this.#sessions.all()) {
      readEarly(session, () => true);
      closeBoundary(this.#context, session);
    }
    this.#context.opaque.finish(this.#context.onLoss);
    return this.#context.queue.drain();
  }

  #handle(handler: (at: ClaudeRecord) => void, type: string, { record, place }: Omit<ClaudeRecord, 'session'>): void {
    const uuid = idAt(record, 'uuid');
    if (uuid !== undefined && this.#seen.has(uuid)) {
      this.#context.onLoss({
        reason: 'duplicate-id',
        place,
        detail: `the record ${excerpt(uuid)} occurs again: left out`,
      });
      return;
    }
    if (uuid !== undefined) this.#seen.add(uuid);
    const session = this.#sessions.of(record, place);
    this.#queueTitle();
    if (SAID.has(type)) this.#onItem(session.id);
    handler({ session, record, place });
  }

  #titled(rank: number, text: string | undefined, place: string): void {
    if (text === undefined || rank < (this.#title?.rank ?? 0)) return;
    this.#title = { rank, text, place, isQueued: false };
    this.#queueTitle();
  }

  /** Queues an early title, because a title may precede the first record of its session. */
  #queueTitle(): void {
    const session = this.#sessions.main?.id;
    if (this.#title === undefined || this.#title.isQueued || session === undefined) return;
    const { text, place } = this.#title;
    this.#title.isQueued = true;
    this.#context.queue.push({ kind: 'event', session, place, name: 'titled', text });
  }

  #unknown(place: string, what: string): void {
    this.#context.onLoss({ reason: 'unknown-record', place, detail: `${what}: left out` });
  }

  /**
   * Reads the messages and calls of a sub-agent, which are recorded as the progress of the call
   * that started it. Other kinds of progress are skipped, because they repeat a result.
   */
  #progress({ session, record, place }: ClaudeRecord): void {
    const data = objectAt(record, 'data');
    const nested = objectAt(data, 'message');
    if (textAt(data, 'type') !== 'agent_progress' || nested === undefined) return;
    const agent = idAt(data, 'agentId') ?? idAt(record, 'parentToolUseID') ?? 'agent';
    const started = { ...record, timestamp: nested.timestamp ?? record.timestamp };
    const child = {
      session: this.#sessions.subagent(session, agent, { record: started, place }),
      record: nested,
      place,
    };
    const type = textAt(nested, 'type') ?? '';
    if (SAID.has(type)) this.#onItem(child.session.id);
    if (type === 'user') readUser(this.#context, child);
    else if (type === 'assistant') readAssistant(this.#context, child);
    else this.#unknown(place, `progress of a sub-agent of the kind ${JSON.stringify(excerpt(type))}`);
  }
}

/**
 * Reads Claude Code's JSON lines under `~/.claude/projects`, one file per session. A separate file
 * of a sub-agent is read as a session, too.
 */
export const claudeCode: Importer = lineImporter(
  'claude-code',
  (id, onLoss, onItem) => new ClaudeCodeReader(id, onLoss, onItem),
);
