import pLimit from 'p-limit';
import { DEFAULT_LOOP_LAYOUT, type FrozenTail, type LayoutName } from '../assembly/assembly-record.js';
import type { EpochSettings } from '../assembly/epoch/border.js';
import type { EpochInput } from '../assembly/epoch/epoch-state.js';
import type { RenderedMessage } from '../assembly/render-messages.js';
import type { SessionAroundTail, SessionAssembly, SessionAssemblyRecord } from '../client/session/assemble-session.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { Delivery, HandedList } from '../objects/assembly-proof.js';
import type { SessionId } from '../objects/ids.js';
import type { HistoryEvent } from '../objects/step.js';
import type { Verb } from '../session/verb-outcome.js';
import { defined } from '../values/defined.js';
import { tokensOf } from '../values/token-estimate.js';
import { listTail } from './epoch-tail.js';
import { GrowingTail } from './growing-tail.js';
import { type ChangingCall, HarnessSession, type HarnessSettings } from './harness-session.js';
import { beginsWith, GrowingHistory, startOf } from './history-item.js';
import { type LineageHistory, type LineageName, openBranch, openLineage } from './lineage.js';
import { aroundList, epochOf, type LoopEpoch, LoopEpochs, type LoopInsert, type PlannedEpoch } from './loop-epochs.js';
import type { ReportedMessage } from './message-schema.js';
import type { VerbReport } from './record-call.js';
import type { PlacedEntry } from './reported-chat.js';

/** How a session in a harness's loop is opened: under the harness's own name of it. */
export interface LoopOptions extends LineageName, Omit<HarnessSettings, 'delivered'> {
  readonly delivered: Delivery;
  readonly layout?: LayoutName;
  /** When epochs end, where that is not as usual (layout `epoch`). */
  readonly epochs?: Partial<EpochSettings>;
}

/** How the contexts of a session are shown; what is left out stays as it was. */
export interface Rendering {
  /** The literal behaviour of every divergence that has one (decision E8). */
  readonly strict?: boolean;
  /** The shortest unique prefixes of ids (decision D6). */
  readonly shortIds?: boolean;
}

/** A harness's list as it is before a model call. */
interface LoopHistory extends LineageHistory, Rendering {
  /** The whole list, without system messages. They do not change; one that stays as it was in the list before is the same object. */
  readonly messages: readonly ReportedMessage[];
  /** The system prompt of the call, where it is known already. */
  readonly system?: string | null;
  /** Since the last context a model call went out with the harness's own list: what the model thought then is bound to another beginning. */
  readonly ownList?: boolean;
  /** The model's own name and its window in tokens, where the harness tells them. */
  readonly model?: string;
  readonly window?: number;
}

/** What the list of the next model call is made of: messages of ours around the part that stays, and lines in the place of results in it. */
export interface LoopContext {
  readonly session: SessionId;
  /** The first message of the list that stays. */
  readonly from: number;
  readonly before: readonly RenderedMessage[];
  /** By rising index, at most one for each; all those of the epoch so far. */
  readonly inserts: readonly LoopInsert[];
  readonly after: readonly RenderedMessage[];
  /** Results that are not active, or whose text stands elsewhere in an epoch's request: the message of each, and what takes its place. */
  readonly references: readonly { readonly index: number; readonly text: string }[];
  /** With layout `epoch`. */
  readonly epoch?: LoopEpoch;
  readonly pool: number;
  readonly active: number;
}

/** How a list was handed over. */
export interface HandedOver extends HandedList {
  /** The system prompt that went with it, where it was not known before. */
  readonly system?: string | null;
}

/** A list that was followed, every entry of which has its place, and the last step of its session then. */
interface FollowedList {
  readonly harness: HarnessSession;
  readonly messages: readonly ReportedMessage[];
  readonly placed: readonly PlacedEntry[];
  readonly seq: number;
}

const isSameList = (a: readonly ReportedMessage[], b: readonly ReportedMessage[]): boolean => a.length === b.length && beginsWith(b, a);

interface PlacedHistory extends LoopHistory {
  readonly placed: readonly PlacedEntry[];
  readonly start: PlacedEntry;
}

/** Whether a context was made with the prompt that it went out with; a harness that says nothing of it has said so before. */
const isPrompt = (said: string | null | undefined, made: string | null): boolean =>
  said === undefined || (said === '' ? null : said) === made;

/** How long the database may take for a context: a model call waits. */
const DATABASE_MS = 500;

/**
 * A session whose context is what a harness's model sees (SSOT §5.1): follows the harness's own history, gives what the next list is made of, and keeps
 * the record of what was handed over. What the harness undid goes on in a branch: a fork at the last step that both share.
 */
export class LoopSession {
  readonly #client: ContextClient;
  #options: LoopOptions;
  #current: HarnessSession | undefined;
  /** The context that was given last: it may be handed over again, when another system prompt went with it than was expected. */
  #pending: (({ readonly around: SessionAroundTail } | { readonly epoch: PlannedEpoch }) & Pick<EpochInput, 'active'>) | undefined;
  /** The list that was followed last: what was said is mostly followed before the model is called again, and then nothing is new. */
  #followed: FollowedList | undefined;
  readonly #history = new GrowingHistory();
  readonly #tail = new GrowingTail(this.#history);
  /** The context that the session knows to be handed out. */
  #told: object | undefined;
  /** Ends when the list is handed over that a model waits for. */
  #wait: () => void = () => undefined;
  readonly #serial = pLimit(1);
  readonly #epochs: LoopEpochs;

  constructor(client: ContextClient, options: LoopOptions) {
    this.#client = client;
    this.#options = { layout: DEFAULT_LOOP_LAYOUT, ...options };
    this.#epochs = new LoopEpochs(client, options.epochs);
  }

  /** The session that is at work; undefined before the first history. */
  get session(): HarnessSession['session'] | undefined {
    return this.#current?.session;
  }

  /** Follows the history without giving a context: after the last model call of a run. */
  follow(history: LoopHistory): Promise<void> {
    const { messages } = history;
    // After a result the next model call is near.
    if (messages.at(-1)?.role !== 'assistant') {
      this.#client.gate.announce();
      this.#current?.session.refresh();
    }
    return this.#serial(async () => {
      await this.#follow(history);
    });
  }

  /** What the list of the next model call is made of; undefined where there is no message of the user to begin the running turn with. */
  context(history: LoopHistory): Promise<LoopContext | undefined> {
    this.#wait();
    const wait = this.#client.gate.close();
    this.#wait = wait;
    const context = this.#serial(async () => {
      this.#pending = undefined;
      this.#current?.session.refresh();
      const { harness, placed } = await this.#follow(history);
      const from = startOf(this.#history.of(history.messages));
      const start = placed.findLast(({ index, role }) => index === from && role === 'user');
      if (from === undefined || start === undefined) return undefined;
      if (this.#options.layout === 'epoch') return this.#inEpoch(harness, { ...history, placed, start });
      const results = placed.flatMap(({ kind, index, callId }) =>
        kind === 'call' && index >= from && callId !== undefined ? [{ index, callId }] : [],
      );
      const assembly = await this.#assembly(harness);
      const around = assembly.asAround({ turn: start.turn, results: results.map(({ callId }) => callId) });
      this.#pending = { around, active: assembly.input.active };
      const references = results.flatMap(({ index, callId }) => {
        const text = around.references.get(callId);
        return text === undefined ? [] : [{ index, text }];
      });
      const { index: pool, active } = harness.session.state.sets;
      const { before, after } = around;
      return { session: harness.id, from, before, inserts: [], after, references, pool: pool.length, active: active.length };
    });
    context.then((made) => made ?? wait(), wait);
    return context;
  }

  /** Keeps the record of the context that was asked for last (decision E7); undefined where there was none. */
  handed({ system, ...handed }: HandedOver): Promise<SessionAssemblyRecord | undefined> {
    const kept = this.#serial(async () => {
      const [harness, pending] = [this.#current, this.#pending];
      if (harness === undefined || pending === undefined) return undefined;
      if (system !== undefined) await harness.setSystemPrompt(system);
      const epoch = 'epoch' in pending ? await this.#asHanded(harness, pending.epoch, system) : undefined;
      const record = 'epoch' in pending ? (epoch ?? pending.epoch).context.record : await this.#record(harness, pending.around, system);
      // It may be handed over again, with another prompt.
      if (this.#told !== pending) {
        const told = 'epoch' in pending ? { tokens: pending.epoch.tokens, isBase: pending.epoch.begins } : undefined;
        harness.session.seen.context(pending.active);
        harness.session.handedOut(told ?? { tokens: Math.round(tokensOf(record.chars)), isBase: false });
      }
      this.#told = pending;
      // It went out: where its record cannot be kept, nothing that follows on it could be made again, and the next request begins an epoch.
      if (epoch !== undefined) this.#epochs.forget();
      const kept = await harness.session.deliver(record, { delivered: this.#options.delivered, handed });
      if (epoch !== undefined) this.#epochs.handed(epoch);
      return kept;
    });
    kept.then(this.#wait, this.#wait);
    return kept;
  }

  /** Says that a call has begun (decision 0010). */
  expect(callId: string): void {
    this.#current?.session.expectCall(callId);
  }

  /** Activates, deactivates, pins or unpins on behalf of the agent [§3.3]; rejects where the first history has not come yet. */
  verb(verb: Verb, references: readonly string[], callId: string | undefined): Promise<VerbReport> {
    return this.#serial(async () => this.#opened().verb(verb, references, callId === undefined ? {} : { callId }));
  }

  /** What the model is told instead of a call that would change a file which is not as it saw it last; see `HarnessSession.beforeChange`. */
  async beforeChange(call: ChangingCall): Promise<string | undefined> {
    return this.#current?.beforeChange(call);
  }

  /** The next message of the user begins an epoch (layout `epoch`). */
  tidy(): void {
    this.#epochs.ask();
  }

  /** Notes what the harness did to its history. */
  event(event: HistoryEvent): Promise<void> {
    return this.#serial(async () => this.#current?.session.recordEvent(event));
  }

  /** Pauses the session [§3.6]. Idempotent. */
  close(): Promise<void> {
    this.#wait();
    return this.#serial(async () => {
      const open = this.#current;
      this.#current = undefined;
      await open?.close();
    });
  }

  #opened(): HarnessSession {
    if (this.#current === undefined) throw new Error(`the session ${this.#options.id} has not begun: its first model call opens it`);
    return this.#current;
  }

  #assembly(harness: HarnessSession): Promise<SessionAssembly> {
    const { layout, strict, shortIds } = this.#options;
    const around = layout === 'epoch' ? undefined : layout;
    return harness.session.assemble({ optimistic: true, timeoutMs: DATABASE_MS, ...defined({ layout: around, strict, shortIds }) });
  }

  async #assemble(harness: HarnessSession, tail: FrozenTail): Promise<SessionAroundTail> {
    return (await this.#assembly(harness)).asAround(tail);
  }

  /** The record of a context as it went out with a prompt. */
  async #record(harness: HarnessSession, around: SessionAroundTail, system: string | null | undefined) {
    const { tail } = around.record;
    const { record } = tail === undefined || isPrompt(system, around.system) ? around : await this.#assemble(harness, tail);
    return record;
  }

  /** A request of an epoch as it went out with a prompt. */
  async #asHanded(harness: HarnessSession, made: PlannedEpoch, system: string | null | undefined): Promise<PlannedEpoch> {
    const again = isPrompt(system, made.context.system) ? made : this.#epochs.again(made, await this.#assembly(harness));
    // A file that changed in between does not stand in the list that went out: the record is of that list.
    return again ?? made;
  }

  async #inEpoch(harness: HarnessSession, history: PlacedHistory): Promise<LoopContext> {
    const { messages, placed, start, ownList = false, model, window } = history;
    const assembly = await this.#assembly(harness);
    const tail = listTail({ messages, placed, start, turn: assembly.state.turn, known: this.#tail });
    const request = { session: harness.id, tail, now: this.#client.now(), ownList, ...defined({ model, window }) };
    const epoch = await this.#epochs.next(request, assembly);
    this.#pending = { epoch, active: assembly.input.active };
    const { from, inserts, references } = aroundList(epoch);
    const { index: pool, active } = harness.session.state.sets;
    return {
      session: harness.id,
      from,
      before: epoch.context.before,
      inserts,
      after: [],
      references,
      epoch: epochOf(epoch),
      pool: pool.length,
      active: active.length,
    };
  }

  async #follow({ messages, system, compacted = false, strict, shortIds }: LoopHistory): Promise<{
    readonly harness: HarnessSession;
    readonly placed: readonly PlacedEntry[];
  }> {
    const rendering = defined({ strict, shortIds });
    this.#options = { ...this.#options, ...rendering };
    this.#current?.render(rendering);
    // What it lost is kept in a fork; the whole history is here, and what is missing of it is recorded again.
    if (this.#current?.session.isLost === true) {
      this.#current = undefined;
      this.#epochs.forget();
    }
    this.#current ??= this.#wrap(await openLineage(this.#client, this.#options, { messages, compacted }));
    const report = async (harness: HarnessSession, refuseUndone: boolean) => {
      if (system !== undefined) await harness.setSystemPrompt(system);
      const before = this.#followed;
      const { seq } = harness.session.state;
      if (before?.harness === harness && before.seq === seq && isSameList(before.messages, messages)) return { placed: before.placed };
      const {
        undoneFrom,
        placed = [],
        known,
        recorded,
      } = await harness.reportMessages(messages, {
        mode: 'history',
        compacted,
        refuseUndone,
        growing: this.#history,
      });
      const isWhole = undoneFrom === undefined && placed.length === known + recorded.length;
      this.#followed = isWhole ? { harness, messages: [...messages], placed, seq: harness.session.state.seq } : undefined;
      return { placed, ...defined({ undoneFrom }) };
    };
    const first = await report(this.#current, true);
    if (first.undoneFrom === undefined) return { harness: this.#current, placed: first.placed };
    const left = this.#current;
    // Where the database is away this fails; the session stays as it is, and the next history tries again.
    const harness = this.#wrap(await openBranch(this.#client, this.#options.id, { id: left.id, at: first.undoneFrom }));
    // Whatever becomes of the one that is left behind, its closed session is not gone on with.
    this.#current = harness;
    await left.close();
    const { placed } = await report(harness, false);
    return { harness, placed };
  }

  #wrap(session: ContextSession): HarnessSession {
    return new HarnessSession(this.#client, session, this.#options);
  }
}
