import pLimit from 'p-limit';
import type { LayoutName } from '../assembly/assembly-record.js';
import type { RenderedMessage } from '../assembly/render-messages.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { AssembleOptions, SessionAssemblyRecord } from '../client/session/session-assembly.js';
import { resolveFrom } from '../filesystem/access/native-path.js';
import type { Delivery } from '../objects/assembly-proof.js';
import type { SessionId } from '../objects/ids.js';
import type { Verb } from '../session/verb-outcome.js';
import { changedBefore } from '../tools/changed-since.js';
import { defined } from '../values/defined.js';
import { contentText } from './content-text.js';
import { type EpochChoice, EpochContexts, type EpochTurn, requireEpochForm } from './epoch-contexts.js';
import { argsOf, type CallItem } from './history-item.js';
import type { ReportedMessage, ToolCallReport } from './message-schema.js';
import { pathsToChange } from './observe-call.js';
import { type ReportedCall, runVerb, type VerbOptions, type VerbReport } from './record-call.js';
import { type MessagesReport, ReportedChat, type ReportOptions } from './reported-chat.js';

/** A call that is about to start and may change files. */
export interface ChangingCall {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The folder of relative paths. Default: the client's folder. */
  readonly cwd?: string;
}

/** Settings of a harness's session. */
export interface HarnessSettings {
  readonly delivered: Delivery;
  /** Whether the output of shell commands is searched for paths (decision C8). Default: false. */
  readonly mineShell?: boolean;
  readonly strict?: boolean;
  readonly shortIds?: boolean;
  /** The layout of the session's contexts, if all have the same. */
  readonly layout?: LayoutName;
}

/** The record of a context that was handed out. */
export interface HandedOutRecord extends SessionAssemblyRecord {
  readonly delivered: Delivery;
}

/**
 * A context for the next model call [§4]. With layout `epoch`, it also has the epoch and the part
 * of the harness's list that stays.
 */
export type TurnContext =
  | { readonly format: 'text'; readonly text: string; readonly record: HandedOutRecord }
  | {
      readonly format: 'messages';
      readonly system: string | null;
      readonly messages: readonly RenderedMessage[];
      readonly record: HandedOutRecord;
      readonly epoch?: EpochTurn['epoch'];
      readonly list?: EpochTurn['list'];
    };

/** Options for the context of a turn or step. */
export interface TurnOptions extends Pick<AssembleOptions, 'strict' | 'shortIds'>, ReportOptions, EpochChoice {
  /** Default: `text`. Layout `epoch` supports only messages. */
  readonly format?: TurnContext['format'];
  /**
   * Default: `ssot` (§4.1). With `epoch`, each request begins with the whole previous request
   * (divergence E9). If messages are reported in mode `history`, the context is placed around the
   * part of the list that stays. Otherwise the context is the whole request. Ids are always short.
   */
  readonly layout?: 'ssot' | 'epoch';
  /** Messages to report first. */
  readonly messages?: readonly ReportedMessage[];
}

/**
 * A session for a harness [§5.1]: the harness reports its agent's messages and calls, and gets the
 * context of the next model call. Reports are processed one after another. Reported calls follow
 * the same rules as calls of our own tools.
 *
 * @example
 * ```ts
 * const session = await harness.openSession();
 * await session.reportMessages([{ role: 'user', content: 'Why does the cart round up?' }]);
 * const context = await session.beginTurn({ format: 'messages' });
 * ```
 */
export class HarnessSession {
  readonly session: ContextSession;
  readonly #client: ContextClient;
  #settings: HarnessSettings;
  readonly #chat: ReportedChat;
  readonly #epochs: EpochContexts;
  readonly #serial = pLimit(1);

  constructor(client: ContextClient, session: ContextSession, settings: HarnessSettings) {
    this.#client = client;
    this.session = session;
    this.#settings = settings;
    this.#epochs = new EpochContexts(client, session);
    this.#chat = new ReportedChat(session, () => {
      const { mineShell = false, strict = false } = this.#settings;
      return { files: client.files, mineShell, strict, now: client.now() };
    });
  }

  /**
   * Changes how later contexts are rendered. `strict` also makes partial reads activate files
   * (decision D8).
   */
  render(rendering: Pick<HarnessSettings, 'strict' | 'shortIds'>): void {
    this.#settings = { ...this.#settings, ...rendering };
  }

  get id(): SessionId {
    return this.session.id;
  }

  /** Sets the system prompt [§2.6]. Null removes it. */
  setSystemPrompt(text: string | null): Promise<void> {
    return this.#serial(() => this.session.setSystemPrompt(text));
  }

  /**
   * Reports messages in order, with their tool calls and results. System messages at the beginning
   * of a history are the system prompt. Reporting messages again records nothing. If a report fails
   * halfway, the recorded part stays, and repeating the report records the rest.
   *
   * @throws {HarnessError} `unknown-call` – a result's call was not reported; also the errors of
   *   `ContextSession.recordCall`
   */
  reportMessages(messages: readonly ReportedMessage[], options: ReportOptions = {}): Promise<MessagesReport> {
    return this.#serial(() => this.#chat.report(messages, options));
  }

  /**
   * Reports one finished tool call [§5.7]. A call that was reported before is recognised by its id.
   */
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
      ...defined({ shown: shown === undefined ? undefined : contentText(shown), startedAt }),
      ...options,
    };
    return this.#serial(() => this.#chat.record(call, extras));
  }

  /**
   * Reports messages, if there are any, and assembles the context of the next model call [§4.1].
   *
   * @throws {HarnessError} `not-in-epochs` – layout `epoch` does not support the form, or no
   *   epoch can begin in the list; nothing is recorded then
   */
  beginTurn(options: TurnOptions = {}): Promise<TurnContext & { readonly report: MessagesReport | undefined }> {
    return this.#serial(async () => {
      const { layout, format, messages, mode } = options;
      const list = mode === 'history' ? messages : undefined;
      if (layout === 'epoch') requireEpochForm(format, list);
      const report = messages === undefined ? undefined : await this.#chat.report(messages, options);
      if (layout !== 'epoch') return { ...(await this.#assemble(options)), report };
      const reported = list === undefined ? undefined : { messages: list, placed: report?.placed ?? [] };
      return { format: 'messages', ...(await this.#epochs.next(reported, options, this.#settings.delivered)), report };
    });
  }

  /** Returns the current context for the next model call [§4.1]. */
  assemble(options: Pick<TurnOptions, 'format' | 'strict' | 'shortIds'> = {}): Promise<TurnContext> {
    return this.#serial(() => this.#assemble(options));
  }

  /**
   * Checks the files that a call would change. If a file differs from what the agent saw last,
   * returns the changed lines. The harness gives them to the agent instead of running the call.
   * Each difference is reported once. Undefined if the call may run. That includes a file that the
   * agent never saw, and arguments that name no file.
   */
  async beforeChange({ tool, args, cwd = '.' }: ChangingCall): Promise<string | undefined> {
    const { files } = this.#client;
    const folder = resolveFrom(files.cwd, cwd);
    const paths = pathsToChange(tool, args).map((path) => resolveFrom(folder, path));
    const changed = paths.length === 0 ? undefined : await changedBefore(files, this.session.seen, paths);
    return changed === undefined ? undefined : `${changed.message}\n${changed.next}`;
  }

  /** Activates, deactivates, pins or unpins objects for the agent [§3.3]. */
  verb(verb: Verb, references: readonly string[], options: VerbOptions = {}): Promise<VerbReport> {
    return this.#serial(() =>
      runVerb({ client: this.#client, session: this.session }, { verb, references }, { ...this.#settings, ...options }),
    );
  }

  /** Pauses the session [§3.6]. Opening it again continues it. Idempotent. */
  close(): Promise<void> {
    return this.#serial(() => this.#client.closeSession(this.session));
  }

  async #assemble({
    format = 'text',
    strict,
    shortIds,
  }: Pick<TurnOptions, 'format' | 'strict' | 'shortIds'>): Promise<TurnContext> {
    const assembly = await this.session.assemble(defined({ strict, shortIds }));
    const { delivered } = this.#settings;
    this.session.seen.context(assembly.input.active);
    if (format === 'text')
      return { format, text: assembly.text, record: await this.session.deliver(assembly.record, { delivered }) };
    const { system, messages, record } = assembly.asMessages();
    return { format, system, messages, record: await this.session.deliver(record, { delivered }) };
  }
}
