import {
  type Border,
  decideBorder,
  type EpochLedger,
  type EpochSettings,
  epochSettings,
} from '../assembly/epoch/border.js';
import {
  beginEpoch,
  charsOf,
  type EpochInput,
  type EpochPlace,
  type EpochState,
  epochText,
  noteInputOf,
  sharedChars,
  withNote,
} from '../assembly/epoch/epoch-state.js';
import { planNote } from '../assembly/epoch/plan-note.js';
import { pricesOf } from '../assembly/epoch/prices.js';
import type { RenderedMessage } from '../assembly/render-messages.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { SessionAssembly, SessionEpochContext } from '../client/session/session-assembly.js';
import { type EpochRecord, isOfEpoch } from '../history/rebuild/epoch-chain.js';
import { AssemblyRebuilder } from '../history/rebuild/rebuild-assembly.js';
import type { BorderReason, EpochProof } from '../objects/assembly-proof.js';
import type { SessionId } from '../objects/ids.js';
import { withinLimit } from '../process/within-limit.js';
import { ofSession, storeOf } from '../store/session-line.js';
import { defined } from '../values/defined.js';
import { tokensOf } from '../values/token-estimate.js';
import type { EpochStart, EpochTail, KeptTail, LoopReference } from './epoch-tail.js';

/** A model call in layout `epoch`. */
export interface EpochRequest {
  readonly session: SessionId;
  readonly tail: EpochTail;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Whether a model call since the last context used another list than ours. */
  readonly ownList: boolean;
  readonly model?: string;
  /** The model's window in tokens. */
  readonly window?: number;
}

/** The state of an epoch after its last request. */
interface CurrentEpoch {
  readonly session: SessionId;
  readonly state: EpochState;
  readonly turn: number;
  readonly proof: EpochProof;
  /** Refers to the last record that added text. */
  readonly previous: Required<EpochProof>['previous'];
  readonly step: number;
  readonly at: number;
  readonly system: string | null;
}

/** A request that was made and has not been handed out yet. */
export interface PlannedEpoch {
  readonly request: EpochRequest;
  readonly begins: boolean;
  /** Estimated number of tokens in the request. */
  readonly tokens: number;
  /** The epoch's state before this request. Undefined if the request begins the epoch. */
  readonly before: EpochState | undefined;
  readonly context: SessionEpochContext;
  readonly proof: EpochProof;
  readonly state: EpochState;
  readonly place: EpochPlace;
}

/** The epoch that a context belongs to (divergence E9). */
export interface LoopEpoch {
  /** The epoch's number in its session, from 1. */
  readonly number: number;
  /** Whether the epoch begins with this context. */
  readonly begins: boolean;
  readonly reason: BorderReason;
}

/** A message of ours in the part of the harness's list that stays (layout `epoch`). */
export interface LoopInsert {
  /**
   * Index of the reported message directly before it. It is the same in every list of the epoch.
   */
  readonly index: number;
  readonly message: RenderedMessage;
}

/** Returns the epoch of a request. */
export const epochOf = ({ proof: { number, reason }, begins }: PlannedEpoch): LoopEpoch => ({ number, begins, reason });

/** The part of the harness's list that stays in a request, with our additions. */
export interface LoopList {
  /** Index in the harness's list of the first message that stays. */
  readonly from: number;
  /** All messages inserted in this epoch, by rising index, at most one per index. */
  readonly inserts: readonly LoopInsert[];
  /**
   * Lines that replace results, by index in the list. The text of these results is in another part
   * of the request.
   */
  readonly references: readonly LoopReference[];
}

/**
 * Returns the part of the harness's list that stays in a request, with notes in their places. Notes
 * with the same place are joined to one message.
 */
export function aroundList({ request, proof, state, context: { notes } }: PlannedEpoch): LoopList {
  const from = fromOf(proof);
  const found = new Map<number, RenderedMessage>();
  for (const { after, message } of notes) {
    const there = found.get(from + after - 1);
    found.set(
      from + after - 1,
      there === undefined ? message : { ...there, parts: [...there.parts, ...message.parts] },
    );
  }
  const inserts = [...found].map(([index, message]) => ({ index, message }));
  return { from, inserts, references: request.tail.references(from, state.lines) };
}

/** Where an epoch begins, and why. */
interface Beginning extends Border, EpochStart {}

/** Estimates tokens. All numbers that are compared come from this estimate. */
const tokens = (chars: number): number => Math.round(tokensOf(chars));

/**
 * Time limit for continuing an earlier process's epoch. It is long, because a new epoch would cost
 * more: the whole request is written to the cache again, and the turn's reasoning is lost.
 */
const RESUME_MS = 14_000;
const LATE = 'late';

/** Used as the price if no earlier epoch could continue. Then there is nothing to compare. */
const NO_PRICE = { written: 0, savedPerCall: 0 };

/** Returns the index of the first message in the harness's list that stays, or 0. */
const fromOf = ({ list }: EpochProof): number => list?.from ?? 0;

/** Returns the contents of a request that begins an epoch. */
function begun(
  input: EpochInput,
  tail: EpochTail,
  start: EpochStart,
): Pick<PlannedEpoch, 'state'> & { readonly note: EpochProof['note'] } {
  const base = beginEpoch(input, start.turn);
  const note = tail.note(start);
  return { note, state: note === undefined ? base : withNote(base, note, noteInputOf(input)) };
}

interface RenderedEpoch extends Omit<PlannedEpoch, 'context' | 'place' | 'tokens'> {
  readonly assembly: SessionAssembly;
  readonly turn: number;
}

function planned({ assembly, turn, ...made }: RenderedEpoch): PlannedEpoch {
  const place = { tail: { turn, results: [] }, epoch: made.proof };
  const chars = charsOf(made.state) + made.request.tail.chars(fromOf(made.proof), made.state.lines);
  return { ...made, place, tokens: tokens(chars), context: assembly.asEpoch(made.state, place) };
}

/**
 * The epochs of one session (divergence E9). For each model call, it decides whether the epoch
 * continues and what is added. It can continue an epoch of another process byte for byte. For that,
 * the epoch's records must be rendered again, and the harness's list, if any, must begin as before.
 */
export class LoopEpochs {
  readonly #client: ContextClient;
  readonly #settings: Partial<EpochSettings>;
  #current: CurrentEpoch | undefined;
  #resumed = false;
  /**
   * Whether the session had an epoch in an earlier process, or the database did not answer in time.
   */
  #goesBack = false;
  #asked = false;
  /** Number of epochs so far. */
  #number = 0;
  /** Number of requests in all epochs so far. */
  #calls = 0;

  /** `settings` changes the defaults that decide when an epoch ends. */
  constructor(client: ContextClient, settings: Partial<EpochSettings> = {}) {
    this.#client = client;
    this.#settings = settings;
  }

  /** Makes the user's next message begin an epoch. */
  ask(): void {
    this.#asked = true;
  }

  /** Makes the next request begin an epoch, because the current epoch cannot be continued. */
  forget(): void {
    this.#current = undefined;
  }

  /** Returns the contents of the next request. */
  async next(request: EpochRequest, assembly: SessionAssembly): Promise<PlannedEpoch> {
    if (!this.#resumed) await this.#resume(request.session);
    const { input } = assembly;
    const last = this.#current;
    const kept = last === undefined ? undefined : request.tail.kept({ list: last.proof.list, step: last.step });
    const goesOn =
      this.#current === undefined || kept === undefined ? undefined : this.#goOn(this.#current, { input, kept });
    const beginning = this.#beginning(request, assembly, goesOn);
    if (beginning !== undefined) return this.#begun(request, assembly, beginning);
    if (goesOn === undefined || kept === undefined || this.#current === undefined)
      throw new Error('BUG: an epoch continues that has not begun');
    return this.#continued({ request, assembly, current: this.#current, ...goesOn, kept });
  }

  /**
   * Makes the same request from another assembly, which has another system prompt. Undefined if
   * anything else in the request would differ.
   */
  again(made: PlannedEpoch, assembly: SessionAssembly): PlannedEpoch | undefined {
    const { before, proof, place } = made;
    const { input } = assembly;
    const { note } = proof;
    const base = before ?? beginEpoch(input, place.tail.turn);
    // If the request repeats the previous request, that request already contains the note.
    const adds = before !== undefined && note !== undefined && before !== made.state;
    const state = adds ? withNote(before, note, noteInputOf(input)) : base;
    if (epochText({ system: null, ...state }) !== epochText({ system: null, ...made.state })) return undefined;
    return { ...made, state, context: assembly.asEpoch(state, place) };
  }

  /** Records that a request was handed out. The next request begins with it. */
  handed({ request, context, proof, state, place, begins }: PlannedEpoch): void {
    const { step, sha256 } = context.record;
    const previous = begins || proof.note !== undefined ? { step, sha256 } : proof.previous;
    if (previous === undefined) throw new Error('BUG: a request of an epoch without a record before it');
    const { turn } = place.tail;
    this.#current = {
      session: request.session,
      state,
      turn,
      proof,
      previous,
      step,
      at: request.now,
      system: context.system,
    };
    this.#number = proof.number;
    this.#calls = proof.calls;
    if (begins) this.#asked = false;
  }

  #goOn({ state }: CurrentEpoch, { input, kept }: { readonly input: EpochInput; readonly kept: KeptTail }) {
    const note = planNote(state, input, kept.shown(input));
    return { note, state: note === undefined ? state : withNote(state, note, noteInputOf(input)) };
  }

  #beginning(
    request: EpochRequest,
    { input }: SessionAssembly,
    goesOn: { readonly state: EpochState; readonly note: unknown } | undefined,
  ) {
    const current = this.#current;
    const { start } = request.tail;
    if (current === undefined || goesOn === undefined) {
      const reason = this.#goesBack || this.#number > 0 ? 'history' : 'first';
      return { reason, price: NO_PRICE, ...start } as const satisfies Beginning;
    }
    const ledger = this.#ledger(request, input, { current, goesOn });
    const settings = { ...epochSettings(request.window), ...this.#settings };
    const border = decideBorder(ledger, { prices: pricesOf(request.model), settings, now: request.now });
    return border === undefined ? undefined : { ...border, ...start };
  }

  #ledger(
    request: EpochRequest,
    input: EpochInput,
    of: {
      readonly current: CurrentEpoch;
      readonly goesOn: { readonly state: EpochState; readonly note: unknown };
    },
  ): EpochLedger {
    const { current, goesOn } = of;
    const { tail, ownList, session } = request;
    const { atUser, start } = tail;
    const { list } = current.proof;
    const from = fromOf(current.proof);
    const now = charsOf(goesOn.state) + tail.chars(from, goesOn.state.lines);
    const { budget } = { ...epochSettings(request.window), ...this.#settings };
    // A request that begins an epoch is rendered only if it might be chosen.
    const base = atUser || tokens(now) > budget ? begun(input, tail, start).state : undefined;
    const begins = base === undefined ? now : charsOf(base) + tail.chars(start.from, base.lines);
    // A note needs a message of the list before it.
    const noPlace = tail.isEmpty(from) && goesOn.note !== undefined;
    const changed =
      ownList || noPlace || session !== current.session || (input.systemPrompt ?? '') !== (current.system ?? '');
    return {
      calls: current.proof.calls,
      goesOn: tokens(now),
      begins: tokens(begins),
      shared: base === undefined || list?.count === 0 ? 0 : tokens(sharedChars(current.state, base)),
      lastAt: current.at,
      atUser,
      asked: this.#asked,
      changed,
    };
  }

  #begun(request: EpochRequest, assembly: SessionAssembly, { reason, price, turn, from }: Beginning): PlannedEpoch {
    const { tail } = request;
    const { state, note } = begun(assembly.input, tail, { turn, from });
    const { seq: step } = assembly.state;
    const priced = price === NO_PRICE ? {} : { price };
    const adds = defined({ list: tail.list(from), note });
    const proof: EpochProof = {
      number: this.#number + 1,
      border: step,
      reason,
      ...priced,
      ...adds,
      calls: this.#calls + 1,
    };
    return planned({ request, assembly, begins: true, before: undefined, proof, state, turn });
  }

  #continued(of: {
    readonly request: EpochRequest;
    readonly assembly: SessionAssembly;
    readonly current: CurrentEpoch;
    readonly state: EpochState;
    readonly note: EpochProof['note'] | undefined;
    readonly kept: KeptTail;
  }): PlannedEpoch {
    const { request, assembly, current, state, note, kept } = of;
    const { seq: step } = assembly.state;
    const { number, border, reason, list } = current.proof;
    // A repeated request, for example after a failure of the provider, has the same record.
    const isSame = note === undefined && step === current.step && kept.list?.count === list?.count;
    const proof: EpochProof = isSame
      ? current.proof
      : {
          number,
          border,
          reason,
          calls: this.#calls + 1,
          previous: current.previous,
          ...defined({ list: kept.list, note }),
        };
    const begins = proof.previous === undefined;
    return planned({ request, assembly, begins, before: current.state, proof, state, turn: current.turn });
  }

  /** Continues the epoch of an earlier process, if its last request can be rendered in time. */
  async #resume(session: SessionId): Promise<void> {
    this.#resumed = true;
    const until = performance.now() + RESUME_MS;
    // A result after the time limit is ignored, because a new epoch has begun.
    const inTime = <T>(work: Promise<T>): Promise<T | typeof LATE> =>
      withinLimit<T | typeof LATE>(work, Math.max(0, until - performance.now()), () => LATE).catch(() => LATE);
    const last = await inTime(this.#lastRecord(session));
    this.#goesBack = last !== undefined;
    if (last === undefined || last === LATE) return;
    this.#number = last.epoch.number;
    this.#calls = last.epoch.calls;
    const current = await inTime(this.#rendered(session, last));
    this.#current = current === LATE ? undefined : current;
  }

  async #lastRecord(session: SessionId): Promise<EpochRecord | undefined> {
    // Waits until earlier records are delivered. An older record would set the epoch back.
    const store = await this.#client.delivered({ others: false });
    const records = await (await store.latest()).assemblies(session, { onDamaged: () => undefined });
    return records.findLast(isOfEpoch);
  }

  async #rendered(session: SessionId, last: EpochRecord): Promise<CurrentEpoch | undefined> {
    const { store } = this.#client;
    const {
      equal,
      epoch: state,
      input,
    } = await new AssemblyRebuilder(storeOf(store, await ofSession(await store.latest(), session))).rebuild(last);
    if (!equal || state === undefined) return undefined;
    const { step, sha256, epoch, at, tail } = last;
    const adds = epoch.previous === undefined || epoch.note !== undefined;
    const previous = adds ? { step, sha256 } : epoch.previous;
    const { systemPrompt } = input;
    const system = systemPrompt === '' ? null : systemPrompt;
    return { session, state, turn: tail?.turn ?? 0, proof: epoch, previous, step, at, system };
  }
}
