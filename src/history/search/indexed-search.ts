import type { ObjectId, SessionId } from '../../objects/ids.js';
import { parseSource } from '../../objects/source.js';
import type { Candidate, TextIndex } from '../../text-index/text-index.js';
import type { CandidateLine } from './candidate-texts.js';
import { ENTRY_KINDS, type ForkLine, KEYS, type StepLine, type VersionLine } from './index-entries.js';
import { mergedPlaces, type PlaceFilter, placesOf, type SearchedPlace } from './searched-texts.js';
import type { SessionScope } from './session-scope.js';

/** Number of candidates that are compared together. */
const BATCH = 64;
/** Maximum number of sessions that an answer reports for one text. */
const MOST_SCOPES = 8;

/** The sessions that a search may look into. */
export interface OpenScopes {
  /** The only session of the search; undefined for all. */
  readonly session: SessionId | undefined;
  /** Returns the given sessions that exist and may be searched, in the same order. */
  open(sessions: readonly SessionId[]): Promise<readonly SessionScope[]>;
}

/** How candidates are compared before their versions are read. */
export interface ComparedTexts {
  /** Returns the texts of candidates. Undefined for a text that is read with its version. */
  read(lines: readonly CandidateLine[]): Promise<readonly (string | undefined)[]>;
  matches(text: string): boolean;
}

/** A candidate, and the time by which candidates are ordered. */
interface TimedLine {
  readonly line: CandidateLine;
  readonly at: number | undefined;
}

/** Candidates with their texts, as far as these are known. */
interface ReadBatch {
  readonly lines: readonly TimedLine[];
  readonly texts: readonly (string | undefined)[];
}

/**
 * Splits a list into parts of at least `atOnce` items. Items with the same time stay in one part,
 * because their places are ordered by name.
 */
function partsOf<T>(
  items: readonly T[],
  atOnce: number,
  at: (item: T) => number | undefined,
): readonly (readonly T[])[] {
  const parts: T[][] = [];
  let last: T | undefined;
  for (const item of items) {
    const part = parts.at(-1);
    const isTied = last !== undefined && at(item) === at(last);
    if (part !== undefined && (part.length < atOnce || isTied)) part.push(item);
    else parts.push([item]);
    last = item;
  }
  return parts;
}

/** Places whose texts may match, as an index proposes them. */
export interface ProposedPlaces {
  readonly places: readonly SearchedPlace[];
  /** Compared texts that do not match. */
  readonly others: readonly string[];
}

const timeOf = ({ segment, entry }: Candidate): number | undefined => segment.ats[entry];

/** Finds the places that an index proposes for some literals. */
export class IndexedPlaces {
  readonly #index: TextIndex;
  readonly #scopes: OpenScopes;
  readonly #filter: PlaceFilter;
  readonly #forks = new Map<SessionId, readonly ForkLine[]>();
  readonly #knowing = new Map<ObjectId, readonly SessionId[]>();

  constructor(index: TextIndex, scopes: OpenScopes, filter: PlaceFilter) {
    this.#index = index;
    this.#scopes = scopes;
    this.#filter = filter;
  }

  /**
   * Returns the candidates for some literals, newest or oldest first. Undefined if the index cannot
   * look them up.
   */
  candidates(literals: readonly string[], order: 'newest' | 'first'): readonly Candidate[] | undefined {
    const sign = order === 'first' ? -1 : 1;
    const { kind, path } = this.#filter;
    const wanted = path !== undefined ? 'file' : kind;
    if (path !== undefined && kind !== undefined && kind !== 'file') return [];
    return this.#index
      .withLiterals(literals)
      ?.filter(({ segment, entry }) => wanted === undefined || ENTRY_KINDS[segment.kinds[entry] ?? 0] === wanted)
      .sort((a, b) => sign * ((timeOf(b) ?? 0) - (timeOf(a) ?? 0)));
  }

  /**
   * Yields the places of candidates, newest first as in a search without an index. The caller still
   * compares the texts. Reading a version takes longer than reading its text. So texts that are
   * known without their versions are compared here, and left out if they do not match. The versions
   * of the others are read `atOnce` at a time, when the caller asks for them.
   */
  async *places(
    candidates: readonly Candidate[],
    compared: ComparedTexts,
    atOnce: number,
  ): AsyncGenerator<ProposedPlaces> {
    const batches = partsOf(candidates, BATCH, timeOf);
    let begun = 0;
    const read = async (): Promise<ReadBatch | undefined> => {
      const batch = batches[begun++];
      if (batch === undefined) return undefined;
      const lines = batch.map((one) => ({ line: one.segment.line(one.entry) as CandidateLine, at: timeOf(one) }));
      return { lines, texts: await compared.read(lines.map(({ line }) => line)) };
    };
    let next: Promise<ReadBatch | undefined> | undefined;
    for (let isFirst = true; ; isFirst = false) {
      const batch = await (next ?? read());
      if (batch === undefined) return;
      // Most searches end with the first batch, so its successor is not read in advance.
      next = isFirst ? undefined : read();
      // A failure must not count as unhandled before the promise is awaited.
      next?.catch(() => undefined);
      const matches = new Map<string, boolean>();
      for (const text of batch.texts)
        if (text !== undefined && !matches.has(text)) matches.set(text, compared.matches(text));
      // The content and the arguments of a call are two entries of one version.
      const kept = new Map<string, TimedLine>();
      for (const [i, { line: found, at }] of batch.lines.entries()) {
        const text = batch.texts[i];
        if (text !== undefined && matches.get(text) === false) continue;
        const { hash: _hash, inline: _inline, ...line } = found;
        kept.set(JSON.stringify(line), { line, at });
      }
      for (const part of partsOf([...kept.values()], atOnce, ({ at }) => at)) {
        const found = await Promise.all(part.map(({ line }) => this.#placesOf(line)));
        yield { places: mergedPlaces(found.flat()), others: [] };
      }
      yield { places: [], others: [...matches].flatMap(([text, isMatch]) => (isMatch ? [] : [text])) };
    }
  }

  #placesOf(line: CandidateLine): Promise<readonly SearchedPlace[]> {
    return 'object' in line ? this.#versionPlaces(line) : this.#messagePlaces(line);
  }

  async #messagePlaces({ session, seq }: StepLine): Promise<readonly SearchedPlace[]> {
    const scopes = await this.#scopes.open(this.#withForks([{ session, seq }]));
    const places = await Promise.all(
      scopes.map(async (scope): Promise<readonly SearchedPlace[]> => {
        const step = await scope.step(seq);
        return step?.message === undefined ? [] : [{ kind: 'message', at: step.at, scopes: [scope], step }];
      }),
    );
    return places.flat();
  }

  async #versionPlaces({ object, validTime, txId, source, tool }: VersionLine): Promise<readonly SearchedPlace[]> {
    if (tool !== undefined && tool === this.#filter.exceptTool) return [];
    const places: SearchedPlace[] = [];
    let known = 0;
    for (const session of this.#sessionsOf(object)) {
      if (known === MOST_SCOPES) break;
      const [scope] = await this.#scopes.open([session]);
      if (scope === undefined || !fits(scope, source, this.#filter)) continue;
      const head = (await scope.heads(object)).find(
        (one) => one.txId === txId && one.validTime.getTime() === validTime,
      );
      if (head === undefined || !(await scope.knows(object))) continue;
      known += 1;
      places.push(...placesOf(scope, { object, head }, this.#filter));
    }
    return places;
  }

  /** Returns the sessions that may have an object in their index, sorted by name. */
  #sessionsOf(object: ObjectId): readonly SessionId[] {
    const own = /^system_prompt:(.*)$/s.exec(object)?.[1];
    const { session } = this.#scopes;
    if (own !== undefined) return session === undefined || session === own ? [own as SessionId] : [];
    const found = this.#knowing.get(object);
    if (found !== undefined) return found;
    const steps = this.#index.withKey(KEYS.known(object)).map(({ segment, entry }) => segment.line(entry) as StepLine);
    const sessions = this.#withForks(steps);
    this.#knowing.set(object, sessions);
    return sessions;
  }

  /** Returns the sessions of some steps, and the forks that share these steps, sorted by name. */
  #withForks(steps: readonly StepLine[]): readonly SessionId[] {
    const first = new Map<SessionId, number>();
    const add = (session: SessionId, seq: number): void => {
      if (seq >= (first.get(session) ?? Number.POSITIVE_INFINITY)) return;
      first.set(session, seq);
      for (const { fork, seq: last } of this.#forksOf(session)) if (seq <= last) add(fork, seq);
    };
    for (const { session, seq } of steps) if (session !== undefined) add(session, seq);
    const { session } = this.#scopes;
    return session === undefined ? [...first.keys()].sort() : first.has(session) ? [session] : [];
  }

  #forksOf(session: SessionId): readonly ForkLine[] {
    const known = this.#forks.get(session);
    if (known !== undefined) return known;
    const found = this.#index
      .withKey(KEYS.forks(session))
      .filter(({ segment, entry }) => ENTRY_KINDS[segment.kinds[entry] ?? 0] === 'fork')
      .map(({ segment, entry }) => segment.line(entry) as ForkLine);
    this.#forks.set(session, found);
    return found;
  }
}

function fits({ paths }: SessionScope, source: unknown, { path }: PlaceFilter): boolean {
  if (path === undefined) return true;
  const parsed = parseSource(source);
  return parsed !== null && path(paths.display(parsed));
}
