import { LRUCache } from 'lru-cache';
import { markReached } from '../agents/hooks/hook-folder.js';
import type { FileObservation } from '../client/decide-file.js';
import { readingOfText } from '../harness/observe-call.js';
import { endsWithin } from '../process/within-limit.js';
import { counted } from '../values/counted.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import type { Followed, FollowedSession, WatchHost } from '../watch/followed.js';
import { type HookEvent, type HookedCall, hookAnswer } from './agent-hooks.js';
import { AgentMemory } from './agent-memory.js';
import { callNumber, pinsNote, recalledFile, staleNote } from './model-notes.js';
import { type NamedFile, namesToChange, readNamedFiles } from './named-files.js';

/** Time before a missing transcript is looked for again, in milliseconds. */
const ABSENT_MS = 60_000;
/** Maximum time that a note waits for the transcript, in milliseconds. */
const READ_MS = 100;
/** Maximum number of agents whose files are remembered. */
const MOST_AGENTS = 200;

/** The parts of the watcher's process that hooks use. */
export type HookHost = Pick<WatchHost, 'dataDir' | 'onNotice' | 'stayAwake'>;

/** The answer to an event. */
export interface HookReply {
  /** The text that the hook prints. Empty if it prints nothing. */
  readonly text: string;
  /** Called if the text did not reach the hook. */
  readonly undelivered?: () => void;
}

const SILENT: HookReply = { text: '' };

const bare = (text: string): string => text.replaceAll('\r\n', '\n').trimEnd();

/**
 * Answers the events of hooks. Before and after each call of the agent, it indexes the files that
 * the call names. It also makes the watcher read the transcript, and returns notes for the model.
 * It records no steps: those come from the transcript.
 */
export class HookResponder {
  readonly #followed: Pick<Followed, 'session'>;
  readonly #host: HookHost;
  readonly #memories = new LRUCache<string, AgentMemory>(counted(MOST_AGENTS));
  /** For each session without a transcript, the time at which to look for the transcript again. */
  readonly #absent = new LRUCache<string, number>(counted(MOST_AGENTS));
  /** For each session, its last event. A session's events are answered in order. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(followed: Pick<Followed, 'session'>, host: HookHost) {
    this.#followed = followed;
    this.#host = host;
  }

  /** Answers an event. Never rejects. */
  async answer(event: HookEvent): Promise<HookReply> {
    this.#host.stayAwake();
    markReached(this.#host.dataDir, event.agent, new Date()).catch((error: unknown) => this.#failed(event, error));
    const key = `${event.agent} ${event.native}`;
    const answered = (this.#queues.get(key) ?? Promise.resolve()).then(() =>
      this.#answer(event).catch((error: unknown) => {
        this.#failed(event, error);
        return SILENT;
      }),
    );
    this.#queues.set(key, answered);
    const reply = await answered;
    if (this.#queues.get(key) === answered) this.#queues.delete(key);
    return reply;
  }

  async #answer(event: HookEvent): Promise<HookReply> {
    const { moment, call } = event;
    const key = `${event.agent} ${event.native}`;
    if ((this.#absent.get(key) ?? 0) > Date.now()) return SILENT;
    const followed = this.#session(event).catch((error: unknown) => {
      // Without this, the agent would wait for the missing transcript at every event.
      this.#absent.set(key, Date.now() + ABSENT_MS);
      throw error;
    });
    if (moment === 'after-compaction') return this.#compacted(event, await followed);
    if (call !== undefined) return this.#called(event, call, await followed);
    // Not awaited: the agent waits for this answer, and a new session has no transcript yet.
    followed
      .then((session) => session.catchUp())
      .catch((error: unknown) => {
        this.#absent.delete(key);
        if (moment !== 'session-start') this.#failed(event, error);
      });
    return SILENT;
  }

  #session({ agent, native, transcript }: HookEvent): Promise<FollowedSession> {
    return this.#followed.session(agent, native, defined({ transcript }));
  }

  async #compacted(event: HookEvent, followed: FollowedSession): Promise<HookReply> {
    // A pin that was set just before the compaction counts too.
    await followed.catchUp();
    const text = await pinsNote(followed.session);
    return text === undefined ? SILENT : { text: hookAnswer(event, { text, refuses: false }) };
  }

  async #called(event: HookEvent, call: HookedCall, followed: FollowedSession): Promise<HookReply> {
    const { client } = followed;
    const files = await readNamedFiles(client.files, call, event.cwd);
    const read = files.map(({ file, reading }): FileObservation => ({ kind: 'read', source: file.source, reading }));
    if (read.length > 0) client.index(read).catch((error: unknown) => this.#failed(event, error));
    const memory = this.#memory(event);
    if (event.moment === 'after-tool') {
      if (!event.failed) memory.saw(call, files, event.shown);
      this.#read(event, followed);
      return SILENT;
    }
    const names = namesToChange(call);
    const changing = files.filter(({ name }) => names.has(name));
    await this.#recall(
      memory,
      changing.filter((file) => !memory.knows(file)),
      followed,
    );
    const changed = memory.changed(changing);
    if (changed.length === 0) {
      memory.changing(changing);
      return SILENT;
    }
    // The transcript has the number of the call, but the hook cannot wait long for it.
    await endsWithin(followed.catchUp(), READ_MS);
    const text = staleNote(changed, (id) => callNumber(followed.session, id));
    return { text: hookAnswer(event, { text, refuses: true }), undelivered: () => memory.notDelivered(changed) };
  }

  /**
   * Looks up files in the session's transcript if no hook has reported them: the agent may have
   * started before this process.
   */
  async #recall(memory: AgentMemory, unknown: readonly NamedFile[], followed: FollowedSession): Promise<void> {
    if (unknown.length === 0) return;
    await followed.catchUp();
    for (const { file, reading } of unknown) {
      const known = await recalledFile(followed.session, file.source.path);
      if (known === undefined) continue;
      // A transcript lacks the last line break of a text.
      const isSame = reading.kind === 'text' && bare(reading.content) === bare(known.text);
      memory.remember(file, isSame ? reading : readingOfText(known.text, 0), known.seenIn);
    }
  }

  #memory({ agent, native, subagent = '' }: HookEvent): AgentMemory {
    const key = `${agent} ${native} ${subagent}`;
    const memory = this.#memories.get(key) ?? new AgentMemory();
    this.#memories.set(key, memory);
    return memory;
  }

  /** Starts reading the transcript. The agent does not wait for it. */
  #read(event: HookEvent, session: FollowedSession): void {
    session.catchUp().catch((error: unknown) => this.#failed(event, error));
  }

  #failed({ agent, name, native }: HookEvent, error: unknown): void {
    this.#host.onNotice(`The hook ${name} of ${agent} session ${native} failed: ${messageOf(error)}`);
  }
}
