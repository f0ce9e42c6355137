/** An entry of a history as it is compared: a message or a finished tool call. */
export interface HistoryEntry {
  readonly kind: 'message' | 'call';
  /** The harness's own id, where there is one; where both sides have one, it alone decides. */
  readonly id?: string;
  /** What an entry without an id is known by: role, name and text of a message, tool and output of a call. */
  readonly key: string;
  /** Length of what it says; a short one is weak evidence. */
  readonly weight: number;
  /** A fork shares it with its parent: its id is the parent's, and the fork's harness may give it another one. */
  readonly inherited?: boolean;
}

/** A history that does not simply go on from what is known; nothing of the session is deleted for it. */
export interface HistoryNotice {
  /** `shortened`: its end is missing. `compacted`: earlier entries are missing, the end is there. `diverged`: it goes on differently. */
  readonly kind: 'shortened' | 'compacted' | 'diverged';
  /** Entries at the beginning that are as they were. */
  readonly kept: number;
  /** Known entries that the harness no longer sends. */
  readonly missing: number;
}

/** What is new in a history that was sent again. */
export interface Reconciled {
  /** Positions in the list that was sent, rising. */
  readonly fresh: readonly number[];
  /** For each entry that was sent, the place of the known one that it is; undefined for a new one. */
  readonly matched: readonly (number | undefined)[];
  readonly notice: HistoryNotice | undefined;
}

/** A message this long is not said twice by chance. */
const TELLING = 80;

/** Whether two entries are the same one. */
export function sameEntry(known: HistoryEntry, sent: HistoryEntry): boolean {
  if (known.kind !== sent.kind) return false;
  if (known.id === undefined || sent.id === undefined) return known.key === sent.key;
  return known.id === sent.id || (known.inherited === true && known.kind === 'message' && known.key === sent.key);
}

/** Known entries that can each be recognised once. */
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

  /** Takes the first entry from a place on that is the one sent; its place, or undefined. */
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

/** How many pairs of entries, from the first on, are the same. */
function sameRun(pairAt: (i: number) => readonly [known: HistoryEntry | undefined, sent: HistoryEntry | undefined]): number {
  for (let run = 0; ; run++) {
    const [known, sent] = pairAt(run);
    if (known === undefined || sent === undefined || !sameEntry(known, sent)) return run;
  }
}

/** Where the end of what is known stands in what was sent: the longest run, the earliest of equal ones. */
function tailOf(known: readonly HistoryEntry[], sent: readonly HistoryEntry[]): { readonly end: number; readonly run: number } {
  let best = { end: 0, run: 0 };
  for (let end = 1; end <= sent.length; end++) {
    const run = sameRun((i) => [known[known.length - 1 - i], sent[end - 1 - i]]);
    if (run > best.run) best = { end, run };
  }
  return best;
}

/** What is new of a list, where everything else was found among the known entries, and how many of those were not found. */
interface Found {
  readonly matched: readonly (number | undefined)[];
  readonly left: number;
}

/** The end of what is known was found again: what follows it is new, what precedes it is new where nothing known is like it. */
function aroundTail(known: readonly HistoryEntry[], sent: readonly HistoryEntry[]): Found | undefined {
  const { end, run } = tailOf(known, sent);
  if (run === 0) return undefined;
  const pool = new Pool(known, run);
  const before = sent.slice(0, end - run).map((entry) => pool.take(entry));
  const tail = sent.slice(end - run, end);
  const byId = tail.some(({ id }, i) => id !== undefined && id === known[known.length - run + i]?.id);
  const telling = run >= 2 || byId || tail.some(({ kind, weight }) => kind === 'call' || weight >= TELLING) || pool.left === 0;
  if (!telling) return undefined;
  // Results of parallel calls come in any order; the same words said again are new words.
  const after = sent.slice(end).map((entry) => (entry.kind === 'message' ? undefined : pool.take(entry)));
  return { matched: [...before, ...tail.map((_, i) => known.length - run + i), ...after], left: pool.left };
}

/** The histories part: messages are known as long as they come in the known order, calls wherever they come. */
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
const newOnes = (matched: Found['matched']): readonly number[] => matched.flatMap((place, i) => (place === undefined ? [i] : []));

/**
 * Finds what is new in a history that a harness sends again as a whole (decisions F1, B2). What is known and still in place is not new, however often
 * it is sent; where a history was compacted or goes on differently, whatever cannot be recognised counts as new: rather twice than lost.
 * Pure; linear where the history only grew.
 */
export function reconcile(known: readonly HistoryEntry[], sent: readonly HistoryEntry[]): Reconciled {
  const kept = sameRun((i) => [known[i], sent[i]]);
  const [before, after] = [known.slice(kept), sent.slice(kept)];
  if (before.length === 0) {
    return { fresh: after.map((_, i) => kept + i), matched: [...places(kept), ...after.map(() => undefined)], notice: undefined };
  }
  if (after.length === 0) return { fresh: [], matched: places(kept), notice: { kind: 'shortened', kept, missing: before.length } };
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

/** A reconciliation, and which of several views of what is known it holds for. */
interface ReconciledView extends Reconciled {
  readonly view: number;
}

/** The reconciliation with the fewest new entries, of several views of what is known; the earlier view where they are equal. */
export function reconcileWith(views: readonly (readonly HistoryEntry[])[], sent: readonly HistoryEntry[]): ReconciledView {
  const [first, ...others] = views.map((known, view) => ({ ...reconcile(known, sent), view }));
  const none: ReconciledView = { fresh: places(sent.length), matched: sent.map(() => undefined), notice: undefined, view: 0 };
  return others.reduce((best, next) => (next.fresh.length < best.fresh.length ? next : best), first ?? none);
}
