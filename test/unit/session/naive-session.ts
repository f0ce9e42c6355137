import type { ObjectId } from '../../../src/objects/ids.js';
import type { CallPlan, SetVerbs } from '../../../src/session/plan-step.js';
import type { StepPolicy } from '../../../src/session/step-policy.js';

/**
 * An event of a session that needs no session to be generated. `picks` are positions in the
 * session's index at the time of the event.
 */
export type Happening =
  | { readonly kind: 'message'; readonly role: 'user' | 'assistant' | 'system'; readonly wait: number }
  | { readonly kind: 'verbs'; readonly wait: number; readonly picks: Picks }
  | {
      readonly kind: 'call';
      readonly wait: number;
      readonly turnRef?: string | undefined;
      readonly reads: readonly ObjectId[];
      readonly mentions: readonly ObjectId[];
      readonly picks: Picks;
    };
export type Picks = Readonly<Record<'activate' | 'deactivate' | 'pin' | 'unpin', readonly number[]>>;

interface NaiveTurn {
  rule: string;
  ref: string | undefined;
  fresh: ObjectId[];
  messages: { role: string; text: string; toolcall_refs?: ObjectId[] }[];
}

const without = (list: ObjectId[], gone: readonly ObjectId[]): ObjectId[] => list.filter((id) => !gone.includes(id));
const join = (list: ObjectId[], more: readonly ObjectId[]): ObjectId[] => [...new Set([...list, ...more])];

/** §3 and decision D4 written literally: plain lists, recomputed each time. */
export class NaiveSession {
  index: ObjectId[] = [];
  active: ObjectId[] = [];
  pinned: ObjectId[] = [];
  calls: ObjectId[] = [];
  turns: NaiveTurn[] = [];
  lastAt = 0;

  constructor(readonly policy: StepPolicy) {}

  pick(picks: Picks): SetVerbs {
    const ids = (numbers: readonly number[]) => numbers.flatMap((n) => this.index[n % this.index.length] ?? []);
    return {
      activate: ids(picks.activate),
      deactivate: ids(picks.deactivate),
      pin: ids(picks.pin),
      unpin: ids(picks.unpin),
    };
  }

  get turn(): NaiveTurn {
    return this.turns.at(-1) as NaiveTurn;
  }

  #open(at: number, user: boolean, ref: string | undefined): void {
    const running = this.turns.at(-1);
    const begin = (rule: string, turnRef?: string) => this.turns.push({ rule, ref: turnRef, fresh: [], messages: [] });
    if (user) begin('user-message');
    else if (running === undefined) begin(ref === undefined ? 'first-step' : 'client-turn', ref);
    else if (running.rule === 'user-message') return;
    else if (ref !== undefined) ref !== running.ref && begin('client-turn', ref);
    else if (at - this.lastAt >= this.policy.pauseMs) begin('pause');
  }

  #finish(at: number): void {
    this.lastAt = Math.max(at, this.lastAt);
    const { perTurn, turns } = this.policy.window;
    const newestTurns = turns === 0 ? [] : this.turns.slice(-turns);
    const kept = newestTurns.flatMap(({ fresh }) => (perTurn === 0 ? [] : fresh.slice(-perTurn)));
    this.active = this.active.filter((id) => !this.calls.includes(id) || this.pinned.includes(id) || kept.includes(id));
  }

  #verbs(verbs: SetVerbs, alsoActive: readonly ObjectId[]): void {
    this.active = join(without(this.active, verbs.deactivate ?? []), [...alsoActive, ...(verbs.activate ?? [])]);
    this.pinned = join(without(this.pinned, verbs.unpin ?? []), verbs.pin ?? []);
    const again = (verbs.activate ?? []).filter((id, i, all) => this.calls.includes(id) && all.indexOf(id) === i);
    this.turn.fresh = [...without(this.turn.fresh, again), ...again];
  }

  message(role: string, text: string, at: number): void {
    this.#open(at, role === 'user', undefined);
    this.turn.messages.push({ role, text });
    this.#finish(at);
  }

  /** A person's change. It opens only the first turn, and leaves the window unchanged. */
  verbs(verbs: SetVerbs, at: number): void {
    if (this.turns.length === 0) this.#open(at, false, undefined);
    this.#verbs(verbs, []);
    this.lastAt = Math.max(at, this.lastAt);
  }

  call(plan: CallPlan): void {
    this.#open(plan.at, false, plan.turnRef);
    this.index = join(this.index, [...plan.index, ...plan.activateFiles, plan.call]);
    this.calls.push(plan.call);
    this.turn.fresh.push(plan.call);
    const last = this.turn.messages.at(-1);
    if (last?.role === 'assistant') last.toolcall_refs = [...(last.toolcall_refs ?? []), plan.call];
    else this.turn.messages.push({ role: 'assistant', text: '', toolcall_refs: [plan.call] });
    this.#verbs(plan.verbs ?? {}, [...plan.activateFiles, plan.call]);
    this.#finish(plan.at);
  }
}
