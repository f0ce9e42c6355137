import type { ContextSession } from '../client/session/context-session.js';
import type { ObjectId } from '../objects/ids.js';
import type { ChatMark } from '../session/session-fold.js';
import { defined } from '../values/defined.js';
import {
  announcedIds,
  beginsWith,
  type CallItem,
  type GrowingHistory,
  type History,
  type HistoryItem,
  historyOf,
  leftOpen,
  type MessageSteps,
  type OpenCall,
  stepOf,
} from './history-item.js';
import { chatEntries, isCompared, type KnownEntry, knownSilent, sentEntry } from './known-history.js';
import type { ReportedMessage } from './message-schema.js';
import type { ObservationContext } from './observe-call.js';
import { type HistoryEntry, type HistoryNotice, type Reconciled, reconcileWith } from './reconcile.js';
import { type CallExtras, findKnownCall, type ReportedCall, recordItem } from './record-call.js';

/** Options for reporting messages. */
export interface ReportOptions {
  /** `append` (the default): new messages only. `history`: the whole history (decision F1). */
  readonly mode?: 'append' | 'history';
  /** The turn's id in the harness (decision B7). */
  readonly turnRef?: string;
  /** Whether the harness compacted its history. If so, missing entries do not count as undone. */
  readonly compacted?: boolean;
  /** If a whole history lacks the end of the chat, records nothing and reports `undoneFrom`. */
  readonly refuseUndone?: boolean;
  /** In mode `append`, entries up to this step do not count as known. Default: 0. */
  readonly since?: number;
  /** Cache for whole histories. Unchanged messages must be the same objects. */
  readonly growing?: GrowingHistory;
}

/** The place in the session of one entry of a history. */
export interface PlacedEntry {
  readonly index: number;
  readonly kind: 'message' | 'call';
  readonly role?: string;
  readonly turn: number;
  readonly seq: number;
  readonly callId?: ObjectId;
}

/** An entry that a report recorded. */
export interface RecordedEntry {
  /** Index of the entry's message, from 0. */
  readonly index: number;
  readonly kind: 'message' | 'call';
  /** The id of a call's object. */
  readonly callId?: ObjectId;
}

/** The result of a message report. */
export interface MessagesReport {
  readonly recorded: readonly RecordedEntry[];
  /** Number of entries that the session already had. */
  readonly known: number;
  /** Describes how a history differs if it does not just continue the chat. Nothing was deleted. */
  readonly notice: HistoryNotice | undefined;
  /** Effects of calls on files that were rejected, with the reasons. */
  readonly notes: readonly string[];
  /** The place of each entry of a whole history. */
  readonly placed?: readonly PlacedEntry[];
  /** The last common step, or 0. Later steps were undone, and nothing was recorded. */
  readonly undoneFrom?: number;
}

/** An entry that was recorded now, with its place. */
interface Taken {
  readonly entry: RecordedEntry;
  readonly place: Pick<KnownEntry, 'seq' | 'turn' | 'ref'>;
  readonly notes: readonly string[];
}

/**
 * A whole history that has all of the chat, with the place of each entry. If it grows, only the new
 * part is processed.
 */
interface PlacedHistory {
  readonly messages: readonly ReportedMessage[];
  readonly placed: readonly PlacedEntry[];
  /** The last step of the chat. */
  readonly seq: number;
  /** The steps of the messages, by index. */
  readonly steps: ReadonlyMap<number, number>;
}

const places = (items: readonly unknown[]): readonly number[] => [...items.keys()];
const placeOf = ({ seq, turn, ref }: Taken['place']): Taken['place'] => ({ seq, turn, ...defined({ ref }) });

/** Returns further facts about an entry for its recording. */
const extrasOf = (
  item: HistoryItem,
  { turnRef, steps }: { readonly turnRef: string | undefined; readonly steps: MessageSteps },
): CallExtras => defined({ turnRef, by: item.kind === 'call' ? stepOf(item, steps) : undefined });

function placedEntries(
  items: readonly HistoryItem[],
  sent: readonly (KnownEntry | undefined)[],
): readonly PlacedEntry[] {
  return items.flatMap((item, i) => {
    const place = sent[i];
    if (place === undefined) return [];
    const { index, kind } = item;
    const { seq, turn, ref } = place;
    const what = item.kind === 'message' ? { role: item.role } : {};
    return [{ index, kind, ...what, seq, turn, ...defined({ callId: ref }) }];
  });
}

const reportOf = (taken: readonly Taken[], entries: number, notice: HistoryNotice | undefined): MessagesReport => ({
  recorded: taken.map(({ entry }) => entry),
  known: entries - taken.length,
  notice,
  notes: taken.flatMap(({ notes }) => notes),
});

/** Returns the number of entries in a chat. */
const entriesIn = (marks: readonly ChatMark[]): number =>
  marks.reduce((count, { message, call }) => count + (message === undefined ? 0 : 1) + (call === undefined ? 0 : 1), 0);

const differentPlaces = (placed: readonly PlacedEntry[]): number =>
  new Set(placed.map(({ kind, seq }) => `${kind} ${seq}`)).size;

/**
 * Records the new part of each list that a harness reports [§5.1], and remembers the list. Calls of
 * its methods must not overlap.
 */
export class ReportedChat {
  readonly #session: ContextSession;
  readonly #context: () => ObservationContext;
  /** The entries of the harness's last list. Their order may differ from the chat's. */
  #sent: KnownEntry[] = [];
  /** For each message id, the last step that has the message. */
  #sentAt = new Map<string, number>();
  /** The harness's last list, if it has all of the chat. */
  #whole: PlacedHistory | undefined;
  #open: ReadonlyMap<string, OpenCall> = new Map();
  /** Ids of the running turn's calls that were recorded before their messages. */
  readonly #early = new Set<string>();

  /** `context` returns what is currently needed to judge a call. */
  constructor(session: ContextSession, context: () => ObservationContext) {
    this.#session = session;
    this.#context = context;
  }

  /** Records a finished call that was reported without its message, unless the session has it. */
  async record(call: CallItem, extras: CallExtras): Promise<ReportedCall> {
    if (call.id !== undefined && !this.#open.has(call.id)) this.#early.add(call.id);
    const by = call.id === undefined ? undefined : stepOf(this.#open.get(call.id));
    return this.#record(call, { ...extras, ...defined({ by }) });
  }

  async #record(call: CallItem, extras: CallExtras, since?: number): Promise<ReportedCall> {
    const known = await findKnownCall(this.#session, call, since);
    if (known !== undefined) return { callId: known, outcome: 'known', files: 0, collapsed: [], notes: [] };
    return recordItem(this.#session, call, { context: this.#context(), extras });
  }

  /** Records those entries of a report that are new. */
  report(messages: readonly ReportedMessage[], options: ReportOptions): Promise<MessagesReport> {
    return options.mode === 'history' ? this.#reportHistory(messages, options) : this.#reportNew(messages, options);
  }

  async #reportNew(
    messages: readonly ReportedMessage[],
    { turnRef, since = 0 }: ReportOptions,
  ): Promise<MessagesReport> {
    // Later system messages are additions by the harness and not the system prompt.
    const history = historyOf(messages, { known: this.#open, prompt: this.#session.state.seq === 0 });
    const { items } = history;
    const entries = items.map((item) => sentEntry(item, this.#session.mask));
    if (history.systemPrompt !== undefined) await this.#session.setSystemPrompt(history.systemPrompt);
    const taken: Taken[] = [];
    const steps = new Map<number, number>();
    for (const i of this.#unseen(entries, since)) {
      const [item, entry] = [items[i], entries[i]];
      if (item === undefined || entry === undefined) continue;
      if (!isCompared(item) && (await this.#hasCallsOf(messages[item.index], { later: items.slice(i + 1), since })))
        continue;
      const one = await this.#take(item, { whole: false, since, ...extrasOf(item, { turnRef, steps }) });
      if (one === undefined) continue;
      taken.push(one);
      if (item.kind === 'message') steps.set(item.index, one.place.seq);
      // The entries are stored one by one, so that a report that fails halfway can be repeated.
      if (isCompared(item)) this.#keepSent([{ ...entry, ...one.place }]);
    }
    this.#open = leftOpen(history.open, steps);
    return reportOf(taken, items.length, undefined);
  }

  async #reportHistory(messages: readonly ReportedMessage[], options: ReportOptions): Promise<MessagesReport> {
    const { turnRef, compacted = false, refuseUndone = false, growing } = options;
    const history = growing?.of(messages) ?? historyOf(messages);
    const whole = growing === undefined ? undefined : this.#whole;
    this.#whole = undefined;
    if (whole !== undefined && this.#onlyGrew(whole, { messages, items: history.items }))
      return this.#reportGrown(messages, { history, whole, turnRef });
    const { items } = history;
    const entries = items.map((item) => sentEntry(item, this.#session.mask));
    const compared = places(items).filter((i) => isCompared(items[i]));
    const { matched, notice, known } = this.#reconcile(
      compared.flatMap((i) => entries[i] ?? []),
      compacted,
    );
    const found = new Map(
      compared.flatMap((i, at) => (matched[at] === undefined ? [] : [[i, known[matched[at]]] as const])),
    );
    const silent = knownSilent(items, (i) => found.has(i), this.#session.state.marks);
    if (refuseUndone && notice !== undefined && notice.kind !== 'compacted') {
      const undoneFrom = known[notice.kept - 1]?.seq ?? 0;
      if (undoneFrom < this.#session.state.seq) return { ...reportOf([], items.length, notice), undoneFrom };
    }
    if (history.systemPrompt !== undefined) await this.#session.setSystemPrompt(history.systemPrompt);
    if (notice !== undefined && !this.#isNoted(notice)) await this.#session.recordEvent(notice);
    const taken: Taken[] = [];
    const sent: (KnownEntry | undefined)[] = entries.map((entry, i) => {
      const before = found.get(i) ?? silent.get(i);
      return before === undefined ? undefined : { ...entry, ...placeOf(before) };
    });
    const steps = new Map(
      items.flatMap(({ kind, index }, i) =>
        kind === 'message' && sent[i] !== undefined ? [[index, sent[i].seq]] : [],
      ),
    );
    for (const i of places(items).filter((place) => !found.has(place) && !silent.has(place))) {
      const [item, entry] = [items[i], entries[i]];
      if (item !== undefined && !isCompared(item) && this.#isEarly(messages[item.index])) continue;
      const one =
        item === undefined ? undefined : await this.#take(item, { whole: true, ...extrasOf(item, { turnRef, steps }) });
      if (item === undefined || one === undefined || entry === undefined) continue;
      taken.push(one);
      if (item.kind === 'message') steps.set(item.index, one.place.seq);
      sent[i] = { ...entry, ...one.place };
    }
    this.#sent = [];
    this.#sentAt = new Map();
    this.#keepSent(compared.flatMap((i) => sent[i] ?? []));
    this.#open = leftOpen(history.open, steps);
    for (const id of history.open.keys()) this.#session.expectCall(id);
    const placed = placedEntries(items, sent);
    const { seq, marks } = this.#session.state;
    const isWhole =
      placed.length === items.length &&
      differentPlaces(placed) === entriesIn(marks) &&
      entriesIn(marks) === items.length;
    if (growing !== undefined && isWhole) this.#whole = { messages: [...messages], placed, seq, steps };
    return { ...reportOf(taken, items.length, notice), placed };
  }

  /**
   * Returns whether a history continues one that had all of the chat. Then all later entries are
   * new. False if the chat already has one of their ids.
   */
  #onlyGrew(
    { messages: before, placed, seq }: PlacedHistory,
    { messages, items }: { readonly messages: readonly ReportedMessage[]; readonly items: readonly HistoryItem[] },
  ): boolean {
    if (seq !== this.#session.state.seq || !beginsWith(messages, before)) return false;
    const { places } = this.#session;
    return items.slice(placed.length).every(({ kind, id }) => {
      if (id === undefined) return true;
      return kind === 'message' ? places.message(id) === undefined : places.calls(id.toWellFormed()).length === 0;
    });
  }

  /** Records the entries that follow a history that had all of the chat. */
  async #reportGrown(
    messages: readonly ReportedMessage[],
    {
      history,
      whole,
      turnRef,
    }: { readonly history: History; readonly whole: PlacedHistory; readonly turnRef: string | undefined },
  ): Promise<MessagesReport> {
    const fresh = history.items.slice(whole.placed.length);
    if (history.systemPrompt !== undefined) await this.#session.setSystemPrompt(history.systemPrompt);
    const taken: Taken[] = [];
    const steps = new Map(whole.steps);
    const sent: (KnownEntry | undefined)[] = [];
    for (const item of fresh) {
      const isEarly = !isCompared(item) && this.#isEarly(messages[item.index]);
      const one = isEarly ? undefined : await this.#take(item, { whole: true, ...extrasOf(item, { turnRef, steps }) });
      sent.push(one === undefined ? undefined : { ...sentEntry(item, this.#session.mask), ...one.place });
      if (one === undefined) continue;
      taken.push(one);
      if (item.kind === 'message') steps.set(item.index, one.place.seq);
    }
    this.#keepSent(fresh.flatMap((item, i) => (isCompared(item) ? (sent[i] ?? []) : [])));
    this.#open = leftOpen(history.open, steps);
    for (const id of history.open.keys()) this.#session.expectCall(id);
    const added = placedEntries(fresh, sent);
    const placed = added.length === 0 ? whole.placed : [...whole.placed, ...added];
    const { seq } = this.#session.state;
    if (added.length === fresh.length && seq === whole.seq + taken.length)
      this.#whole = { messages: [...messages], placed, seq, steps };
    return { ...reportOf(taken, history.items.length, undefined), placed };
  }

  /** Records one entry. Returns undefined if the session already has it. */
  async #take(
    item: HistoryItem,
    { whole, since, ...extras }: CallExtras & { readonly whole: boolean; readonly since?: number },
  ): Promise<Taken | undefined> {
    const { index } = item;
    if (item.kind === 'message') {
      const { role, text, name, id, usage } = item;
      if (role === 'user') this.#early.clear();
      const message = { role, text, ...defined({ name: name?.toWellFormed() }) };
      await this.#session.reportMessage(message, id, usage);
      return { entry: { index, kind: 'message' }, place: this.#place(), notes: [] };
    }
    // In a whole history, a call is known by its place, because its id may repeat.
    const call = whole
      ? await recordItem(this.#session, item, { context: this.#context(), extras })
      : await this.#record(item, extras, since);
    if (call.outcome === 'known') return undefined;
    return {
      entry: { index, kind: 'call', callId: call.callId },
      place: { ...this.#place(), ref: call.callId },
      notes: call.notes,
    };
  }

  /** Returns whether a message's calls were reported before the message. */
  #isEarly(message: ReportedMessage | undefined): boolean {
    return message !== undefined && announcedIds(message).some((id) => this.#early.has(id));
  }

  /**
   * Returns whether the session already has a call of a message without content. `later` is the
   * rest of the report.
   */
  async #hasCallsOf(
    message: ReportedMessage | undefined,
    { later, since }: { readonly later: readonly HistoryItem[]; readonly since: number },
  ): Promise<boolean> {
    if (message === undefined || this.#isEarly(message)) return true;
    const ids = new Set(announcedIds(message));
    const first = later.find((item) => item.kind === 'call' && item.id !== undefined && ids.has(item.id));
    return first?.kind === 'call' && (await findKnownCall(this.#session, first, since)) !== undefined;
  }

  /** Returns the place of the step that was just recorded. */
  #place(): Pick<KnownEntry, 'seq' | 'turn'> {
    const { seq, turn } = this.#session.state;
    return { seq, turn };
  }

  /** Compares a history with the harness's last list and with the chat. */
  #reconcile(
    entries: readonly HistoryEntry[],
    compacted: boolean,
  ): Reconciled & { readonly known: readonly KnownEntry[] } {
    const used = new Set(entries.flatMap(({ kind, id }) => (kind === 'call' && id !== undefined ? [id] : [])));
    const chat = chatEntries(this.#session.state.marks, (id) => this.#session.metadata(id), used);
    const views = [this.#sent, chat];
    const { view, notice, ...found } = reconcileWith(views, entries);
    const named = notice !== undefined && compacted ? { ...notice, kind: 'compacted' as const } : notice;
    return { ...found, notice: named, known: views[view] ?? chat };
  }

  /** Returns whether the last event of the session already records this notice. */
  #isNoted({ kind, kept, missing }: HistoryNotice): boolean {
    const last = this.#session.state.marks.findLast(({ event }) => event !== undefined)?.event;
    return last?.kind === kind && last.kept === kept && last.missing === missing;
  }

  #keepSent(entries: readonly KnownEntry[]): void {
    for (const entry of entries) {
      this.#sent.push(entry);
      const { kind, id, seq } = entry;
      if (kind === 'message' && id !== undefined) this.#sentAt.set(id, Math.max(seq, this.#sentAt.get(id) ?? 0));
    }
  }

  /** Returns the indexes of a report's entries, without messages whose id was reported before. */
  #unseen(entries: readonly HistoryEntry[], since: number): readonly number[] {
    const { places } = this.#session;
    const isKnown = (id: string): boolean =>
      (places.message(id)?.seq ?? 0) > since || (this.#sentAt.get(id) ?? 0) > since;
    const seen = new Set<string>();
    return entries.flatMap(({ kind, id }, i) => {
      if (kind === 'call' || id === undefined) return [i];
      if (seen.has(id) || isKnown(id)) return [];
      seen.add(id);
      return [i];
    });
  }
}
