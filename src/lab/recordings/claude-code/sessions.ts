import { defined } from '../../../values/defined.js';
import type { EntryQueue } from '../entries/entry-queue.js';
import { idAt, momentOf, objectAt, objectsAt, textAt } from '../entries/fields.js';
import type { JsonObject } from '../json/json-text.js';
import type { EntryOf } from '../neutral-session.js';
import type { ClaudeSession } from './session.js';

type Parent = EntryOf<'session'>['parent'];

/** The text of a record's prompt, for finding the call that began a sub-agent. */
function promptText(record: JsonObject): string {
  const message = objectAt(record, 'message');
  const content = message?.content;
  return typeof content === 'string'
    ? content
    : objectsAt(message, 'content')
        .map((block) => textAt(block, 'text') ?? '')
        .join('\n');
}

/**
 * The sessions of one file: the conversation, and its sub-agents as sessions of their own, in each of the ways in which they were recorded: as side chains
 * in the file, as progress of their call, as files of their own.
 */
export class ClaudeSessions {
  readonly #queue: EntryQueue;
  readonly #fallbackId: string;
  readonly #byId = new Map<string, ClaudeSession>();
  /** The side chain of each record that is in one. */
  readonly #chains = new Map<string, ClaudeSession>();
  #main: ClaudeSession | undefined;
  #mainId: string | undefined;

  constructor(queue: EntryQueue, fallbackId: string) {
    this.#queue = queue;
    this.#fallbackId = fallbackId;
  }

  all(): Iterable<ClaudeSession> {
    return this.#byId.values();
  }

  /** The session of a record. */
  of(record: JsonObject, place: string): ClaudeSession {
    const id = idAt(record, 'sessionId');
    this.#mainId ??= id;
    if (record.isSidechain === true) return this.#sidechain(record, place);
    const main = this.#conversation(record, place);
    if (main.cwd === undefined) this.#complete(main, record);
    if (id !== undefined && id !== this.#mainId) {
      // A session that was resumed goes on in the same file under another id.
      this.#mainId = id;
      this.#queue.push({ kind: 'event', session: main.id, place, at: momentOf(record.timestamp), name: 'resumed', text: id });
    }
    return main;
  }

  /** The session of a sub-agent whose records come as progress of a call. */
  subagent(parent: ClaudeSession, agent: string, from: { readonly record: JsonObject; readonly place: string }): ClaudeSession {
    const id = `${parent.id}/agent-${agent}`;
    const call = idAt(from.record, 'parentToolUseID');
    return this.#byId.get(id) ?? this.#open(id, from.record, from.place, { native_id: parent.id, relation: 'subagent', call_id: call });
  }

  /** A file may begin with records that do not say where the session was. */
  #complete(session: ClaudeSession, record: JsonObject): void {
    const cwd = textAt(record, 'cwd');
    if (cwd === undefined) return;
    const version = textAt(record, 'version');
    if (session.head.update({ cwd, ...defined({ agent_version: version }) })) session.cwd = cwd;
  }

  #conversation(record: JsonObject, place: string): ClaudeSession {
    if (this.#main !== undefined) return this.#main;
    const origin = idAt(objectAt(record, 'forkedFrom'), 'sessionId');
    const id = this.#mainId ?? this.#fallbackId;
    this.#main = this.#open(id, record, place, origin === undefined || origin === id ? undefined : { native_id: origin, relation: 'fork' });
    return this.#main;
  }

  #sidechain(record: JsonObject, place: string): ClaudeSession {
    const main = this.#main?.id ?? this.#mainId ?? this.#fallbackId;
    const agent = idAt(record, 'agentId');
    const uuid = idAt(record, 'uuid') ?? place;
    const known = agent === undefined ? this.#chains.get(idAt(record, 'parentUuid') ?? '') : this.#byId.get(`${main}/agent-${agent}`);
    const prompt = promptText(record);
    const call = this.#main?.spawns.get(prompt);
    if (known === undefined && call !== undefined) this.#main?.spawns.delete(prompt);
    const id = `${main}/agent-${agent ?? uuid}`;
    const session = known ?? this.#open(id, record, place, { native_id: main, relation: 'subagent', call_id: call });
    if (agent === undefined) this.#chains.set(uuid, session);
    return session;
  }

  #open(id: string, record: JsonObject, place: string, parent: Parent): ClaudeSession {
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
      spawns: new Map(),
      boundary: undefined,
      begun: false,
    };
    this.#byId.set(id, session);
    return session;
  }
}
