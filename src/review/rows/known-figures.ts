import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { replaceFile } from '../../process/owned-file.js';
import type { SessionFigures } from '../money/session-figures.js';

const count = z.number();
const figuresSchema = z.object({
  calls: count,
  toolCalls: count,
  spent: z.object({
    calls: count,
    fresh: count,
    cacheRead: count,
    cacheWrite: count,
    output: count,
    amount: count,
    recorded: count,
    unpriced: count,
  }),
  model: z.string().optional(),
  filesChanged: count,
  failures: count,
  from: count.optional(),
});
const knownSchema = z.object({
  /** The session's last step and its time: other figures belong to another state. */
  upto: count,
  at: count,
  title: z.string(),
  figures: figuresSchema,
});
type Known = z.output<typeof knownSchema>;

/** Raised when the figures of unchanged sessions become different. */
const VERSION = 2;
const fileSchema = z.object({ version: z.literal(VERSION), sessions: z.record(z.string(), knownSchema) });

/** The state of a session that its figures belong to. */
export interface FiguredState {
  readonly id: string;
  readonly upto: number;
  readonly at: number;
}

/**
 * The figures of sessions that were counted before. It is a cache: a damaged or older file is
 * counted anew. It contains titles, so only this user can read it.
 */
export class KnownFigures {
  readonly #path: string;
  readonly #known: Map<string, Known>;
  #changed = false;

  private constructor(path: string, known: Map<string, Known>) {
    this.#path = path;
    this.#known = known;
  }

  /** Opens the figures of a data folder. */
  static async open(dataDir: string): Promise<KnownFigures> {
    const path = join(dataDir, 'session-figures.json');
    try {
      const { data } = fileSchema.safeParse(JSON.parse(await readFile(path, 'utf8')));
      return new KnownFigures(path, new Map(Object.entries(data?.sessions ?? {})));
    } catch {
      return new KnownFigures(path, new Map());
    }
  }

  /** Returns the figures of a session that has not changed since they were counted. */
  figures({ id, upto, at }: FiguredState): SessionFigures | undefined {
    const known = this.#known.get(id);
    return known?.upto === upto && known.at === at ? (known.figures as SessionFigures) : undefined;
  }

  /** Returns a session's title, which never changes once it has one. */
  title(id: string): string | undefined {
    return this.#known.get(id)?.title;
  }

  keep({ id, upto, at }: FiguredState, { title, figures }: { title: string; figures: SessionFigures }): void {
    this.#known.set(id, { upto, at, title, figures });
    this.#changed = true;
  }

  /** Writes the figures if they changed. A folder that cannot be written keeps none. */
  async save(): Promise<void> {
    if (!this.#changed) return;
    this.#changed = false;
    const content = { version: VERSION, sessions: Object.fromEntries(this.#known) };
    await replaceFile(this.#path, JSON.stringify(content)).catch(() => undefined);
  }
}
