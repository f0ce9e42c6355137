import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RenderedMessage } from '../../assembly/render-messages.js';
import type { LoopContext, Rendering } from '../../harness/loop-session.js';
import type { HandedList } from '../../objects/assembly-proof.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import { replaceFile } from '../../process/owned-file.js';
import type { LoopTrouble } from '../../process/process-reports.js';
import { messageOf } from '../../values/thrown.js';
import type { Calls } from './protocol.js';
import { type SidecarProcess, type WholeList, withTimeout } from './sidecar-process.js';

const KEPT_MS = 7 * 24 * 3_600_000;

/**
 * The file in which one harness process reports trouble to `palimpsest doctor`. It stays after the process has ended; the first report of another process a
 * week later removes it.
 */
export class TroubleFile {
  readonly #folder: string;
  readonly #what: string;
  #writing: Promise<void> = Promise.resolve();
  #begun = false;

  constructor(dataDir: string, what: string) {
    this.#folder = join(dataDir, 'loops');
    this.#what = what;
  }

  /** Replaces the report. Never rejects: a report that cannot be written must not make more trouble. */
  write(trouble: Omit<LoopTrouble, 'what' | 'pid'>): Promise<void> {
    const whole: LoopTrouble = { what: this.#what, pid: process.pid, ...trouble };
    this.#writing = this.#writing.then(() => this.#replace(whole)).catch(() => undefined);
    return this.#writing;
  }

  async #replace(trouble: LoopTrouble): Promise<void> {
    const path = join(this.#folder, `${this.#what}-${process.pid}.json`);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    if (!this.#begun) await this.#forgetOld();
    this.#begun = true;
    await replaceFile(path, JSON.stringify(trouble));
  }

  async #forgetOld(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      if (Date.now() - (await stat(path)).mtimeMs > KEPT_MS) await rm(path, { force: true });
    }
  }
}

/** How long the end of a session or of a program waits for what was said last to be delivered. */
const END_MS = 5_000;

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
export interface LoopGuardOptions {
  readonly sidecar: SidecarProcess;
  readonly trouble: TroubleFile;
  /** The longest that a model call waits, milliseconds. */
  readonly limitMs: number;
  /** Shows the user a line. */
  readonly notify: (line: string) => void;
  /** Called after each model call with how long it waited, milliseconds, and how many objects the pool had. */
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
 * Keeps Palimpsest from ever blocking a harness's loop: when our context fails or takes too long, the model call goes out with the harness's own list, the
 * user is notified of the first such call, and `palimpsest doctor` shows it.
 */
export class LoopGuard {
  readonly #options: LoopGuardOptions;
  /** By session: how long the model call has waited whose record is still to be kept. */
  readonly #waited = new Map<string, { readonly ms: number; readonly objects: number }>();
  /** How sessions are shown, as far as their users have said; it goes with every list, so that another sidecar knows it too. */
  readonly #renderings = new Map<string, Rendering>();
  #passedThrough = 0;
  #troubled = false;

  constructor(options: LoopGuardOptions) {
    this.#options = options;
  }

  /** Waits for the database, at most as long as a model call would, so that the first model call need not. */
  async warmUp(): Promise<void> {
    await withTimeout(this.#options.sidecar.call('ready', {}), this.#options.limitMs).catch(() => undefined);
  }

  /** The list of the next model call; undefined where the harness must use its own. */
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

  /** As `pass`, for a harness whose system prompt becomes known only later: `handOver` keeps the record then. */
  async passAhead<M>(make: () => HarnessList<M>): Promise<Omit<Passage<M>, 'chars'> | undefined> {
    const begun = performance.now();
    const own = make();
    const { session } = own.list;
    const passage = await this.#guarded(session, () => this.#passage(own));
    if (passage !== undefined) this.#waited.set(session, { ms: performance.now() - begun, objects: passage.context.pool });
    return passage;
  }

  /** Keeps the record of a list that `passAhead` made, now that its system prompt is known. */
  async handOver(session: string, messages: readonly unknown[], system: string): Promise<void> {
    const begun = performance.now();
    await this.#guarded(session, () => this.#handed(session, { ...handedList(messages), system }));
    const waited = this.#waited.get(session);
    if (waited !== undefined) this.#options.onPassed?.(waited.ms + performance.now() - begun, waited.objects);
    this.#waited.delete(session);
  }

  /** Reports what was said since the last model call; nothing waits for it. */
  follow(list: WholeList): void {
    // The next model call reports it again.
    this.#options.sidecar.callWithList('follow', this.#rendered(list)).catch(() => undefined);
  }

  /** Changes how a session is shown, from its next model call on. */
  render(session: string, rendering: Rendering): void {
    this.#renderings.set(session, { ...this.#renderings.get(session), ...rendering });
  }

  /** Reports that a tool call has begun; nothing waits for it. */
  expect(session: string, callId: string): void {
    this.#options.sidecar.call('expect', { session, callId }).catch(() => undefined);
  }

  /** One of the agent's own tools [§3.3]: its answer. Rejects with a failure, which the harness marks as one. */
  async verb(call: Calls['verb']['params']): Promise<string> {
    const answer = withTimeout(this.#options.sidecar.call('verb', call), 5 * this.#options.limitMs);
    const { text, ok } = await answer.catch((error: unknown) => {
      throw new Error(`${call.verb} is not available at the moment: ${reasonOf(error)}`);
    });
    if (!ok) throw new Error(text.replace(/^Error: /, ''));
    return text;
  }

  /** Notes that the user turned Palimpsest off or on. */
  async toggled(session: string, on: boolean): Promise<void> {
    const event = { kind: on ? 'resumed' : 'paused' } as const;
    await withTimeout(this.#options.sidecar.call('event', { session, event }), this.#options.limitMs).catch(() => undefined);
  }

  /** Ends the sidecar; what it still delivers, it delivers by itself. */
  end(): Promise<void> {
    return this.#options.sidecar.end(END_MS);
  }

  async #passage<M>(own: HarnessList<M>): Promise<Omit<Passage<M>, 'chars'> | undefined> {
    const context = await this.#options.sidecar.callWithList('context', this.#rendered(own.list));
    return context === null ? undefined : { messages: composed(own, context), context };
  }

  #rendered(list: WholeList): WholeList {
    return { ...list, ...this.#renderings.get(list.session) };
  }

  async #handed(session: string, handed: HandedList & { readonly system?: string }): Promise<void> {
    await this.#options.sidecar.call('handed', { session, ...handed });
  }

  async #guarded<T>(session: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await withTimeout(work(), this.#options.limitMs);
      this.#troubled = false;
      return result;
    } catch (error) {
      this.#passedThrough += 1;
      const reason = reasonOf(error);
      void this.#options.trouble.write({ session, passedThrough: this.#passedThrough, at: new Date().toISOString(), reason });
      if (!this.#troubled)
        this.#options.notify(`Palimpsest: this model call has the harness's own context (${reason}); see palimpsest doctor`);
      this.#troubled = true;
      return undefined;
    }
  }
}

const reasonOf = (error: unknown): string => messageOf(error).slice(0, 500);
