import { noteRang } from '../agents/hooks/hook-folder.js';
import type { FileObservation } from '../client/decide-file.js';
import { pathsToChange } from '../harness/observe-call.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import type { Followed, FollowedSession, WatchHost } from '../watch/followed.js';
import { type HookEvent, type HookedCall, hookAnswer, refusesStaleCall } from './agent-hooks.js';
import { AgentMemory } from './agent-memory.js';
import { callNumber, pinsNote, staleNote } from './model-notes.js';
import { type NamedFile, readNamedFiles } from './named-files.js';

/** Maximum number of agents whose reads are remembered. */
const MOST_AGENTS = 200;

/**
 * Answers the events of hooks. It keeps the disk before and after each call, has the transcript
 * read, and returns notes to the model. It never makes a step: the transcript does.
 */
export class HookDesk {
  readonly #followed: Followed;
  readonly #host: WatchHost;
  readonly #memories = new Map<string, AgentMemory>();
  /** Events of one session, one after another. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(followed: Followed, host: WatchHost) {
    this.#followed = followed;
    this.#host = host;
  }

  /** Returns the text that the hook prints; empty if there is nothing to say. Never rejects. */
  async answer(event: HookEvent): Promise<string> {
    this.#host.stayAwake();
    noteRang(this.#host.dataDir, event.agent, new Date()).catch((error: unknown) => this.#failed(event, error));
    const key = `${event.agent} ${event.native}`;
    const answered = (this.#queues.get(key) ?? Promise.resolve()).then(() =>
      this.#answer(event).catch((error: unknown) => {
        this.#failed(event, error);
        return '';
      }),
    );
    this.#queues.set(key, answered);
    const text = await answered;
    if (this.#queues.get(key) === answered) this.#queues.delete(key);
    return text;
  }

  async #answer(event: HookEvent): Promise<string> {
    const { agent, native, moment, call, transcript, cwd } = event;
    const followed = this.#followed.session(agent, native, defined({ transcript, cwd }));
    // A session begins before its transcript, and the agent waits for this answer.
    if (moment === 'session-start') {
      followed.catch((error: unknown) => this.#failed(event, error));
      return '';
    }
    const session = await followed;
    if (moment === 'after-compaction') return this.#compacted(event, session);
    if (call !== undefined) return this.#called(event, call, session);
    this.#read(event, session);
    return '';
  }

  async #compacted(event: HookEvent, session: FollowedSession): Promise<string> {
    const text = await pinsNote(session.session);
    this.#read(event, session);
    return text === undefined ? '' : hookAnswer(event, { text, refuses: false });
  }

  async #called(event: HookEvent, call: HookedCall, followed: FollowedSession): Promise<string> {
    const { client, session } = followed;
    const files = await readNamedFiles(client.files, call, event.cwd);
    const read = files.map(({ file, reading }): FileObservation => ({ kind: 'read', source: file.source, reading }));
    const stored = read.length === 0 ? Promise.resolve() : client.index(read);
    stored.catch((error: unknown) => this.#failed(event, error));
    const memory = this.#memory(event);
    if (event.moment === 'after-tool') {
      if (!event.failed) memory.saw(call, files);
      this.#read(event, followed);
      return '';
    }
    const changing = new Set(pathsToChange(call.tool, call.args));
    const changed = memory.changed(
      files.filter(({ name }: NamedFile) => changing.has(name)),
      session.seen,
    );
    if (changed.length === 0) return '';
    const refuses = refusesStaleCall(event.agent);
    const text = staleNote(changed, { numberOf: (id) => callNumber(session, id), refuses });
    return hookAnswer(event, { text, refuses });
  }

  #memory({ agent, native, subagent = '' }: HookEvent): AgentMemory {
    const key = `${agent} ${native} ${subagent}`;
    const memory = this.#memories.get(key) ?? new AgentMemory();
    this.#memories.delete(key);
    this.#memories.set(key, memory);
    const [oldest] = this.#memories.keys();
    if (this.#memories.size > MOST_AGENTS && oldest !== undefined) this.#memories.delete(oldest);
    return memory;
  }

  /** Has the transcript read now. The agent does not wait for it. */
  #read(event: HookEvent, session: FollowedSession): void {
    session.catchUp().catch((error: unknown) => this.#failed(event, error));
  }

  #failed({ agent, name, native }: HookEvent, error: unknown): void {
    this.#host.onNotice(`The hook ${name} of ${agent} session ${native} failed: ${messageOf(error)}`);
  }
}
