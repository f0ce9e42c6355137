import type { RenderedMessage } from '../../assembly/render-messages.js';
import type { LoopContext } from '../../harness/loop-session.js';
import type { HandedList } from '../../objects/assembly-proof.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import type { Verb } from '../../session/verb-outcome.js';
import { patiently } from './patience.js';
import type { BesideProcess, WholeList } from './sidecar-process.js';
import type { TroubleFile } from './trouble-file.js';

/** A list of a harness's own messages, and what ours are in it. */
export interface HarnessList<M> {
  readonly list: WholeList;
  /** The place in the harness's list of each message that was reported: a result may be a part of a larger message. */
  readonly places: readonly number[];
  readonly messages: readonly M[];
  /** A message of the user with one part for each text. */
  readonly said: (message: RenderedMessage) => M;
  /** A message with the results in it replaced by lines, by their places in the reported list; everything else stays as it is. */
  readonly withReferences: (message: M, references: ReadonlyMap<number, string>) => M;
}

/** How a harness is served. */
export interface InTheLoopOptions {
  readonly beside: BesideProcess;
  readonly trouble: TroubleFile;
  /** The longest that a model call waits, milliseconds. */
  readonly limitMs: number;
  /** Tells the user something, once. */
  readonly tell: (line: string) => void;
  /** Told how long each model call waited, milliseconds, and how many objects the pool had. */
  readonly onPassed?: (ms: number, objects: number) => void;
}

/** What became of one model call. */
export interface Passage<M> {
  readonly messages: readonly M[];
  readonly context: LoopContext;
  /** UTF-16 units of the canonical JSON of the list. */
  readonly chars: number;
}

/** The list that a harness hands over: its own messages from the running turn on, with ours around them. */
export function composed<M>({ places, messages, said, withReferences }: HarnessList<M>, context: LoopContext): readonly M[] {
  const { from, before, after, references } = context;
  const start = places[from] ?? 0;
  const byPlace = new Map<number, Map<number, string>>();
  for (const { index, text } of references) {
    const place = places[index] ?? -1;
    byPlace.set(place, (byPlace.get(place) ?? new Map()).set(index, text));
  }
  const tail = messages.slice(start).map((message, i) => {
    const lines = byPlace.get(start + i);
    return lines === undefined ? message : withReferences(message, lines);
  });
  return [...before.map(said), ...tail, ...after.map(said)];
}

/** Hash and size of a list as its canonical JSON has them (decision E7); members without a value are no part of it. */
export function handedList(messages: readonly unknown[]): HandedList {
  const text = canonicalJson(JSON.parse(JSON.stringify(messages)));
  return { sha256: hashText(text), chars: text.length, messages: messages.length };
}

/**
 * Palimpsest in a harness's loop, never in its way: whatever fails or takes too long lets the harness's own list through, is told once, and can be seen in
 * `palimpsest doctor`.
 */
export class InTheLoop {
  readonly #options: InTheLoopOptions;
  /** How long calls have waited whose record is still to be kept, by session. */
  readonly #waited = new Map<string, { readonly ms: number; readonly objects: number }>();
  #passedThrough = 0;
  #troubled = false;

  constructor(options: InTheLoopOptions) {
    this.#options = options;
  }

  /** Waits for the database, for as long as a model call would; the first model call then need not. */
  async warmUp(): Promise<void> {
    await patiently(this.#options.beside.call('ready', {}), this.#options.limitMs).catch(() => undefined);
  }

  /** The list of the next model call; undefined: the harness's own is to be used. */
  async pass<M>(make: () => HarnessList<M>): Promise<Passage<M> | undefined> {
    const begun = performance.now();
    const own = make();
    return this.#guarded(own.list.session, async () => {
      const passage = await this.#passage(own);
      if (passage === undefined) return undefined;
      const handed = handedList(passage.messages);
      await this.#handed(own.list.session, handed);
      this.#options.onPassed?.(performance.now() - begun, passage.context.pool);
      return { ...passage, chars: handed.chars };
    });
  }

  /** As `pass`, where the system prompt becomes known only later: its record is kept by `handOver`. */
  async passAhead<M>(make: () => HarnessList<M>): Promise<Omit<Passage<M>, 'chars'> | undefined> {
    const begun = performance.now();
    const own = make();
    const { session } = own.list;
    const passage = await this.#guarded(session, () => this.#passage(own));
    if (passage !== undefined) this.#waited.set(session, { ms: performance.now() - begun, objects: passage.context.pool });
    return passage;
  }

  /** Keeps the record of a list whose system prompt became known only now. */
  async handOver(session: string, messages: readonly unknown[], system: string): Promise<void> {
    const begun = performance.now();
    await this.#guarded(session, () => this.#handed(session, { ...handedList(messages), system }));
    const waited = this.#waited.get(session);
    if (waited !== undefined) this.#options.onPassed?.(waited.ms + performance.now() - begun, waited.objects);
    this.#waited.delete(session);
  }

  /** Tells what was said since the last model call; nothing waits for it. */
  follow(list: WholeList): void {
    // The next model call tells it again.
    this.#options.beside.callWithList('follow', list).catch(() => undefined);
  }

  /** Tells that a call has begun; nothing waits for it. */
  expect(session: string, callId: string): void {
    this.#options.beside.call('expect', { session, callId }).catch(() => undefined);
  }

  /** One of the agent's own tools [§3.3]; a failure is its answer. */
  async verb(
    session: string,
    verb: Verb,
    ids: readonly string[],
    callId: string,
  ): Promise<{ readonly text: string; readonly ok: boolean }> {
    try {
      return await patiently(this.#options.beside.call('verb', { session, verb, ids, callId }), 5 * this.#options.limitMs);
    } catch (error) {
      return { text: `Error: ${verb} is not available at the moment: ${reasonOf(error)}`, ok: false };
    }
  }

  /** Notes that the user turned Palimpsest off or on. */
  async toggled(session: string, on: boolean): Promise<void> {
    const event = { kind: on ? 'resumed' : 'paused' } as const;
    await patiently(this.#options.beside.call('event', { session, event }), this.#options.limitMs).catch(() => undefined);
  }

  async #passage<M>(own: HarnessList<M>): Promise<Omit<Passage<M>, 'chars'> | undefined> {
    const context = await this.#options.beside.callWithList('context', own.list);
    return context === null ? undefined : { messages: composed(own, context), context };
  }

  async #handed(session: string, handed: HandedList & { readonly system?: string }): Promise<void> {
    await this.#options.beside.call('handed', { session, ...handed });
  }

  async #guarded<T>(session: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await patiently(work(), this.#options.limitMs);
      this.#troubled = false;
      return result;
    } catch (error) {
      this.#passedThrough += 1;
      const reason = reasonOf(error);
      void this.#options.trouble.write({ session, passedThrough: this.#passedThrough, at: new Date().toISOString(), reason });
      if (!this.#troubled)
        this.#options.tell(`Palimpsest: this model call has the harness's own context (${reason}); see palimpsest doctor`);
      this.#troubled = true;
      return undefined;
    }
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 500);
