import pLimit from 'p-limit';
import { DEFAULT_LOOP_LAYOUT, type LayoutName } from '../../assembly/assembly-record.js';
import type { EpochSettings } from '../../assembly/epoch/border.js';
import type { EpochInput } from '../../assembly/epoch/epoch-state.js';
import type { ContextClient } from '../../client/session/context-client.js';
import type { ContextSession } from '../../client/session/context-session.js';
import type {
  SessionAroundTail,
  SessionAssembly,
  SessionAssemblyRecord,
} from '../../client/session/session-assembly.js';
import type { PlacedRequest, RecordPlace } from '../../client/session/session-contexts.js';
import { listTail } from '../../harness/epoch-tail.js';
import { GrowingTail } from '../../harness/growing-tail.js';
import { type ChangingCall, HarnessSession, type HarnessSettings } from '../../harness/harness-session.js';
import { beginsWith, GrowingHistory, startOf } from '../../harness/history-item.js';
import { aroundList, epochOf, LoopEpochs, type PlannedEpoch } from '../../harness/loop-epochs.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import type { VerbReport } from '../../harness/record-call.js';
import type { PlacedEntry } from '../../harness/reported-chat.js';
import type { Delivery, HandedList } from '../../objects/assembly-proof.js';
import type { HistoryEvent } from '../../objects/step.js';
import type { Verb } from '../../session/verb-outcome.js';
import { defined } from '../../values/defined.js';
import { tokensOf } from '../../values/token-estimate.js';
import { type LineageHistory, type LineageName, openBranch, openLineage } from './lineage.js';
import { type LoopContext, type Rendering, withMaskedResults } from './loop-context.js';

/** How to open a session for a harness's loop. The session has the harness's name for it. */
export interface LoopOptions extends LineageName, Omit<HarnessSettings, 'delivered'> {
  readonly delivered: Delivery;
  readonly layout?: LayoutName;
  /** Whether a guide precedes our first text (layout `epoch`). Default: false. */
  readonly guided?: boolean;
  /** Changes the defaults that decide when an epoch ends (layout `epoch`). */
  readonly epochs?: Partial<EpochSettings>;
}

/** A harness's list before a model call. */
interface LoopHistory extends LineageHistory, Rendering {
  /**
   * The whole list without system messages. Messages must not change. An unchanged message must be
   * the same object as in the previous list.
   */
  readonly messages: readonly ReportedMessage[];
  /** The system prompt of the call, if already known. */
  readonly system?: string | null;
  /**
   * Whether a model call has used the harness's own list since the last context. Its reasoning is
   * then bound to that list.
   */
  readonly ownList?: boolean;
  /** The model's name, if the harness reports it. */
  readonly model?: string;
  /** The model's window in tokens, if the harness reports it. */
  readonly window?: number;
}

/** A list that was sent to the model. */
export interface HandedOver extends HandedList {
  /** The system prompt of the call, if it was not known before. */
  readonly system?: string | null;
}

/** The last list that was recorded, and the session's last step at that time. */
interface FollowedList {
  readonly harness: HarnessSession;
  readonly messages: readonly ReportedMessage[];
  readonly placed: readonly PlacedEntry[];
  readonly seq: number;
  /** Whether each of its entries has a place. */
  readonly isWhole: boolean;
}

const isSameList = (a: readonly ReportedMessage[], b: readonly ReportedMessage[]): boolean =>
  a.length === b.length && beginsWith(b, a);

interface PlacedHistory extends LoopHistory {
  readonly placed: readonly PlacedEntry[];
  readonly start: PlacedEntry;
}

/**
 * Returns whether a context was made with the system prompt of its call. If the harness reports no
 * prompt now, it reported the prompt earlier.
 */
const isPrompt = (said: string | null | undefined, made: string | null): boolean =>
  said === undefined || (said === '' ? null : said) === made;

/** Returns a session's id and the sizes of its sets. */
function countsOf({
  id: session,
  session: { state },
}: HarnessSession): Pick<LoopContext, 'session' | 'pool' | 'active'> {
  return { session, pool: state.sets.index.length, active: state.sets.active.length };
}

/** Time limit for database reads of a context. It is short because a model call waits. */
const DATABASE_MS = 500;

/**
 * A session whose context is sent to a harness's model (SSOT §5.1). It records the harness's
 * history, returns the changes to the next list, and stores an assembly record for each list that
 * was sent. If the harness undoes entries, it continues in a branch: a fork after the last common
 * step.
 */
export class LoopSession {
  readonly #client: ContextClient;
  #options: LoopOptions;
  #current: HarnessSession | undefined;
  /**
   * The last context. It may be handed out a second time, with a system prompt other than expected.
   */
  #pending:
    | (({ readonly around: SessionAroundTail } | { readonly epoch: PlannedEpoch }) & Pick<EpochInput, 'active'>)
    | undefined;
  /**
   * The last recorded list. Messages are usually recorded before the next model call, which then
   * has nothing left to record.
   */
  #followed: FollowedList | undefined;
  readonly #history = new GrowingHistory();
  readonly #tail = new GrowingTail(this.#history);
  /** The last context whose use the session has noted, so that it is noted only once. */
  #told: object | undefined;
  /** Ends the delay of deliveries during a model call. Called once the list is handed out. */
  #wait: () => void = () => undefined;
  readonly #serial = pLimit(1);
  /** Stores whole requests one after another. */
  readonly #requests = pLimit(1);
  readonly #epochs: LoopEpochs;

  constructor(client: ContextClient, options: LoopOptions) {
    this.#client = client;
    this.#options = { layout: DEFAULT_LOOP_LAYOUT, ...options };
    this.#epochs = new LoopEpochs(client, options.epochs);
  }

  /** The open session. Undefined before the first history. */
  get session(): HarnessSession['session'] | undefined {
    return this.#current?.session;
  }

  /** Announces a model call, so that the check for other writers runs before the call arrives. */
  announce(): void {
    this.#client.gate.announce();
    this.#current?.session.refresh();
  }

  /**
   * Records the history without making a context, for example after the last model call of a run.
   */
  follow(history: LoopHistory): Promise<void> {
    const { messages } = history;
    // After a result, the next model call follows soon.
    if (messages.at(-1)?.role !== 'assistant') this.announce();
    return this.#serial(async () => {
      await this.#follow(history);
    });
  }

  /**
   * Returns the changes to the list of the next model call. Undefined if no user message begins the
   * running turn.
   */
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
      const masked = (made: LoopContext): LoopContext =>
        withMaskedResults(made, this.#history.of(history.messages), this.#client.mask);
      if (this.#options.layout === 'epoch') return masked(await this.#inEpoch(harness, { ...history, placed, start }));
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
      const { before, after } = around;
      return masked({ ...countsOf(harness), from, before, inserts: [], after, references });
    });
    context.then((made) => made ?? wait(), wait);
    return context;
  }

  /**
   * Stores the record of the last context (decision E7). Returns undefined if there is no context.
   */
  handed({ system, ...handed }: HandedOver): Promise<SessionAssemblyRecord | undefined> {
    const kept = this.#serial(async () => {
      const [harness, pending] = [this.#current, this.#pending];
      if (harness === undefined || pending === undefined) return undefined;
      if (system !== undefined) await harness.setSystemPrompt(system);
      const epoch = 'epoch' in pending ? await this.#asHanded(harness, pending.epoch, system) : undefined;
      const record =
        'epoch' in pending
          ? (epoch ?? pending.epoch).context.record
          : await this.#record(harness, pending.around, system);
      // A context that is handed out again has been noted already.
      if (this.#told !== pending) {
        const told = 'epoch' in pending ? { tokens: pending.epoch.tokens, isBase: pending.epoch.begins } : undefined;
        harness.session.seen.context(pending.active);
        harness.session.handedOut(told ?? { tokens: Math.round(tokensOf(record.chars)), isBase: false });
      }
      this.#told = pending;
      // The request has been sent. If its record cannot be stored, later requests of the epoch
      // could not be rebuilt. So a new epoch begins, unless the record is stored.
      if (epoch !== undefined) this.#epochs.forget();
      const kept = await harness.session.deliver(record, { delivered: this.#options.delivered, handed });
      if (epoch !== undefined) this.#epochs.handed(epoch);
      return kept;
    });
    kept.then(this.#wait, this.#wait);
    return kept;
  }

  /**
   * Stores a whole request. Its place is given, or is the end of its history, with which the last
   * recorded list begins. Returns false if the request cannot be stored yet.
   */
  sent({ step, turn, messages = 0, ...request }: PlacedRequest): Promise<boolean> {
    const found = this.#serial(async () => {
      const { session } = this.#current ?? {};
      const at = step === undefined || turn === undefined ? this.#placeBehind(messages) : { step, turn };
      return session === undefined || at === undefined ? undefined : { session, at };
    });
    // Outside of `#serial`, because it waits for the database and the next context must not.
    return this.#requests(async () => {
      const { session, at } = (await found) ?? {};
      return at !== undefined && (await session?.keepSent({ ...request, ...at })) !== undefined;
    });
  }

  #placeBehind(messages: number): RecordPlace | undefined {
    const { harness, placed, messages: all = [] } = this.#followed ?? {};
    if (harness === undefined || harness !== this.#current || messages > all.length) return undefined;
    const last = placed?.findLast(({ index }) => index < messages);
    return last === undefined ? undefined : { step: last.seq, turn: last.turn };
  }

  /** Announces a call that has begun (decision 0010). */
  expect(callId: string): void {
    this.#current?.session.expectCall(callId);
  }

  /**
   * Activates, deactivates, pins or unpins objects for the agent [§3.3]. Rejects if no history was
   * recorded yet.
   */
  verb(verb: Verb, references: readonly string[], callId: string | undefined): Promise<VerbReport> {
    return this.#serial(async () => this.#opened().verb(verb, references, callId === undefined ? {} : { callId }));
  }

  /**
   * Returns a text for the model if a call would change a file that differs from what the model saw
   * last. See `HarnessSession.beforeChange`.
   */
  async beforeChange(call: ChangingCall): Promise<string | undefined> {
    return this.#current?.beforeChange(call);
  }

  /** Makes the user's next message begin an epoch (layout `epoch`). */
  tidy(): void {
    this.#epochs.ask();
  }

  /** Records a change of the harness's history. */
  event(event: HistoryEvent): Promise<void> {
    return this.#serial(async () => this.#current?.session.recordEvent(event));
  }

  /** Pauses the session [§3.6]. Idempotent. */
  async close(): Promise<void> {
    this.#wait();
    await this.#requests(() => undefined);
    return this.#serial(async () => {
      const open = this.#current;
      this.#current = undefined;
      await open?.close();
    });
  }

  #opened(): HarnessSession {
    if (this.#current === undefined)
      throw new Error(`the session ${this.#options.id} has not begun: its first model call opens it`);
    return this.#current;
  }

  #assembly(harness: HarnessSession): Promise<SessionAssembly> {
    const { layout, strict, shortIds, guided } = this.#options;
    const around = layout === 'epoch' ? undefined : layout;
    return harness.session.assemble({
      optimistic: true,
      timeoutMs: DATABASE_MS,
      ...defined({ layout: around, strict, shortIds, guided }),
    });
  }

  /** Returns the assembly record of a context, made with the system prompt of its call. */
  async #record(harness: HarnessSession, around: SessionAroundTail, system: string | null | undefined) {
    const { tail } = around.record;
    if (tail === undefined || isPrompt(system, around.system)) return around.record;
    return (await this.#assembly(harness)).asAround(tail).record;
  }

  /** Returns an epoch's request, made with the system prompt of its call. */
  async #asHanded(
    harness: HarnessSession,
    made: PlannedEpoch,
    system: string | null | undefined,
  ): Promise<PlannedEpoch> {
    const again = isPrompt(system, made.context.system)
      ? made
      : this.#epochs.again(made, await this.#assembly(harness));
    // `again` is undefined if a file has changed since. The sent list has the old text, so its
    // record must have the old text, too.
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
    const { before } = epoch.context;
    return { ...countsOf(harness), from, before, inserts, after: [], references, epoch: epochOf(epoch) };
  }

  async #follow({ messages, system, compacted = false, strict, shortIds }: LoopHistory): Promise<{
    readonly harness: HarnessSession;
    readonly placed: readonly PlacedEntry[];
  }> {
    const rendering = defined({ strict, shortIds });
    this.#options = { ...this.#options, ...rendering };
    this.#current?.render(rendering);
    // The session's lost steps stay lost. The harness has its whole history, so opening the session
    // again records the missing entries.
    if (this.#current?.session.isLost === true) {
      this.#current = undefined;
      this.#epochs.forget();
    }
    this.#current ??= this.#wrap(await openLineage(this.#client, this.#options, { messages, compacted }));
    const report = async (harness: HarnessSession, refuseUndone: boolean) => {
      if (system !== undefined) await harness.setSystemPrompt(system);
      const before = this.#followed;
      const { seq } = harness.session.state;
      if (
        before?.isWhole === true &&
        before.harness === harness &&
        before.seq === seq &&
        isSameList(before.messages, messages)
      )
        return { placed: before.placed };
      const options = { mode: 'history', compacted, refuseUndone, growing: this.#history } as const;
      const { undoneFrom, placed = [], known, recorded } = await harness.reportMessages(messages, options);
      const isWhole = placed.length === known + recorded.length;
      const { seq: last } = harness.session.state;
      this.#followed =
        undoneFrom === undefined ? { harness, messages: [...messages], placed, seq: last, isWhole } : undefined;
      return { placed, ...defined({ undoneFrom }) };
    };
    const first = await report(this.#current, true);
    if (first.undoneFrom === undefined) return { harness: this.#current, placed: first.placed };
    const left = this.#current;
    // During an outage, opening the branch fails. The session is then unchanged, and the next
    // history tries again.
    const harness = this.#wrap(await openBranch(this.#client, this.#options.id, { id: left.id, at: first.undoneFrom }));
    // Set before closing: even if that fails, the old session must not be continued.
    this.#current = harness;
    await left.close();
    const { placed } = await report(harness, false);
    return { harness, placed };
  }

  #wrap(session: ContextSession): HarnessSession {
    return new HarnessSession(this.#client, session, this.#options);
  }
}
