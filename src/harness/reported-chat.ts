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

/** How messages are reported. */
export interface ReportOptions {
  /** `append` (the default): only what is new. `history`: the whole history, of which what is known is found out (decision F1). */
  readonly mode?: 'append' | 'history';
  /** The harness's own id of the turn (decision B7). */
  readonly turnRef?: string;
  /** The harness says that it compacted its history: what is missing from it was not undone. */
  readonly compacted?: boolean;
  /** Records nothing of a whole history in which the end of the chat is undone; the report then says from which step on. */
  readonly refuseUndone?: boolean;
  /** In mode `append`: what stands at this step or before it does not count as known, since the harness's list began behind it; 0 if left out. */
  readonly since?: number;
  /** Of a whole history whose messages do not change: the lists before it, of which one that stayed is the same object in this one. */
  readonly growing?: GrowingHistory;
}

/** Where an entry of a whole history belongs in the session: the message that it stood in, its turn, its step and, of a call, its object. */
export interface PlacedEntry {
  readonly index: number;
  readonly kind: 'message' | 'call';
  readonly role?: string;
  readonly turn: number;
  readonly seq: number;
  readonly callId?: ObjectId;
}

/** One entry of a report that was recorded. */
export interface RecordedEntry {
  /** The message that it stood in, counted from 0. */
  readonly index: number;
  readonly kind: 'message' | 'call';
  /** The object of a call. */
  readonly callId?: ObjectId;
}

/** What became of a report of messages. */
export interface MessagesReport {
  readonly recorded: readonly RecordedEntry[];
  /** Entries that were known already. */
  readonly known: number;
  /** A history that does not simply go on from what is known; nothing was deleted for it. */
  readonly notice: HistoryNotice | undefined;
  /** What could not be taken up of the files of calls, and why. */
  readonly notes: readonly string[];
  /** Of a whole history: where each of its entries belongs. */
  readonly placed?: readonly PlacedEntry[];
  /** The last step that the history and the chat share from the beginning on, 0 for none: what came later was undone, and nothing was recorded. */
  readonly undoneFrom?: number;
}

/** An entry that was recorded just now, and where. */
interface Taken {
  readonly entry: RecordedEntry;
  readonly place: Pick<KnownEntry, 'seq' | 'turn' | 'ref'>;
  readonly notes: readonly string[];
}

/** A whole history each entry of which has its place, and the chat has no other: what only goes on from it need not be compared. */
interface PlacedHistory {
  readonly messages: readonly ReportedMessage[];
  readonly placed: readonly PlacedEntry[];
  /** The last step of the chat. */
  readonly seq: number;
  /** The steps of its messages. */
  readonly steps: ReadonlyMap<number, number>;
}

const places = (items: readonly unknown[]): readonly number[] => [...items.keys()];
const placeOf = ({ seq, turn, ref }: Taken['place']): Taken['place'] => ({ seq, turn, ...defined({ ref }) });

/** What goes with an entry when it is recorded. */
const extrasOf = (
  item: HistoryItem,
  { turnRef, steps }: { readonly turnRef: string | undefined; readonly steps: MessageSteps },
): CallExtras => defined({ turnRef, by: item.kind === 'call' ? stepOf(item, steps) : undefined });

function placedEntries(items: readonly HistoryItem[], sent: readonly (KnownEntry | undefined)[]): readonly PlacedEntry[] {
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

/** How many entries a chat has. */
const entriesIn = (marks: readonly ChatMark[]): number =>
  marks.reduce((count, { message, call }) => count + (message === undefined ? 0 : 1) + (call === undefined ? 0 : 1), 0);

const differentPlaces = (placed: readonly PlacedEntry[]): number => new Set(placed.map(({ kind, seq }) => `${kind} ${seq}`)).size;

/**
 * The list of a harness as the chat of its session takes it up [§5.1]: records what is new of each report and remembers the list as it was last sent. Its methods are
 * called one after the other.
 */
export class ReportedChat {
  readonly #session: ContextSession;
  readonly #context: () => ObservationContext;
  /** The harness's own list as it was last sent, which need not have the order of the chat. */
  #sent: KnownEntry[] = [];
  /** The last step of each message of it, by its id. */
  #sentAt = new Map<string, number>();
  /** That list, where nothing of the chat is left to be found in it. */
  #whole: PlacedHistory | undefined;
  #open: ReadonlyMap<string, OpenCall> = new Map();
  /** Calls of the running turn that were recorded before their messages, by the harness's ids. */
  readonly #early = new Set<string>();

  /** `context` makes what the files of a call are judged by, anew for each call. */
  constructor(session: ContextSession, context: () => ObservationContext) {
    this.#session = session;
    this.#context = context;
  }

  /** Records one finished call that is reported by itself, unless the session has this very call. */
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

  /** Records what is new of a report. */
  report(messages: readonly ReportedMessage[], options: ReportOptions): Promise<MessagesReport> {
    return options.mode === 'history' ? this.#reportHistory(messages, options) : this.#reportNew(messages, options);
  }

  async #reportNew(messages: readonly ReportedMessage[], { turnRef, since = 0 }: ReportOptions): Promise<MessagesReport> {
    // In the middle of a chat a system message is something that the harness put in, not the prompt.
    const history = historyOf(messages, { known: this.#open, prompt: this.#session.state.seq === 0 });
    const { items } = history;
    const entries = items.map(sentEntry);
    if (history.systemPrompt !== undefined) await this.#session.setSystemPrompt(history.systemPrompt);
    const taken: Taken[] = [];
    const steps = new Map<number, number>();
    for (const i of this.#unseen(entries, since)) {
      const [item, entry] = [items[i], entries[i]];
      if (item === undefined || entry === undefined) continue;
      if (!isCompared(item) && (await this.#hasCallsOf(messages[item.index], { later: items.slice(i + 1), since }))) continue;
      const one = await this.#take(item, { whole: false, since, ...extrasOf(item, { turnRef, steps }) });
      if (one === undefined) continue;
      taken.push(one);
      if (item.kind === 'message') steps.set(item.index, one.place.seq);
      // One by one, so that a report that fails half-way can be made again.
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
    const entries = items.map(sentEntry);
    const compared = places(items).filter((i) => isCompared(items[i]));
    const { matched, notice, known } = this.#reconcile(
      compared.flatMap((i) => entries[i] ?? []),
      compacted,
    );
    const found = new Map(compared.flatMap((i, at) => (matched[at] === undefined ? [] : [[i, known[matched[at]]] as const])));
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
      items.flatMap(({ kind, index }, i) => (kind === 'message' && sent[i] !== undefined ? [[index, sent[i].seq]] : [])),
    );
    for (const i of places(items).filter((place) => !found.has(place) && !silent.has(place))) {
      const [item, entry] = [items[i], entries[i]];
      if (item !== undefined && !isCompared(item) && this.#isEarly(messages[item.index])) continue;
      const one = item === undefined ? undefined : await this.#take(item, { whole: true, ...extrasOf(item, { turnRef, steps }) });
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
    const isWhole = placed.length === items.length && differentPlaces(placed) === entriesIn(marks) && entriesIn(marks) === items.length;
    if (growing !== undefined && isWhole) this.#whole = { messages: [...messages], placed, seq, steps };
    return { ...reportOf(taken, items.length, notice), placed };
  }

  /**
   * Whether a history goes on from one that had all of the chat. Then the list as it was last sent has the fewest new entries of all that it could be compared with, and everything behind it is new;
   * unless something of that has an id which the chat has.
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

  /** Records what stands behind a history that had all of the chat. */
  async #reportGrown(
    messages: readonly ReportedMessage[],
    { history, whole, turnRef }: { readonly history: History; readonly whole: PlacedHistory; readonly turnRef: string | undefined },
  ): Promise<MessagesReport> {
    const fresh = history.items.slice(whole.placed.length);
    if (history.systemPrompt !== undefined) await this.#session.setSystemPrompt(history.systemPrompt);
    const taken: Taken[] = [];
    const steps = new Map(whole.steps);
    const sent: (KnownEntry | undefined)[] = [];
    for (const item of fresh) {
      const isEarly = !isCompared(item) && this.#isEarly(messages[item.index]);
      const one = isEarly ? undefined : await this.#take(item, { whole: true, ...extrasOf(item, { turnRef, steps }) });
      sent.push(one === undefined ? undefined : { ...sentEntry(item), ...one.place });
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
    if (added.length === fresh.length && seq === whole.seq + taken.length) this.#whole = { messages: [...messages], placed, seq, steps };
    return { ...reportOf(taken, history.items.length, undefined), placed };
  }

  /** Records one entry; undefined when it turned out to be known. */
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
    // In a whole history the place decides whether a call is known; its id may rightly come again.
    const call = whole
      ? await recordItem(this.#session, item, { context: this.#context(), extras })
      : await this.#record(item, extras, since);
    if (call.outcome === 'known') return undefined;
    return { entry: { index, kind: 'call', callId: call.callId }, place: { ...this.#place(), ref: call.callId }, notes: call.notes };
  }

  /** Whether calls of a message were reported by themselves before it. */
  #isEarly(message: ReportedMessage | undefined): boolean {
    return message !== undefined && announcedIds(message).some((id) => this.#early.has(id));
  }

  /** Whether the chat has calls of a silent message, which then stand where they were recorded; `later`: what the report holds behind it. */
  async #hasCallsOf(
    message: ReportedMessage | undefined,
    { later, since }: { readonly later: readonly HistoryItem[]; readonly since: number },
  ): Promise<boolean> {
    if (message === undefined || this.#isEarly(message)) return true;
    const ids = new Set(announcedIds(message));
    const first = later.find((item) => item.kind === 'call' && item.id !== undefined && ids.has(item.id));
    return first?.kind === 'call' && (await findKnownCall(this.#session, first, since)) !== undefined;
  }

  /** Where the step that was just recorded stands. */
  #place(): Pick<KnownEntry, 'seq' | 'turn'> {
    const { seq, turn } = this.#session.state;
    return { seq, turn };
  }

  /** What is new of a history, against the list as it was last sent and against the chat. */
  #reconcile(entries: readonly HistoryEntry[], compacted: boolean): Reconciled & { readonly known: readonly KnownEntry[] } {
    const used = new Set(entries.flatMap(({ kind, id }) => (kind === 'call' && id !== undefined ? [id] : [])));
    const chat = chatEntries(this.#session.state.marks, (id) => this.#session.metadata(id), used);
    const views = [this.#sent, chat];
    const { view, notice, ...found } = reconcileWith(views, entries);
    const named = notice !== undefined && compacted ? { ...notice, kind: 'compacted' as const } : notice;
    return { ...found, notice: named, known: views[view] ?? chat };
  }

  /** Whether the last thing that happened to the harness's history is just this. */
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

  /** The entries of a report of new ones, less messages whose id was reported before. */
  #unseen(entries: readonly HistoryEntry[], since: number): readonly number[] {
    const { places } = this.#session;
    const isKnown = (id: string): boolean => (places.message(id)?.seq ?? 0) > since || (this.#sentAt.get(id) ?? 0) > since;
    const seen = new Set<string>();
    return entries.flatMap(({ kind, id }, i) => {
      if (kind === 'call' || id === undefined) return [i];
      if (seen.has(id) || isKnown(id)) return [];
      seen.add(id);
      return [i];
    });
  }
}
