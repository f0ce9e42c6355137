import type { RenderedMessage } from '../assembly/render-messages.js';
import type { AssembleOptions, SessionAssemblyRecord } from '../client/session/assemble-session.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { Delivery } from '../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../objects/ids.js';
import type { Verb } from '../session/verb-outcome.js';
import { defined } from '../values/defined.js';
import { contentText } from './content-text.js';
import { argsOf, type CallItem, type HistoryItem, historyOf, type OpenCall } from './history-item.js';
import { chatEntries, isBareCarrier, type KnownEntry, sentEntry } from './known-history.js';
import type { ReportedMessage, ToolCallReport } from './message-schema.js';
import type { ObservationContext } from './observe-call.js';
import { type HistoryEntry, type HistoryNotice, type Reconciled, reconcileWith } from './reconcile.js';
import { type CallExtras, findKnownCall, type ReportedCall, recordItem } from './record-item.js';
import { runVerb, type VerbOptions, type VerbReport } from './session-verbs.js';

/** How a session serves its harness. */
export interface HarnessSettings {
  readonly delivered: Delivery;
  /** Whether the output of shell commands is searched for paths (decision C8); false if left out. */
  readonly mineShell?: boolean;
  readonly strict?: boolean;
  readonly shortIds?: boolean;
}

/** How messages are reported. */
export interface ReportOptions {
  /** `append` (the default): only what is new. `history`: the whole history, of which what is known is found out (decision F1). */
  readonly mode?: 'append' | 'history';
  /** The harness's own id of the turn (decision B7). */
  readonly turnRef?: string;
  /** The harness says that it compacted its history: what is missing from it was not undone. */
  readonly compacted?: boolean;
  /** Records nothing of a whole history that says that something at the end of the chat never happened, but tells from where on. */
  readonly refuseUndone?: boolean;
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

/** The record of a context that was handed out. */
export interface DeliveredRecord extends SessionAssemblyRecord {
  readonly delivered: Delivery;
}

/** A context for the next model call [§4]. */
export type TurnContext =
  | { readonly format: 'text'; readonly text: string; readonly record: DeliveredRecord }
  | {
      readonly format: 'messages';
      readonly system: string | null;
      readonly messages: readonly RenderedMessage[];
      readonly record: DeliveredRecord;
    };

/** How a turn or step is begun. */
export interface TurnOptions extends AssembleOptions, ReportOptions {
  readonly format?: TurnContext['format'];
  /** What the harness has to report first. */
  readonly messages?: readonly ReportedMessage[];
}

/** An entry that was recorded just now, and where. */
interface Taken {
  readonly entry: RecordedEntry;
  readonly place: Pick<KnownEntry, 'seq' | 'turn' | 'ref'>;
  readonly notes: readonly string[];
}

const placeOf = ({ seq, turn, ref }: KnownEntry): Taken['place'] => ({ seq, turn, ...defined({ ref }) });

/** The items that are entries of their own. */
const entryItems = (items: readonly HistoryItem[]): readonly HistoryItem[] =>
  items.filter((item) => item.kind === 'call' || !isBareCarrier(item));

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

/**
 * A session as a harness uses it [§5.1]: it reports what its agent says and does and gets the context of the next model call. Reports are taken one after
 * the other; reported calls obey the same rules as wrapped ones.
 */
export class HarnessSession {
  readonly session: ContextSession;
  readonly #client: ContextClient;
  readonly #settings: HarnessSettings;
  #queue: Promise<unknown> = Promise.resolve();
  /** The harness's own list as it was last sent, which need not have the order of the chat. */
  #sent: KnownEntry[] = [];
  #open: ReadonlyMap<string, OpenCall> = new Map();

  constructor(client: ContextClient, session: ContextSession, settings: HarnessSettings) {
    this.#client = client;
    this.session = session;
    this.#settings = settings;
  }

  get id(): SessionId {
    return this.session.id;
  }

  /** Sets the system prompt [§2.6]; null for none. */
  setSystemPrompt(text: string | null): Promise<void> {
    return this.#serial(() => this.session.setSystemPrompt(text));
  }

  /**
   * Reports messages in the order in which they were said, with their tool calls and results. System messages at the beginning of a history are the
   * system prompt. Reporting again what is known records nothing. Throws HarnessError `unknown-call`, and what `ContextSession.recordCall` throws; what
   * was recorded before a failure stays and is recognised when the report is made again.
   */
  reportMessages(messages: readonly ReportedMessage[], options: ReportOptions = {}): Promise<MessagesReport> {
    return this.#serial(() => this.#report(messages, options));
  }

  /** Reports one finished tool call [§5.7]; the same call reported again is recognised by its id. */
  reportToolCall(report: ToolCallReport, options: Pick<ReportOptions, 'turnRef'> = {}): Promise<ReportedCall> {
    const { id, name, args, content, shown, status = 'ok', cwd, files = [], started_at: startedAt } = report;
    const call: CallItem = {
      kind: 'call',
      tool: name,
      args: argsOf(args),
      content: contentText(content),
      status,
      files,
      ...defined({ id, cwd }),
    };
    const extras = {
      ...(shown === undefined ? {} : { shown: contentText(shown) }),
      ...defined({ startedAt }),
      ...options,
    };
    return this.#serial(() => this.#record(call, extras));
  }

  /** Reports what there is to report and assembles the context of the next model call [§4.1]. */
  beginTurn(options: TurnOptions = {}): Promise<TurnContext & { readonly report: MessagesReport | undefined }> {
    return this.#serial(async () => {
      const report = options.messages === undefined ? undefined : await this.#report(options.messages, options);
      return { ...(await this.#assemble(options)), report };
    });
  }

  /** The context of the next model call as it stands [§4.1]. */
  assemble(options: Pick<TurnOptions, 'format' | 'strict' | 'shortIds'> = {}): Promise<TurnContext> {
    return this.#serial(() => this.#assemble(options));
  }

  /** Activates, deactivates, pins or unpins on behalf of the agent [§3.3]. */
  verb(verb: Verb, references: readonly string[], options: VerbOptions = {}): Promise<VerbReport> {
    return this.#serial(() => runVerb(this.#client, this.session, verb, references, { ...this.#settings, ...options }));
  }

  /** Pauses the session [§3.6]: it can be opened again and goes on where it stood. Idempotent. */
  close(): Promise<void> {
    return this.#serial(() => this.#client.closeSession(this.session));
  }

  #serial<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  #context(): ObservationContext {
    const { mineShell = false, strict = false } = this.#settings;
    return { files: this.#client.files, mineShell, strict, now: this.#client.now() };
  }

  async #record(call: CallItem, extras: CallExtras): Promise<ReportedCall> {
    const known = await findKnownCall(this.session, call);
    if (known !== undefined) return { callId: known, outcome: 'known', files: 0, collapsed: [], notes: [] };
    return recordItem(this.session, call, this.#context(), extras);
  }

  async #report(messages: readonly ReportedMessage[], options: ReportOptions): Promise<MessagesReport> {
    return options.mode === 'history' ? this.#reportHistory(messages, options) : this.#reportNew(messages, options);
  }

  async #reportNew(messages: readonly ReportedMessage[], { turnRef }: ReportOptions): Promise<MessagesReport> {
    // In the middle of a chat a system message is something that the harness put in, not the prompt.
    const history = historyOf(messages, { known: this.#open, prompt: this.session.state.seq === 0 });
    const items = entryItems(history.items);
    const entries = items.map(sentEntry);
    if (history.systemPrompt !== undefined) await this.session.setSystemPrompt(history.systemPrompt);
    const taken: Taken[] = [];
    for (const i of this.#unseen(entries)) {
      const [item, entry] = [items[i], entries[i]];
      if (item === undefined || entry === undefined) continue;
      const one = await this.#take(item, false, turnRef === undefined ? {} : { turnRef });
      if (one === undefined) continue;
      taken.push(one);
      // One by one, so that a report that fails half-way can be made again.
      this.#sent.push({ ...entry, ...one.place });
    }
    this.#open = history.open;
    return reportOf(taken, items.length, undefined);
  }

  async #reportHistory(messages: readonly ReportedMessage[], options: ReportOptions): Promise<MessagesReport> {
    const { turnRef, compacted = false, refuseUndone = false } = options;
    const history = historyOf(messages);
    const items = entryItems(history.items);
    const entries = items.map(sentEntry);
    const { fresh, matched, notice, known } = this.#reconcile(entries, compacted);
    if (refuseUndone && notice !== undefined && notice.kind !== 'compacted') {
      const undoneFrom = known[notice.kept - 1]?.seq ?? 0;
      if (undoneFrom < this.session.state.seq) return { ...reportOf([], items.length, notice), undoneFrom };
    }
    if (history.systemPrompt !== undefined) await this.session.setSystemPrompt(history.systemPrompt);
    if (notice !== undefined && !this.#isNoted(notice)) await this.session.recordEvent(notice);
    const taken: Taken[] = [];
    const sent: (KnownEntry | undefined)[] = entries.map((entry, i) => {
      const before = matched[i] === undefined ? undefined : known[matched[i]];
      return before === undefined ? undefined : { ...entry, ...placeOf(before) };
    });
    for (const i of fresh) {
      const [item, entry] = [items[i], entries[i]];
      const one = item === undefined ? undefined : await this.#take(item, true, turnRef === undefined ? {} : { turnRef });
      if (one === undefined || entry === undefined) continue;
      taken.push(one);
      sent[i] = { ...entry, ...one.place };
    }
    this.#sent = sent.filter((entry) => entry !== undefined);
    this.#open = history.open;
    for (const id of history.open.keys()) this.session.expectCall(id);
    return { ...reportOf(taken, items.length, notice), placed: placedEntries(items, sent) };
  }

  /** Records one entry; undefined when it turned out to be known. */
  async #take(item: HistoryItem, whole: boolean, extras: CallExtras): Promise<Taken | undefined> {
    const { index } = item;
    if (item.kind === 'message') {
      const { role, text, name, id } = item;
      await this.session.reportMessage({ role, text, ...(name === undefined ? {} : { name: name.toWellFormed() }) }, id);
      return { entry: { index, kind: 'message' }, place: this.#place(), notes: [] };
    }
    // In a whole history the place tells whether a call is known; its id may rightly come again.
    const call = whole ? await recordItem(this.session, item, this.#context(), extras) : await this.#record(item, extras);
    if (call.outcome === 'known') return undefined;
    return { entry: { index, kind: 'call', callId: call.callId }, place: { ...this.#place(), ref: call.callId }, notes: call.notes };
  }

  /** Where the step that was just recorded stands. */
  #place(): Pick<KnownEntry, 'seq' | 'turn'> {
    const { seq, turn } = this.session.state;
    return { seq, turn };
  }

  /** What is new of a history, against the list as it was last sent and against the chat. */
  #reconcile(entries: readonly HistoryEntry[], compacted: boolean): Reconciled & { readonly known: readonly KnownEntry[] } {
    const used = new Set(entries.flatMap(({ kind, id }) => (kind === 'call' && id !== undefined ? [id] : [])));
    const chat = chatEntries(this.session.state.marks, (id) => this.session.metadata(id), used);
    const views = [this.#sent, chat];
    const { view, notice, ...found } = reconcileWith(views, entries);
    const told = notice !== undefined && compacted ? { ...notice, kind: 'compacted' as const } : notice;
    return { ...found, notice: told, known: views[view] ?? chat };
  }

  /** Whether the last thing that happened to the harness's history is just this. */
  #isNoted({ kind, kept, missing }: HistoryNotice): boolean {
    const last = this.session.state.marks.findLast(({ event }) => event !== undefined)?.event;
    return last?.kind === kind && last.kept === kept && last.missing === missing;
  }

  /** The entries of a report of new ones, less messages whose id was reported before. */
  #unseen(entries: readonly HistoryEntry[]): readonly number[] {
    const stored = this.session.state.marks.flatMap(({ message, native }) =>
      message === undefined || native === undefined ? [] : [native],
    );
    const seen = new Set([...stored, ...this.#sent.flatMap(({ kind, id }) => (kind === 'message' && id !== undefined ? [id] : []))]);
    return entries.flatMap(({ kind, id }, i) => {
      if (kind === 'call' || id === undefined) return [i];
      if (seen.has(id)) return [];
      seen.add(id);
      return [i];
    });
  }

  async #assemble({ format = 'text', strict, shortIds }: Pick<TurnOptions, 'format' | 'strict' | 'shortIds'>): Promise<TurnContext> {
    const assembly = await this.session.assemble({
      ...defined({ strict, shortIds }),
    });
    const { delivered } = this.#settings;
    if (format === 'text') return { format, text: assembly.text, record: await this.session.deliver(assembly.record, { delivered }) };
    const { system, messages, record } = assembly.asMessages();
    return { format, system, messages, record: await this.session.deliver(record, { delivered }) };
  }
}
