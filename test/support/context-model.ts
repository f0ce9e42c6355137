import type { Message } from '../../src/objects/object-type.js';

/**
 * The expected state of a file in the database: only mentioned, with a content, or confirmed
 * deleted.
 */
export type ModelFile =
  | { readonly state: 'stub' }
  | { readonly state: 'indexed'; readonly content: string }
  | { readonly state: 'deleted' };

interface Fresh {
  readonly turn: number;
  readonly id: string;
}

/**
 * A session modelled literally on the SSOT: plain lists, nothing shared, nothing clever [§3.1 to
 * §3.5, §4.3].
 */
export interface ModelSession {
  index: string[];
  active: string[];
  pinned: string[];
  turns: { turn: number; messages: Message[] }[];
  calls: string[];
  fresh: Fresh[];
  prompt: string | null;
}

const PER_TURN = 5;
const TURNS = 3;

/** The effects of a tool call. */
export interface ModelCall {
  readonly call: string;
  /** Files that it read or mentioned, in order. */
  readonly files: readonly string[];
  /** The files that it read whole. */
  readonly whole: readonly string[];
  readonly verb?: { readonly kind: 'activate' | 'deactivate' | 'pin' | 'unpin'; readonly ids: readonly string[] };
}

const add = (list: string[], id: string): void => {
  if (!list.includes(id)) list.push(id);
};

const newSession = (): ModelSession => ({
  index: [],
  active: [],
  pinned: [],
  turns: [],
  calls: [],
  fresh: [],
  prompt: null,
});

/**
 * A naive model of §3: files on disk, objects in the database, and sessions with all their moments.
 */
export class ContextModel {
  readonly disk = new Map<string, string>();
  readonly objects = new Map<string, ModelFile>();
  /** All contents of each object, oldest first. */
  readonly histories = new Map<string, ModelFile[]>();
  /** Files that a listing of any session named. */
  readonly mentioned = new Set<string>();
  readonly sessions = new Map<string, ModelSession>();
  /** Each session after each of its steps; the first entry precedes any step. */
  readonly #moments = new Map<string, ModelSession[]>();

  begin(session: string): void {
    this.#set(session, newSession(), [newSession()]);
  }

  #set(session: string, state: ModelSession, moments: ModelSession[]): void {
    this.sessions.set(session, state);
    this.#moments.set(session, moments);
  }

  session(id: string): ModelSession {
    const session = this.sessions.get(id);
    if (session === undefined) throw new Error(`the model has no session ${id}`);
    return session;
  }

  steps(session: string): number {
    return (this.#moments.get(session)?.length ?? 1) - 1;
  }

  /** Adds a session with the state of another one after a step. */
  fork(parent: string, at: number, id: string): void {
    const moments = (this.#moments.get(parent) ?? []).slice(0, at + 1);
    const state = moments.at(-1);
    if (state === undefined) throw new Error(`the model has no step ${at} of ${parent}`);
    this.#set(id, structuredClone(state), structuredClone(moments));
  }

  #file(id: string, file: ModelFile): void {
    const before = this.objects.get(id);
    if (JSON.stringify(before) === JSON.stringify(file)) return;
    this.objects.set(id, file);
    this.histories.set(id, [...(this.histories.get(id) ?? []), file]);
  }

  /** Records a look at a file: its content, or its absence, which affects known files only. */
  look(id: string, content: string | undefined): void {
    if (content !== undefined) this.#file(id, { state: 'indexed', content });
    else if (this.objects.has(id)) this.#file(id, { state: 'deleted' });
  }

  /** Records a file that a listing named. */
  mention(id: string): void {
    this.mentioned.add(id);
    if (!this.objects.has(id)) this.#file(id, { state: 'stub' });
  }

  prompt(id: string, text: string): void {
    this.session(id).prompt = text;
    const last = this.#moments.get(id)?.at(-1);
    if (last !== undefined) last.prompt = text;
  }

  message(id: string, message: Message): void {
    const session = this.session(id);
    this.#turn(session, message.role === 'user').messages.push(message);
    this.#close(id, session);
  }

  call(id: string, { call, files, whole, verb }: ModelCall): void {
    const session = this.session(id);
    const turn = this.#turn(session, false);
    const last = turn.messages.at(-1);
    if (last?.role === 'assistant')
      turn.messages[turn.messages.length - 1] = {
        ...last,
        toolcall_refs: [...(last.toolcall_refs ?? []), call as never],
      };
    else turn.messages.push({ role: 'assistant', text: '', toolcall_refs: [call as never] });
    session.calls.push(call);
    for (const one of [...files, call]) add(session.index, one);
    const ids = verb?.ids ?? [];
    if (verb?.kind === 'deactivate') session.active = session.active.filter((one) => !ids.includes(one));
    if (verb?.kind === 'unpin') session.pinned = session.pinned.filter((one) => !ids.includes(one));
    for (const one of [...whole, call, ...(verb?.kind === 'activate' ? ids : [])]) add(session.active, one);
    if (verb?.kind === 'pin') for (const one of ids) add(session.pinned, one);
    session.fresh.push({ turn: turn.turn, id: call });
    if (verb?.kind === 'activate')
      for (const one of new Set(ids)) if (session.calls.includes(one)) session.fresh.push({ turn: turn.turn, id: one });
    this.#close(id, session);
  }

  #turn(session: ModelSession, opens: boolean) {
    if (opens || session.turns.length === 0) session.turns.push({ turn: session.turns.length + 1, messages: [] });
    const turn = session.turns.at(-1);
    if (turn === undefined) throw new Error('BUG: no turn');
    return turn;
  }

  /**
   * Keeps the newest five results of the newest three turns. Pinned results and files are exempt
   * [§4.3, decision D4].
   */
  #close(id: string, session: ModelSession): void {
    const now = session.turns.length;
    const kept = new Set<string>();
    for (let turn = now; turn > Math.max(0, now - TURNS); turn--) {
      const newest = [
        ...new Set(
          session.fresh
            .filter((one) => one.turn === turn)
            .map((one) => one.id)
            .reverse(),
        ),
      ];
      for (const one of newest.slice(0, PER_TURN)) kept.add(one);
    }
    session.active = session.active.filter(
      (one) => !session.calls.includes(one) || session.pinned.includes(one) || kept.has(one),
    );
    this.#moments.get(id)?.push(structuredClone(session));
  }
}
