import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { replaceFile } from '../../process/owned-file.js';
import type { SessionFigures } from '../money/session-figures.js';

const count = z.number().int().nonnegative();
const amount = z.number();

/** The state of a session: its last step and that step's time, milliseconds since 1970. */
const stateSchema = z.object({ upto: count, at: amount });

/** A session and the state for which facts about it hold. */
export interface SessionState extends z.output<typeof stateSchema> {
  readonly id: string;
}

/** A file of facts. Raise its version if a change of code alters facts of the same session. */
interface KeptFile<V> {
  readonly name: string;
  readonly version: number;
  readonly facts: z.ZodType<V>;
}

/**
 * A cache of facts about sessions, in a file of the data folder. A fact holds until its session
 * gets another step. A damaged file, or one of an earlier version, counts as empty. The file
 * contains titles, so only its user can read it.
 */
export class KeptSessions<V extends object> {
  readonly #path: string;
  readonly #version: number;
  readonly #known: Map<string, V & Omit<SessionState, 'id'>>;
  #changed = false;

  private constructor(path: string, version: number, known: Map<string, V & Omit<SessionState, 'id'>>) {
    [this.#path, this.#version, this.#known] = [path, version, known];
  }

  /** Opens a file of a data folder. */
  static async open<V extends object>(dataDir: string, file: KeptFile<V>): Promise<KeptSessions<V>> {
    const { name, version, facts } = file;
    const path = join(dataDir, name);
    const schema = z.object({
      version: z.literal(version),
      sessions: z.record(z.string(), z.intersection(facts, stateSchema)),
    });
    const text = await readFile(path, 'utf8').catch(() => '');
    let sessions: Readonly<Record<string, V & Omit<SessionState, 'id'>>> = {};
    try {
      sessions = schema.safeParse(JSON.parse(text)).data?.sessions ?? {};
    } catch {
      // A damaged file counts as empty.
    }
    return new KeptSessions(path, version, new Map(Object.entries(sessions)));
  }

  /**
   * Returns the facts of a session. Undefined if the session has changed since they were stored.
   */
  of({ id, upto, at }: SessionState): V | undefined {
    const known = this.#known.get(id);
    return known?.upto === upto && known.at === at ? known : undefined;
  }

  /** Returns the last facts of a session, even if it has changed since. */
  last(id: string): V | undefined {
    return this.#known.get(id);
  }

  keep({ id, upto, at }: SessionState, facts: V): void {
    this.#known.set(id, { ...facts, upto, at });
    this.#changed = true;
  }

  /** Writes the file if facts changed. Ignores a failed write, because the file is only a cache. */
  async save(): Promise<void> {
    if (!this.#changed) return;
    this.#changed = false;
    const content = { version: this.#version, sessions: Object.fromEntries(this.#known) };
    await replaceFile(this.#path, JSON.stringify(content)).catch(() => undefined);
  }
}

/** A session's title and figures. */
export interface KnownFigures {
  readonly title: string;
  readonly figures: SessionFigures;
}

/** The file with figures of sessions. */
export const FIGURES: KeptFile<KnownFigures> = {
  name: 'session-figures.json',
  version: 4,
  facts: z.object({
    title: z.string(),
    figures: z.object({
      calls: count,
      toolCalls: count,
      spent: z.object({
        calls: count,
        fresh: amount,
        cacheRead: amount,
        cacheWrite: amount,
        output: amount,
        amount,
        recorded: count,
        unpriced: count,
      }),
      model: z.string().optional(),
      filesChanged: count,
      failures: count,
      from: amount.optional(),
    }),
  }) as unknown as z.ZodType<KnownFigures>,
};

/** The result of the last verification of a session. */
export interface SessionCheck {
  /** Contexts, answers and parts that differ from what was written. */
  readonly findings: number;
  /** When it ended, milliseconds since 1970. */
  readonly checkedAt: number;
}

/** The file with results of `palimpsest verify`. */
export const CHECKS: KeptFile<SessionCheck> = {
  name: 'session-checks.json',
  version: 1,
  facts: z.object({ findings: count, checkedAt: amount }),
};

/** Keeps results of a verification. */
export async function keepChecks(dataDir: string, checks: readonly (SessionState & SessionCheck)[]): Promise<void> {
  const kept = await KeptSessions.open(dataDir, CHECKS);
  for (const { id, upto, at, ...check } of checks) kept.keep({ id, upto, at }, check);
  await kept.save();
}
