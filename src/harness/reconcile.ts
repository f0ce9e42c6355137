/** A history entry in comparable form: a message or a finished tool call. */
export interface HistoryEntry {
  readonly kind: 'message' | 'call';
  /** The harness's id, if any. If both sides have an id, only the id decides. */
  readonly id?: string;
  /**
   * Identifies an entry without an id: role, name and text of a message, or tool and output of a
   * call.
   */
  readonly key: string;
  /** Length of its text. A short text is weak evidence. */
  readonly weight: number;
  /**
   * Whether a fork shares it with its parent. Its id is the parent's, and the fork's harness may
   * use another one.
   */
  readonly inherited?: boolean;
}

/**
 * Reports a history that does not simply continue the known one. Nothing is deleted from the
 * session.
 */
export interface HistoryNotice {
  /**
   * `shortened`: its end is missing. `compacted`: earlier entries are missing, the end is there.
   * `diverged`: it continues differently.
   */
  readonly kind: 'shortened' | 'compacted' | 'diverged';
  /** Number of unchanged entries at the beginning. */
  readonly kept: number;
  /** Number of known entries that the harness no longer sends. */
  readonly missing: number;
}

/** The new entries of a history that was sent again. */
export interface Reconciled {
  /** Rising positions in the sent list. */
  readonly fresh: readonly number[];
  /** For each sent entry, the position of its known counterpart. Undefined for a new entry. */
  readonly matched: readonly (number | undefined)[];
  readonly notice: HistoryNotice | undefined;
}

/** A message of this length is not repeated by chance. */
const TELLING = 80;

/** Returns whether two entries are the same. */
export function sameEntry(known: HistoryEntry, sent: HistoryEntry): boolean {
  if (known.kind !== sent.kind) return false;
  if (known.id === undefined || sent.id === undefined) return known.key === sent.key;
  return known.id === sent.id || (known.inherited === true && known.kind === 'message' && known.key === sent.key);
}

/** Known entries, each matched at most once. */
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
   * Takes the first match of a sent entry at or after a position. Returns its position, or
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

/** Returns how many pairs from the first on are the same. */
function sameRun(
  pairAt: (i: number) => readonly [known: HistoryEntry | undefined, sent: HistoryEntry | undefined],
): number {
  for (let run = 0; ; run++) {
    const [known, sent] = pairAt(run);
    if (known === undefined || sent === undefined || !sameEntry(known, sent)) return run;
  }
}

/** Finds the end of the known history in the sent one. The longest run wins, then the earliest. */
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
 * The new entries of a list whose other entries are all known, and the number of unmatched known
 * entries.
 */
interface Found {
  readonly matched: readonly (number | undefined)[];
  readonly left: number;
}

/**
 * The end of the known history was found. All later entries are new. An earlier entry is new if no
 * known entry matches it.
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
  // Results of parallel calls come in any order. A repeated message is a new message.
  const after = sent.slice(end).map((entry) => (entry.kind === 'message' ? undefined : pool.take(entry)));
  return { matched: [...before, ...tail.map((_, i) => known.length - run + i), ...after], left: pool.left };
}

/**
 * The histories diverge. Messages are known while they follow the known order; calls are known
 * anywhere.
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
 * Finds the new entries in a history that a harness sends again as a whole (decisions F1, B2). A
 * known entry in its place is never new. If the history was compacted or diverged, unrecognised
 * entries count as new: a duplicate is better than a loss. Pure; linear if the history only grew.
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

/** A reconciliation, and the index of its view. */
interface ReconciledView extends Reconciled {
  readonly view: number;
}

/**
 * Returns the reconciliation with the fewest new entries among several views of the known history.
 * On a tie, the earlier view wins.
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
