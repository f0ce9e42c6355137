/** A history entry that can be compared: a message or a finished tool call. */
export interface HistoryEntry {
  readonly kind: 'message' | 'call';
  /** The harness's id, if it has one. If both entries have an id, only ids are compared. */
  readonly id?: string;
  /**
   * Identifies an entry without an id. For a message, it combines role, name and text; for a call,
   * tool and output.
   */
  readonly key: string;
  /** Length of the entry's text. The equality of short texts is weak evidence. */
  readonly weight: number;
  /**
   * Whether a fork shares the entry with its parent. The entry has the parent's id, and the fork's
   * harness may use another id.
   */
  readonly inherited?: boolean;
}

/**
 * Describes how a sent history differs from the known history, if it does not just continue it.
 * Nothing is deleted from the session.
 */
export interface HistoryNotice {
  /**
   * `shortened`: the end of the known history is missing. `compacted`: earlier entries are missing,
   * but its end is there. `diverged`: the sent history continues differently.
   */
  readonly kind: 'shortened' | 'compacted' | 'diverged';
  /** Number of unchanged entries at the beginning. */
  readonly kept: number;
  /** Number of known entries that the harness no longer sends. */
  readonly missing: number;
}

/** The result of comparing a sent history with the known one. */
export interface Reconciled {
  /** Indexes of the new entries in the sent list, in rising order. */
  readonly fresh: readonly number[];
  /**
   * For each sent entry, the index of the known entry that it matches. Undefined for a new entry.
   */
  readonly matched: readonly (number | undefined)[];
  readonly notice: HistoryNotice | undefined;
}

/** Minimum length of a message that is not repeated by chance. */
const TELLING = 80;

/** Returns whether two entries are the same entry. */
export function sameEntry(known: HistoryEntry, sent: HistoryEntry): boolean {
  if (known.kind !== sent.kind) return false;
  if (known.id === undefined || sent.id === undefined) return known.key === sent.key;
  return known.id === sent.id || (known.inherited === true && known.kind === 'message' && known.key === sent.key);
}

/** Known entries. Each of them can be matched once. */
class Pool {
  readonly #entries: readonly HistoryEntry[];
  readonly #places = new Map<string, number[]>();
  readonly #taken = new Set<number>();

  constructor(entries: readonly HistoryEntry[], last: number) {
    this.#entries = entries;
    for (let i = entries.length - last; i < entries.length; i++) this.#taken.add(i);
    for (const [i, { kind, id, key }] of entries.entries()) {
      this.#add(`${kind} key ${key}`, i);
      if (id !== undefined) this.#add(`${kind} id ${id}`, i);
    }
  }

  get left(): number {
    return this.#entries.length - this.#taken.size;
  }

  /**
   * Takes the first entry at or after `from` that matches a sent entry. Returns its index, or
   * undefined.
   */
  take(sent: HistoryEntry, from = 0): number | undefined {
    const names = [...(sent.id === undefined ? [] : [`${sent.kind} id ${sent.id}`]), `${sent.kind} key ${sent.key}`];
    for (const name of names) {
      const place = this.#places.get(name)?.find((i) => i >= from && !this.#taken.has(i) && this.#matches(i, sent));
      if (place === undefined) continue;
      this.#taken.add(place);
      return place;
    }
    return undefined;
  }

  #matches(place: number, sent: HistoryEntry): boolean {
    const known = this.#entries[place];
    return known !== undefined && sameEntry(known, sent);
  }

  #add(name: string, place: number): void {
    const places = this.#places.get(name);
    if (places === undefined) this.#places.set(name, [place]);
    else places.push(place);
  }
}

/** Returns the number of equal pairs at the beginning. */
function sameRun(
  pairAt: (i: number) => readonly [known: HistoryEntry | undefined, sent: HistoryEntry | undefined],
): number {
  for (let run = 0; ; run++) {
    const [known, sent] = pairAt(run);
    if (known === undefined || sent === undefined || !sameEntry(known, sent)) return run;
  }
}

/**
 * Finds where the end of the known history is in the sent history. The longest match wins; among
 * equally long ones, the first.
 */
function tailOf(
  known: readonly HistoryEntry[],
  sent: readonly HistoryEntry[],
): { readonly end: number; readonly run: number } {
  let best = { end: 0, run: 0 };
  for (let end = 1; end <= sent.length; end++) {
    const run = sameRun((i) => [known[known.length - 1 - i], sent[end - 1 - i]]);
    if (run > best.run) best = { end, run };
  }
  return best;
}

/**
 * For each sent entry, the known entry that it matches, and the number of known entries without a
 * match.
 */
interface Found {
  readonly matched: readonly (number | undefined)[];
  readonly left: number;
}

/**
 * Matches a list that contains the end of the known history. Later entries are new. An earlier
 * entry is new if no known entry matches it. Undefined if that end was not found.
 */
function aroundTail(known: readonly HistoryEntry[], sent: readonly HistoryEntry[]): Found | undefined {
  const { end, run } = tailOf(known, sent);
  if (run === 0) return undefined;
  const pool = new Pool(known, run);
  const before = sent.slice(0, end - run).map((entry) => pool.take(entry));
  const tail = sent.slice(end - run, end);
  const byId = tail.some(({ id }, i) => id !== undefined && id === known[known.length - run + i]?.id);
  const telling =
    run >= 2 || byId || tail.some(({ kind, weight }) => kind === 'call' || weight >= TELLING) || pool.left === 0;
  if (!telling) return undefined;
  // Results of parallel calls may be in any order. A repeated message is a new message.
  const after = sent.slice(end).map((entry) => (entry.kind === 'message' ? undefined : pool.take(entry)));
  return { matched: [...before, ...tail.map((_, i) => known.length - run + i), ...after], left: pool.left };
}

/**
 * Matches a list that diverges. A message matches only in the order of the known history, and a
 * call anywhere.
 */
function inOrder(known: readonly HistoryEntry[], sent: readonly HistoryEntry[]): Found {
  const pool = new Pool(known, 0);
  let place: number | undefined = 0;
  const matched = sent.map((entry) => {
    if (entry.kind === 'call') return pool.take(entry);
    const found: number | undefined = place === undefined ? undefined : pool.take(entry, place);
    place = found === undefined ? undefined : found + 1;
    return found;
  });
  return { matched, left: pool.left };
}

const places = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);
const newOnes = (matched: Found['matched']): readonly number[] =>
  matched.flatMap((place, i) => (place === undefined ? [i] : []));

/**
 * Finds the new entries in a history that a harness sends as a whole (decisions F1, B2). An entry
 * that is known at its place is never new. If the history was compacted or diverged, entries that
 * are not recognised count as new, because a duplicate is better than a loss. Pure. It takes linear
 * time if the history has only grown.
 */
export function reconcile(known: readonly HistoryEntry[], sent: readonly HistoryEntry[]): Reconciled {
  const kept = sameRun((i) => [known[i], sent[i]]);
  const [before, after] = [known.slice(kept), sent.slice(kept)];
  if (before.length === 0) {
    return {
      fresh: after.map((_, i) => kept + i),
      matched: [...places(kept), ...after.map(() => undefined)],
      notice: undefined,
    };
  }
  if (after.length === 0)
    return { fresh: [], matched: places(kept), notice: { kind: 'shortened', kept, missing: before.length } };
  const tail = aroundTail(before, after);
  const { matched, left } = tail ?? inOrder(before, after);
  const fresh = newOnes(matched);
  const kind = tail !== undefined ? 'compacted' : fresh.length === 0 ? 'shortened' : 'diverged';
  return {
    fresh: fresh.map((i) => kept + i),
    matched: [...places(kept), ...matched.map((place) => (place === undefined ? undefined : kept + place))],
    notice: left === 0 ? undefined : { kind, kept, missing: left },
  };
}

/** A result, and the index of the view of the history that gave it. */
interface ReconciledView extends Reconciled {
  readonly view: number;
}

/**
 * Compares a sent history with several views of the known history. Returns the result with the
 * fewest new entries. Of equally good results, returns the first.
 */
export function reconcileWith(
  views: readonly (readonly HistoryEntry[])[],
  sent: readonly HistoryEntry[],
): ReconciledView {
  const [first, ...others] = views.map((known, view) => ({ ...reconcile(known, sent), view }));
  const none: ReconciledView = {
    fresh: places(sent.length),
    matched: sent.map(() => undefined),
    notice: undefined,
    view: 0,
  };
  return others.reduce((best, next) => (next.fresh.length < best.fresh.length ? next : best), first ?? none);
}
