/** One stay of a value in a set. */
interface Stay<T> {
  readonly value: T;
  /** The change that brought it. */
  readonly from: number;
  /** The change that took it away; infinite where none did. */
  to: number;
  /** The stay of the same value before this one. */
  readonly before: Stay<T> | undefined;
}

/** The changes of one set, one after another, as all values of the line share them. */
interface Line<T> {
  /** In the order in which they began. */
  readonly stays: Stay<T>[];
  readonly newest: Map<T, Stay<T>>;
  /** The number of the last change. */
  changes: number;
  /** How many stays are over. */
  over: number;
}

/** How many stays that are over a line holds in any case. */
const SPARE_STAYS = 32;

function newLine<T>(values: Iterable<T>): Line<T> {
  const line: Line<T> = { stays: [], newest: new Map(), changes: 0, over: 0 };
  for (const value of values) begin(line, value);
  return line;
}

function begin<T>(line: Line<T>, value: T): void {
  const stay = { value, from: line.changes, to: Number.POSITIVE_INFINITY, before: line.newest.get(value) };
  line.stays.push(stay);
  line.newest.set(value, stay);
}

/**
 * A set in the order in which its values came, of which every state stays as it is. The states of one line share what they know: a change of the newest costs what changes, one of an older
 * state a copy of it. An older state keeps alive what came after it.
 */
export class PersistentSet<T> implements Iterable<T> {
  readonly size: number;
  readonly #line: Line<T>;
  /** The change of the line that this state is behind. */
  readonly #at: number;

  private constructor(line: Line<T>, at: number, size: number) {
    this.#line = line;
    this.#at = at;
    this.size = size;
  }

  static from<T>(values: Iterable<T>): PersistentSet<T> {
    const line = newLine(new Set(values));
    return new PersistentSet(line, 0, line.stays.length);
  }

  /** Takes constant time, and of an older state as much more as the value has come and gone since. */
  has(value: T): boolean {
    let stay = this.#line.newest.get(value);
    while (stay !== undefined && stay.from > this.#at) stay = stay.before;
    return stay !== undefined && stay.to > this.#at;
  }

  /** The set after some values left and some came; what leaves and comes stands at the end, what comes and was there stays where it was. */
  with(leaving: readonly T[], coming: readonly T[]): PersistentSet<T> {
    if (!leaving.some((value) => this.has(value)) && coming.every((value) => this.has(value))) return this;
    const line = this.#writable();
    line.changes += 1;
    let { size } = this;
    for (const value of leaving) {
      const stay = line.newest.get(value);
      if (stay === undefined || stay.to <= line.changes) continue;
      stay.to = line.changes;
      line.over += 1;
      size -= 1;
    }
    for (const value of coming) {
      if ((line.newest.get(value)?.to ?? 0) > line.changes) continue;
      begin(line, value);
      size += 1;
    }
    return new PersistentSet(line, line.changes, size);
  }

  /** The values, oldest first, without the first so many. */
  toArray(from = 0): readonly T[] {
    const { stays, over } = this.#line;
    // Where none ever left, each stands at its place.
    if (over === 0) return stays.slice(from, this.size).map(({ value }) => value);
    return stays
      .filter((stay) => stay.from <= this.#at && stay.to > this.#at)
      .map(({ value }) => value)
      .slice(from);
  }

  /** The values that came last, the newest first; costs what it returns where none of them has left. */
  newest(count: number): readonly T[] {
    const { stays } = this.#line;
    const values: T[] = [];
    for (let place = stays.length - 1; place >= 0 && values.length < count; place--) {
      const stay = stays[place] as Stay<T>;
      if (stay.from <= this.#at && stay.to > this.#at) values.push(stay.value);
    }
    return values;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.toArray()[Symbol.iterator]();
  }

  /** The line that a change of this state goes into: its own, where it is the newest state and the line holds little that has left. */
  #writable(): Line<T> {
    const { changes, over } = this.#line;
    // The empty set is one constant for every line.
    const own = this.size > 0 && changes === this.#at && over <= this.size + SPARE_STAYS;
    return own ? this.#line : newLine(this.toArray());
  }
}
