import type { RecordPlace } from '../../client/session/session-contexts.js';
import type { HandedList } from '../../objects/assembly-proof.js';
import type { HistoryEvent } from '../../objects/step.js';
import { messageOf } from '../../values/thrown.js';
import type { LoopContext, Rendering } from '../loop/loop-context.js';
import type { LoopCommand } from '../loop-command.js';
import { BypassedTurns, composed, HandedLists, type HarnessList, OwnLists } from './composed-list.js';
import { LatestSessions } from './latest-sessions.js';
import type { Calls } from './protocol.js';
import { type SidecarProcess, type WholeList, withTimeout } from './sidecar-process.js';
import type { TroubleFile } from './trouble-file.js';

/** Maximum wait for the delivery of the last messages when a session or program ends. */
const END_MS = 5_000;

/** The dependencies and limits of a harness's guard. */
export interface LoopGuardOptions {
  readonly sidecar: Pick<SidecarProcess, 'call' | 'callWithList' | 'end'>;
  readonly trouble: TroubleFile;
  /** The guide that follows the system prompt, if any. */
  readonly guide?: string;
  /** Maximum milliseconds that a model call waits. */
  readonly limitMs: number;
  /** Shows a line to the user. */
  readonly notify: (line: string) => void;
  /** Called for each model call without our context. It gets the reason. */
  readonly onBypass?: (session: string, reason: string) => void;
  /**
   * Called after each model call with our context. It gets the call's wait in milliseconds and the
   * number of objects in the pool.
   */
  readonly onPassed?: (ms: number, objects: number) => void;
}

/** A list for one model call that has our context. */
export interface Passage<M> {
  readonly messages: readonly M[];
  readonly context: LoopContext;
  /** Number of UTF-16 units in the list's canonical JSON. */
  readonly chars: number;
  /** The place of the list's assembly record. */
  readonly at: RecordPlace | undefined;
}

/** A list that was made before its system prompt was known. */
interface ListAhead {
  /** Milliseconds that the call has waited so far. */
  readonly ms: number;
  /** Number of objects in the pool. */
  readonly objects: number;
  readonly handed: HandedList;
  /** The expected system prompt, if any. A record with it is already being stored. */
  readonly early: { readonly system: string; readonly kept: Promise<unknown> } | undefined;
}

/**
 * Keeps Palimpsest from blocking a harness's loop. If our context fails or is late, the model call
 * uses the harness's own list. Its messages are recorded with a later call. The user is notified of
 * the first such call, and `palimpsest doctor` shows it.
 */
export class LoopGuard {
  readonly #options: LoopGuardOptions;
  /** Lists whose system prompt is not known yet, by session. */
  readonly #ahead = new Map<string, ListAhead>();
  readonly #lists = new LatestSessions<HandedLists>();
  /** The harness's own lists, by session. A session has an entry while they are used. */
  readonly #ownLists = new Map<string, OwnLists<unknown>>();
  /**
   * Sessions that must begin an epoch with their next context. Since their last context, one of
   * these happened:
   *
   * - A model call used the harness's own list, which did not continue the previous request.
   * - Another part of the request changed.
   * - The user turned Palimpsest off or on.
   */
  readonly #own = new Set<string>();
  readonly #bypassed = new BypassedTurns();
  /** Sessions in which the user requested a new epoch since the last context. */
  readonly #tidied = new Set<string>();
  /**
   * How users want contexts rendered, by session. Every list includes it, so that a restarted
   * sidecar knows it, too.
   */
  readonly #renderings = new Map<string, Rendering>();
  #passedThrough = 0;
  #trouble: string | undefined;

  constructor(options: LoopGuardOptions) {
    this.#options = options;
  }

  /** The guide that follows the system prompt, if any. It never changes. */
  get guide(): string | undefined {
    return this.#options.guide;
  }

  /** Why the last model call was not recorded; undefined if it was. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /**
   * Waits until the database answers, so that the first model call need not. The wait is limited
   * like a model call's. Returns whether the database answers.
   */
  async warmUp(limitMs = this.#options.limitMs): Promise<boolean> {
    const ready = withTimeout(this.#options.sidecar.call('ready', {}), limitMs);
    return ready.then(
      () => true,
      () => false,
    );
  }

  /**
   * Returns the list for the next model call. Undefined if the harness must use its own list
   * (`own`). `limitMs` limits the wait. `meanwhile` is called with the list while its record is
   * being stored.
   */
  async pass<M>(
    make: () => HarnessList<M>,
    limitMs = this.#options.limitMs,
    meanwhile: (messages: readonly M[]) => void = () => undefined,
  ): Promise<Passage<M> | undefined> {
    const begun = performance.now();
    const own = make();
    const { session } = own.list;
    const work = async () => {
      const made = await this.#passage(own);
      if (made === undefined) return undefined;
      const handed = this.#handedList(own, made.context);
      const kept = this.#handed(session, handed);
      const [{ at }] = await Promise.all([kept, Promise.resolve(made.messages).then(meanwhile)]);
      return { ...made, chars: handed.chars, at };
    };
    const passage = await this.#guarded(session, work, {
      limitMs,
      onFailure: (reason) => this.#noteBypass(session, reason),
    });
    if (passage !== undefined) this.#passed(session);
    if (passage !== undefined) this.#options.onPassed?.(performance.now() - begun, passage.context.pool);
    return passage;
  }

  /** Returns the harness's own list, for use while Palimpsest is off or our context is missing. */
  own<M>(own: HarnessList<M>): readonly M[] {
    const { session } = own.list;
    const { messages } = own.kept();
    // The list continues the previous request, so no thoughts are bound to another beginning.
    if (this.#lists.get(session)?.begins(messages) === true) {
      this.#bypassed.sent(own, messages);
      return own.messages;
    }
    const lists = (this.#ownLists.get(session) ?? new OwnLists<M>()) as OwnLists<M>;
    this.#ownLists.set(session, lists as OwnLists<unknown>);
    this.#own.add(session);
    this.#bypassed.sent(own, lists.of({ ...own, messages }));
    return lists.of(own);
  }

  /**
   * Records that a model call sent our previous list, followed by the messages since. Our next list
   * is used only after the user's next message.
   */
  continued<M>({ list }: Pick<HarnessList<M>, 'list'>, messages: readonly M[]): void {
    this.#bypassed.sent({ list }, messages);
  }

  /** Begins an epoch with the next context, because another part of the request changed. */
  again(session: string): void {
    this.#own.add(session);
  }

  /** Stores a whole request as the text of a context. Returns whether it did. Never rejects. */
  sent(request: Calls['sent']['params']): Promise<boolean> {
    return this.#options.sidecar.call('sent', request).then(
      ({ kept }) => kept,
      () => false,
    );
  }

  /**
   * Like `pass`, for a harness that makes a list before its system prompt is known. `handOver` must
   * follow. Within a turn, the previous prompt is expected, so the record is stored while the
   * harness continues.
   */
  async passAhead<M>(make: () => HarnessList<M>): Promise<Omit<Passage<M>, 'chars' | 'at'> | undefined> {
    const begun = performance.now();
    const own = make();
    const { session, system, messages } = own.list;
    const passage = await this.#guarded(session, () => this.#passage(own), {
      onFailure: (reason) => this.#noteBypass(session, reason),
    });
    this.#ahead.delete(session);
    if (passage === undefined) return undefined;
    this.#passed(session);
    const handed = this.#handedList(own, passage.context);
    const expected = messages.at(-1)?.role === 'user' ? undefined : system;
    const early =
      typeof expected === 'string'
        ? { system: expected, kept: this.#guarded(session, () => this.#handed(session, handed)) }
        : undefined;
    this.#ahead.set(session, { ms: performance.now() - begun, objects: passage.context.pool, handed, early });
    return passage;
  }

  /** Waits until the record of `passAhead`'s list is stored with its system prompt. */
  async handOver(session: string, system: string): Promise<void> {
    const begun = performance.now();
    const ahead = this.#ahead.get(session);
    if (ahead === undefined) return;
    this.#ahead.delete(session);
    const { ms, objects, handed, early } = ahead;
    if (early?.system === system) await early.kept;
    else await this.#guarded(session, () => this.#handed(session, { ...handed, system }));
    this.#options.onPassed?.(ms + performance.now() - begun, objects);
  }

  /**
   * Reports the messages since the last model call. Returns whether they are recorded. If not, the
   * next model call reports them again. Never rejects.
   */
  follow(list: WholeList): Promise<boolean> {
    return this.#options.sidecar.callWithList('follow', this.#rendered(list)).then(
      () => true,
      () => false,
    );
  }

  /** Closes a session in the sidecar, so that another process can open it. Never rejects. */
  async release(session: string): Promise<void> {
    await this.#options.sidecar.call('close', { session }).catch(() => undefined);
  }

  /** Changes how a session is rendered, beginning with its next model call. */
  render(session: string, rendering: Rendering): void {
    this.#renderings.set(session, { ...this.#renderings.get(session), ...rendering });
  }

  /**
   * Makes the user's next message begin an epoch. The sidecar learns this from the next list, so
   * that it is not lost if the sidecar ends.
   */
  tidy(session: string): void {
    this.#tidied.add(session);
  }

  /** Announces a model call whose list is not complete yet. Does not wait. */
  announce(session: string): void {
    this.#options.sidecar.call('announce', { session }).catch(() => undefined);
  }

  /** Announces a tool call that has begun. Does not wait. */
  expect(session: string, callId: string): void {
    this.#options.sidecar.call('expect', { session, callId }).catch(() => undefined);
  }

  /**
   * Returns a text for the model if a call would change a file that differs from what the model saw
   * last. Undefined if the call may run, or if the sidecar does not answer in time.
   */
  async beforeChange(call: Calls['beforeChange']['params']): Promise<string | undefined> {
    const answer = withTimeout(this.#options.sidecar.call('beforeChange', call), this.#options.limitMs);
    return (await answer.catch(() => null)) ?? undefined;
  }

  /**
   * Runs `activate`, `deactivate`, `pin` or `unpin` [§3.3] and returns the answer. Rejects if it
   * fails, so that the harness marks the call as failed.
   */
  async verb(call: Calls['verb']['params']): Promise<string> {
    const answer = withTimeout(this.#options.sidecar.call('verb', call), 5 * this.#options.limitMs);
    const { text, ok } = await answer.catch((error: unknown) => {
      throw new Error(`${call.verb} is not available at the moment: ${reasonOf(error)}`);
    });
    if (!ok) throw new Error(text.replace(/^Error: /, ''));
    return text;
  }

  /** Records that the user turned Palimpsest off or on. */
  async toggled(session: string, on: boolean): Promise<void> {
    this.#own.add(session);
    this.#bypassed.end(session);
    await withTimeout(this.#event(session, { kind: on ? 'resumed' : 'paused' }), this.#options.limitMs).catch(
      () => undefined,
    );
  }

  /**
   * Runs a command of the user. `state` is the harness's state of the session; `on` is changed
   * there.
   */
  async obey(session: string, { on, tidy = false, ...rendering }: LoopCommand, state: { on: boolean }): Promise<void> {
    if (tidy) this.tidy(session);
    this.render(session, rendering);
    if (on === undefined || on === state.on) return;
    state.on = on;
    await this.toggled(session, on);
  }

  /** Ends the sidecar, which completes its deliveries by itself. */
  end(): Promise<void> {
    return this.#options.sidecar.end(END_MS);
  }

  async #passage<M>(own: HarnessList<M>): Promise<Omit<Passage<M>, 'chars' | 'at'> | undefined> {
    const { list } = own;
    const { session } = list;
    const asked = {
      ...(this.#own.has(session) ? { ownList: true } : {}),
      ...(this.#tidied.has(session) ? { tidy: true } : {}),
    };
    const answer = this.#options.sidecar.callWithList('context', { ...this.#rendered(list), ...asked });
    // Makes the copies while the sidecar works. They are needed for the hash of the sent list.
    const [context] = await Promise.all([answer, Promise.resolve().then(own.kept)]);
    if (asked.tidy) this.#tidied.delete(session);
    if (context === null || !this.#bypassed.allows(own, composed({ ...own, ...own.kept() }, context))) return undefined;
    return { messages: composed(own, context), context };
  }

  /**
   * Returns the hash and size of the list to be sent. The harness may change its own list, so the
   * private copies are hashed.
   */
  #handedList<M>(own: HarnessList<M>, context: LoopContext): HandedList {
    const { session } = own.list;
    const lists = this.#lists.get(session) ?? new HandedLists();
    this.#lists.set(session, lists);
    return lists.of(composed({ ...own, ...own.kept() }, context));
  }

  /** Notes that a model call got our context. */
  #passed(session: string): void {
    this.#own.delete(session);
    this.#ownLists.delete(session);
    this.#bypassed.end(session);
  }

  #event(session: string, event: HistoryEvent): Promise<null> {
    return this.#options.sidecar.call('event', { session, event });
  }

  #rendered(list: WholeList): WholeList {
    return { ...list, ...this.#renderings.get(list.session) };
  }

  #handed(session: string, handed: HandedList & { readonly system?: string }): Promise<Calls['handed']['result']> {
    return this.#options.sidecar.call('handed', { session, ...handed });
  }

  /**
   * Reports that a model call did not use our context. This is needed because its record may have
   * been stored just at the time limit. Does not wait.
   */
  #noteBypass(session: string, detail: string): void {
    this.#options.onBypass?.(session, detail);
    this.#event(session, { kind: 'bypassed', detail }).catch(() => undefined);
  }

  async #guarded<T>(
    session: string,
    work: () => Promise<T>,
    {
      limitMs = this.#options.limitMs,
      onFailure,
    }: { readonly limitMs?: number; readonly onFailure?: (reason: string) => void } = {},
  ): Promise<T | undefined> {
    try {
      const result = await withTimeout(work(), limitMs);
      this.#trouble = undefined;
      return result;
    } catch (error) {
      this.#passedThrough += 1;
      const reason = reasonOf(error);
      void this.#options.trouble.write({
        session,
        passedThrough: this.#passedThrough,
        at: new Date().toISOString(),
        reason,
      });
      if (this.#trouble === undefined)
        this.#options.notify(
          `Palimpsest: not recording: ${reason}. The model has the harness's own context; see palimpsest doctor`,
        );
      this.#trouble = reason;
      onFailure?.(reason);
      return undefined;
    }
  }
}

const reasonOf = (error: unknown): string => messageOf(error).slice(0, 500);
