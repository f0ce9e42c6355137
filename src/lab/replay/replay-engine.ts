import { fileObjectId } from '../../client/file-access.js';
import type { ContextClient } from '../../client/session/context-client.js';
import type { ContextSession } from '../../client/session/context-session.js';
import { withoutGutter } from '../../harness/tool-output/numbered-lines.js';
import { otherLinesNote } from '../../history/rebuild/changed-outside.js';
import { quoted } from '../../objects/errors.js';
import { callSuffix, type ObjectId, type SessionId, sessionObjectId } from '../../objects/ids.js';
import { filesystemSource } from '../../objects/source.js';
import { defined } from '../../values/defined.js';
import { ImportCounter } from '../recordings/import-counts.js';
import { REWINDS } from '../recordings/kept-places.js';
import type { EntryOf, RecordedEntry } from '../recordings/neutral-session.js';
import { type CallEffects, callEffects, EffectCounts, wrappedCall } from './call-effects.js';
import type { ContextLog } from './context-log.js';
import type { DiskAtCalls, SeenText } from './disk-at-calls.js';
import { FileTree, UndoTexts } from './files/file-tree.js';
import { ReadLines } from './files/read-lines.js';
import { modelUsage } from './model-usage.js';
import { type OpenRecordedCall, RecordedSession } from './recorded-session.js';
import type { ReplayClock } from './replay-clock.js';
import type { ReplayConfig } from './replay-config.js';
import { ReplayError } from './replay-error.js';
import { nthSession, type ReplayIdentity } from './replay-identity.js';
import { UseEvidence } from './use-evidence.js';

/** The dependencies of a replay. */
interface EngineOptions {
  readonly client: ContextClient;
  readonly clock: ReplayClock;
  readonly identity: ReplayIdentity;
  readonly config: ReplayConfig;
  readonly log: Pick<ContextLog, 'earlier' | 'keep'>;
  /** Set if a later replay continues this one. Calls without results then stay open. */
  readonly growing?: boolean;
  /** Returns our id of a session in another recording. Used to record the parents of sessions. */
  readonly sessionOf?: (native: string) => SessionId;
  /** Access to the disk, for a recording that is imported while its agent works. */
  readonly disk?: DiskAtCalls;
  /** Counts the tokens of a text. If absent, tokens are not counted. */
  readonly countTokens?: (text: string) => number;
  readonly signal?: AbortSignal;
}

/** Milliseconds for one database write. Long, because no user waits and busy machines are slow. */
export const DATABASE_WAIT_MS = 120_000;

const isSilentAnswer = (entry: RecordedEntry): boolean =>
  entry.kind === 'message' && entry.role === 'assistant' && entry.text === '';

/**
 * Passes a recording's entries to the real client [§6]. Messages and calls become steps, and a
 * context is assembled before each model answer. Entries are processed one after another, so a
 * recording always gives the same steps.
 */
export class ReplayEngine {
  readonly entries = new ImportCounter();
  readonly effects = new EffectCounts();
  readonly tree = new FileTree();
  readonly evidence: UseEvidence;
  /** The replayed sessions in the order of the recording. */
  readonly sessions: RecordedSession[] = [];
  readonly #options: EngineOptions;
  /** The current model of each recorded session. */
  readonly #models = new Map<string, string>();
  /** The current session for each recorded session id. After a rewind, this is the new branch. */
  readonly #current = new Map<string, RecordedSession>();
  /**
   * Recorded sessions without entries so far. A session starts at the time of its first entry,
   * which may precede the time in the recording's head.
   */
  readonly #announced = new Map<string, EntryOf<'session'>>();
  readonly #undo = new UndoTexts();
  readonly #reads = new ReadLines();
  /** An answer without text at the end of a recording that may grow. */
  #held: RecordedEntry | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.evidence = new UseEvidence(options.identity.filesystemId);
  }

  /**
   * Replays one entry.
   *
   * @throws {ReplayError} – the session in the database does not belong to this recording
   * @throws {SessionError} – from the client
   * @throws {XtdbError} – the database does not answer
   */
  async take(entry: RecordedEntry): Promise<void> {
    this.#options.signal?.throwIfAborted();
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) await this.#take(held);
    // A growing recording may still add text or a call to this answer.
    if (this.#options.growing === true && isSilentAnswer(entry)) this.#held = entry;
    else await this.#take(entry);
  }

  async #take(entry: RecordedEntry): Promise<void> {
    this.entries.add(entry);
    if (entry.kind === 'session') {
      this.#announced.set(entry.native_id, entry);
      return;
    }
    await this.#beginAnnounced(entry.session, entry.at);
    this.#options.clock.advance(entry.at);
    await this.#endCopy(entry);
    const before = this.#of(entry).state.seq;
    if (entry.kind === 'message') await this.#message(entry);
    else if (entry.kind === 'call') await this.#call(entry);
    else if (entry.kind === 'result') await this.#result(entry);
    else if (entry.kind === 'compaction') {
      const session = this.#of(entry);
      // Record the calls whose results the compaction removed before the compaction itself.
      if (!session.isAtCompaction) await this.#unanswered(session);
      await session.compaction(entry);
    } else await this.#event(entry);
    if (entry.kind !== 'event' || !REWINDS.has(entry.name)) this.#of(entry).note(entry, before);
  }

  /** Returns the open session for a recorded session id. After a rewind, this is the new branch. */
  sessionOf(native: string): ContextSession | undefined {
    return this.#current.get(native)?.session;
  }

  /**
   * Ends every session by pausing it [§3.6]. Calls without results are first recorded as failed,
   * except in a recording that may grow.
   */
  async finish(): Promise<void> {
    for (const announced of [...this.#announced.keys()]) await this.#beginAnnounced(announced, undefined);
    for (const session of this.#current.values())
      await (this.#options.growing === true ? session.close(this.#options.clock.now) : this.#end(session));
  }

  async #beginAnnounced(native: string, first: number | undefined): Promise<void> {
    const entry = this.#announced.get(native);
    if (entry === undefined) return;
    this.#announced.delete(native);
    const { client, clock, config, identity, countTokens } = this.#options;
    const moments = [entry.started_at, first].filter((at) => at !== undefined);
    if (moments.length > 0) clock.advance(Math.min(...moments));
    const id = nthSession(identity, this.sessions.length + 1);
    // Waits for the writes of a killed replay. Otherwise the session would be read incompletely.
    await client.backpressure(0, DATABASE_WAIT_MS);
    const session = await client.openSession({ id });
    const known = session.state.seq === 0 ? [] : await (await client.store.latest()).steps(id);
    this.#keep(new RecordedSession({ entry }, { session, known }, { countTokens, shortIds: config.shortIds }));
    if (entry.system_prompt !== undefined) await session.setSystemPrompt(entry.system_prompt);
    if (session.state.seq === 0) await this.#noteParent(session, entry);
  }

  /** Records the parent of a session, if the recording names one. */
  async #noteParent(session: ContextSession, { parent }: EntryOf<'session'>): Promise<void> {
    const { clock } = this.#options;
    if (parent === undefined) return;
    const { native_id, relation, call_id } = parent;
    const subject = this.#parentOf(native_id);
    if (subject === undefined) return;
    const body = { type: 'parent-session', subject, data: { relation, ...defined({ call: call_id }) } };
    const owner = { session: session.id };
    await session.keepRecords([{ kind: 'event', owner, turn: 0, seq: 0, at: clock.now, basis: null, body }]);
  }

  /**
   * Marks the end of the history that a session copied from its parent, before the first entry of
   * its own. A result belongs to its call.
   */
  async #endCopy(entry: Exclude<RecordedEntry, { kind: 'session' }>): Promise<void> {
    const session = this.#of(entry);
    if (entry.copied === true) session.isCopying = true;
    if (!session.isCopying || entry.copied === true || entry.kind === 'result') return;
    if (entry.kind === 'event' && (entry.files ?? []).length === 0) return;
    session.isCopying = false;
    await this.#unanswered(session);
    const parent = session.entry.parent?.native_id;
    await session.endCopy(parent === undefined ? undefined : (this.#parentOf(parent) ?? parent));
  }

  #parentOf(native: string): SessionId | undefined {
    return this.#current.get(native)?.id ?? this.#options.sessionOf?.(native);
  }

  #keep(session: RecordedSession): void {
    this.#current.set(session.entry.native_id, session);
    this.sessions.push(session);
  }

  async #end(session: RecordedSession): Promise<void> {
    await this.#unanswered(session);
    await session.close(this.#options.clock.now);
  }

  /**
   * Continues a session after a rewind in a new branch, as a live session does (decision F2). The
   * branch is a fork after the last shared step. Old steps stay unchanged.
   */
  async #branch(left: RecordedSession, from: RecordedSession, kept: number): Promise<void> {
    const { client, identity } = this.#options;
    await this.#end(left);
    await client.backpressure(0, DATABASE_WAIT_MS);
    const id = nthSession(identity, this.sessions.length + 1);
    const key = sessionObjectId(id);
    const isThere = (await (await client.store.latest()).heads([key])).has(key);
    const session = isThere ? await client.openSession({ id }) : await client.forkSession(from.id, { id, at: kept });
    const branch = from.branch({ session, known: await (await client.store.latest()).steps(id), shared: kept });
    this.#keep(branch);
    this.evidence.branch(from.id, id);
    await branch.event({ kind: 'forked', kept, detail: from.id });
  }

  #of(entry: { readonly session: string }): RecordedSession {
    const session = this.#current.get(entry.session);
    if (session === undefined)
      throw new ReplayError(
        'no-session',
        `an entry belongs to the session ${quoted(entry.session)}, which the recording did not begin`,
      );
    return session;
  }

  /** Prepares a model call. Runs before the first message or call of its answer. */
  async #answering(session: RecordedSession): Promise<void> {
    if (session.answering) return;
    session.answering = true;
    session.said = undefined;
    session.seen = session.state;
    const { log } = this.#options;
    const fresh = await session.context();
    const known = log.earlier(session.id, session.state.seq);
    const made = fresh ?? known;
    if (made === undefined && this.#options.growing === true) return;
    if (made === undefined) {
      throw new ReplayError(
        'lost-measures',
        `the measures of session ${quoted(session.id)} up to step ${session.state.seq} are lost; replay the ` +
          'recording into another data folder',
      );
    }
    session.contexts.push(made);
    // An earlier replay may have been killed just after it stored this measure.
    if (made.sha256 !== known?.sha256) await log.keep(made);
  }

  async #message(entry: EntryOf<'message'>): Promise<void> {
    const session = this.#of(entry);
    const answer = entry.role === 'assistant';
    if (entry.thinking !== undefined) session.thought();
    if (answer) await this.#answering(session);
    else session.answering = false;
    if (entry.role === 'user' && entry.origin === 'person') await this.#unanswered(session);
    if (answer) this.evidence.said(session.seen, entry.text);
    const { role, text, name } = entry;
    const model = this.#models.get(session.entry.native_id) ?? session.entry.model;
    const step = await session.message(
      { role, text, ...defined({ name }) },
      defined({
        origin: entry.origin,
        native: entry.native_id,
        usage: modelUsage({ format: session.entry.format, model }, entry.usage),
      }),
    );
    if (answer) session.said = step;
  }

  async #call(entry: EntryOf<'call'>): Promise<void> {
    const session = this.#of(entry);
    await this.#answering(session);
    session.open.set(entry.call_id, { entry, at: this.#options.clock.now, by: session.said });
  }

  async #result(entry: EntryOf<'result'>): Promise<void> {
    const session = this.#of(entry);
    const open = session.open.get(entry.call_id);
    if (open === undefined) return;
    session.open.delete(entry.call_id);
    session.answering = false;
    await this.#record(session, open, entry);
  }

  async #record(
    session: RecordedSession,
    { entry: call, at: startedAt, by, isLost = false }: OpenRecordedCall & { readonly isLost?: boolean },
    result: EntryOf<'result'>,
  ): Promise<void> {
    const { clock, identity, config } = this.#options;
    const context = {
      tree: this.tree,
      undo: this.#undo,
      reads: this.#reads,
      cwd: session.entry.cwd,
      filesystem: identity.filesystemId,
      now: clock.now,
      strict: config.strict,
      isLost,
    };
    const effects = callEffects(call, result, context);
    this.effects.add(effects, result.is_error);
    this.#useBy(session, effects);
    const mapped =
      config.tools === 'recorded'
        ? { tool: call.tool, args: call.args as never, content: result.text }
        : wrappedCall(call, effects, result.text);
    const onDisk = await this.#options.disk?.compare(this.#seenTexts(effects), session.entry.cwd, result.at);
    const all = [...effects.otherLines.map(otherLinesNote), ...(onDisk ?? [])];
    const notes = all.length === 0 ? undefined : all;
    const callId = `${call.call_id.slice(0, 300)}${callSuffix(session.id)}`;
    const report = {
      ...mapped,
      tool: mapped.tool.toWellFormed(),
      status: result.is_error ? ('fail' as const) : ('ok' as const),
      callId,
      startedAt,
      readings: effects.readings,
      mentions: effects.mentions,
      answer: () => result.text.toWellFormed(),
      ...defined({ by, notes }),
    };
    await session.call(report, this.#options.growing === true && result.truncated === true);
    for (const { path, how } of effects.seen) {
      if (how === 'whole' || how === 'part')
        this.evidence.shown(session.id, {
          path,
          call: callId as ObjectId,
          text: this.tree.text(path) ?? withoutGutter(result.text).text,
        });
    }
  }

  /** Returns the files that a finished call read or changed, with their texts if known. */
  #seenTexts({ seen }: CallEffects): readonly SeenText[] {
    return seen.flatMap(({ path, how }) =>
      how === 'named' ? [] : [{ path, text: how === 'deleted' ? null : this.tree.text(path) }],
    );
  }

  /**
   * Records that the agent used the files that it edits. Also records whether its context had their
   * texts when it decided on the call.
   */
  #useBy(session: RecordedSession, { kind, seen }: CallEffects): void {
    if (kind !== 'edit' && kind !== 'patch' && kind !== 'write') return;
    for (const { path, how } of seen) {
      const object = fileObjectId(filesystemSource(this.#options.identity.filesystemId, path));
      // The context cannot have held a file that the call creates.
      const isNew = kind === 'write' && !session.seen.has(object);
      if ((how === 'written' || how === 'deleted') && !isNew) this.evidence.edited(session.seen, path);
    }
  }

  /** Records calls without results as failed, because their effects are unknown. */
  async #unanswered(session: RecordedSession): Promise<void> {
    const open = [...session.open.values()];
    session.open.clear();
    for (const call of open) {
      this.effects.unanswered += 1;
      const { session: of, place, call_id } = call.entry;
      const result = { kind: 'result', session: of, place, call_id, text: '', is_error: true } as const;
      await this.#record(session, { ...call, isLost: true }, result);
    }
  }

  /**
   * Handles an event. Files inserted without a call are recorded as a call. A rewind starts a
   * branch.
   */
  async #event(entry: EntryOf<'event'>): Promise<void> {
    const session = this.#of(entry);
    if (entry.name === 'model-change' && entry.text !== undefined)
      this.#models.set(session.entry.native_id, entry.text);
    if (REWINDS.has(entry.name)) {
      session.answering = false;
      // Searches the entry to return to in the current branch first, then in earlier branches.
      const all = [
        session,
        ...this.sessions.filter(({ entry: { native_id } }) => native_id === entry.session).reverse(),
      ];
      for (const one of all) {
        const kept = one.places.target(entry);
        if (kept !== undefined) return this.#branch(session, one, kept);
      }
      await session.event({ kind: 'diverged', detail: (entry.text ?? entry.name).toWellFormed() });
      return;
    }
    if (entry.name === 'result-replaced') {
      if (this.#options.growing === true) await session.replacement((entry.text ?? '').toWellFormed());
      return;
    }
    const files = entry.files ?? [];
    if (files.length === 0) return;
    session.answering = false;
    session.attached += 1;
    const of = { session: entry.session, place: entry.place, call_id: `${entry.name}:${session.attached}` };
    const call: EntryOf<'call'> = { kind: 'call', ...of, tool: 'read', args: { paths: files.map(({ path }) => path) } };
    const text = entry.text ?? files.map((file) => file.text ?? '').join('\n');
    const result: EntryOf<'result'> = { kind: 'result', ...of, text, is_error: false, files };
    await this.#record(session, { entry: call, at: this.#options.clock.now, by: undefined }, result);
  }
}
