import type { RenderedMessage } from '../assembly/render-messages.js';
import type { AssembleOptions, SessionAssemblyRecord } from '../client/assemble-session.js';
import type { ContextClient } from '../client/context-client.js';
import type { ContextSession } from '../client/context-session.js';
import type { ObjectId, SessionId } from '../objects/ids.js';
import type { Verb } from '../session/verb-outcome.js';
import { contentText } from './content-text.js';
import { argsOf, type CallItem, type HistoryItem, historyOf, type OpenCall } from './history-item.js';
import { chatEntries, isBareCarrier, sentEntry } from './known-history.js';
import type { ReportedMessage, ToolCallReport } from './message-schema.js';
import type { ObservationContext } from './observe-call.js';
import { type HistoryEntry, type HistoryNotice, reconcileWith } from './reconcile.js';
import { type CallExtras, findKnownCall, type ReportedCall, recordItem } from './record-item.js';
import { runVerb, type VerbOptions, type VerbReport } from './session-verbs.js';

/** How a context reaches its model (decision E7). */
export type Delivery = 'library' | 'http';

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

/**
 * A session as a harness uses it [§5.1]: it reports what its agent says and does and gets the context of the next model call. Reports are taken one after
 * the other; reported calls obey the same rules as wrapped ones.
 */
export class HarnessSession {
  readonly session: ContextSession;
  readonly #client: ContextClient;
  readonly #settings: HarnessSettings;
  #queue: Promise<unknown> = Promise.resolve();
  /** The harness's own list as it was last sent; its message ids are only known here. */
  #sent: HistoryEntry[] = [];
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
      ...(id === undefined ? {} : { id }),
      ...(cwd === undefined ? {} : { cwd }),
    };
    const extras = {
      ...(shown === undefined ? {} : { shown: contentText(shown) }),
      ...(startedAt === undefined ? {} : { startedAt }),
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
    return { files: this.#client.files, mineShell, strict, now: Date.now() };
  }

  async #record(call: CallItem, extras: CallExtras): Promise<ReportedCall> {
    const known = await findKnownCall(this.session, call);
    if (known !== undefined) return { callId: known, outcome: 'known', files: 0, collapsed: [], notes: [] };
    return recordItem(this.session, call, this.#context(), extras);
  }

  async #report(messages: readonly ReportedMessage[], { mode = 'append', turnRef }: ReportOptions): Promise<MessagesReport> {
    const whole = mode === 'history';
    // In the middle of a chat a system message is something that the harness put in, not the prompt.
    const history = historyOf(messages, { known: whole ? new Map() : this.#open, prompt: whole || this.session.state.seq === 0 });
    const items = history.items.filter((item) => item.kind === 'call' || !isBareCarrier(item));
    const entries = items.map(sentEntry);
    const { fresh, notice } = whole ? this.#reconcile(entries) : { fresh: this.#unseen(entries), notice: undefined };
    if (history.systemPrompt !== undefined) await this.session.setSystemPrompt(history.systemPrompt);
    const recorded: RecordedEntry[] = [];
    const notes: string[] = [];
    for (const i of fresh) {
      const item = items[i];
      if (item === undefined) continue;
      const entry = await this.#take(item, whole, turnRef === undefined ? {} : { turnRef });
      if (entry === undefined) continue;
      recorded.push(entry.entry);
      notes.push(...entry.notes);
      // One by one, so that a report that fails half-way can be made again.
      if (!whole) this.#sent.push(...entries.slice(i, i + 1));
    }
    if (whole) this.#sent = entries;
    this.#open = history.open;
    return { recorded, known: items.length - recorded.length, notice, notes };
  }

  /** Records one entry; undefined when it turned out to be known. */
  async #take(
    item: HistoryItem,
    whole: boolean,
    extras: CallExtras,
  ): Promise<{ readonly entry: RecordedEntry; readonly notes: readonly string[] } | undefined> {
    const { index } = item;
    if (item.kind === 'message') {
      const { role, text, name } = item;
      await this.session.reportMessage({ role, text, ...(name === undefined ? {} : { name: name.toWellFormed() }) });
      return { entry: { index, kind: 'message' }, notes: [] };
    }
    // In a whole history the place tells whether a call is known; its id may rightly come again.
    const call = whole ? await recordItem(this.session, item, this.#context(), extras) : await this.#record(item, extras);
    return call.outcome === 'known' ? undefined : { entry: { index, kind: 'call', callId: call.callId }, notes: call.notes };
  }

  #reconcile(entries: readonly HistoryEntry[]): { readonly fresh: readonly number[]; readonly notice: HistoryNotice | undefined } {
    const used = new Set(entries.flatMap(({ kind, id }) => (kind === 'call' && id !== undefined ? [id] : [])));
    const chat = chatEntries(this.session.state.turns, (id) => this.session.metadata(id), used);
    return reconcileWith([this.#sent, chat], entries);
  }

  /** The entries of a report of new ones, less messages whose id was reported before. */
  #unseen(entries: readonly HistoryEntry[]): readonly number[] {
    const seen = new Set(this.#sent.flatMap(({ kind, id }) => (kind === 'message' && id !== undefined ? [id] : [])));
    return entries.flatMap(({ kind, id }, i) => {
      if (kind === 'call' || id === undefined) return [i];
      if (seen.has(id)) return [];
      seen.add(id);
      return [i];
    });
  }

  async #assemble({ format = 'text', strict, shortIds }: Pick<TurnOptions, 'format' | 'strict' | 'shortIds'>): Promise<TurnContext> {
    const assembly = await this.session.assemble({
      ...(strict === undefined ? {} : { strict }),
      ...(shortIds === undefined ? {} : { shortIds }),
    });
    const { delivered } = this.#settings;
    if (format === 'text') return { format, text: assembly.text, record: { ...assembly.record, delivered } };
    const { system, messages, record } = assembly.asMessages();
    return { format, system, messages, record: { ...record, delivered } };
  }
}
