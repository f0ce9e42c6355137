/**
 * An immutable list to which items can be appended. A list and those appended from it form a line,
 * which shares the items. Appending to the newest list costs only the new items; appending to an
 * older one copies it. An older list keeps later items in memory.
 */
export class PersistentList<T> implements Iterable<T> {
  readonly size: number;
  readonly #items: T[];

  private constructor(items: T[], size: number) {
    this.#items = items;
    this.size = size;
  }

  static from<T>(items: Iterable<T>): PersistentList<T> {
    const own = [...items];
    return new PersistentList(own, own.length);
  }

  /** Returns the list with more items appended. */
  concat(more: readonly T[]): PersistentList<T> {
    if (more.length === 0) return this;
    // The empty list is a constant that all lines share, so it never counts as the newest.
    const isNewest = this.size > 0 && this.#items.length === this.size;
    const items = isNewest ? this.#items : this.#items.slice(0, this.size);
    for (const item of more) items.push(item);
    return new PersistentList(items, items.length);
  }

  /** Returns the item at a 0-based place; undefined outside the list. */
  get(place: number): T | undefined {
    return place < this.size ? this.#items[place] : undefined;
  }

  first(): T | undefined {
    return this.get(0);
  }

  last(): T | undefined {
    return this.get(this.size - 1);
  }

  /** Returns the place of the last accepted item; -1 if there is none. Searches from the end. */
  findLastIndex(accepts: (item: T) => boolean): number {
    for (let place = this.size - 1; place >= 0; place--) if (accepts(this.#items[place] as T)) return place;
    return -1;
  }

  /** Returns the last accepted item. */
  findLast(accepts: (item: T) => boolean): T | undefined {
    return this.get(this.findLastIndex(accepts));
  }

  /** Returns the items from a place to the end. */
  toArray(from = 0): readonly T[] {
    return this.#items.slice(from, this.size);
  }

  [Symbol.iterator](): Iterator<T> {
    return this.toArray()[Symbol.iterator]();
  }
}
/** A period in which a value is in the set. */
interface Stay<T> {
  readonly value: T;
  /** The change that added it. */
  readonly from: number;
  /** The change that removed it; infinite while it is in the set. */
  to: number;
  /** The previous period of the same value. */
  readonly before: Stay<T> | undefined;
}

/** The sequence of changes of one set, shared by all its states. */
interface Line<T> {
  /** The periods, ordered by their beginning. */
  readonly stays: Stay<T>[];
  readonly newest: Map<T, Stay<T>>;
  /** Number of the last change. */
  changes: number;
  /** Number of ended periods. */
  over: number;
}

/** Number of ended periods that a line may always have. */
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
 * An immutable set in insertion order. A set and those changed from it are states of one line and
 * share data. A change of the newest state costs only the change; a change of an older one copies
 * it. An older state keeps later values in memory.
 */
export class PersistentSet<T> implements Iterable<T> {
  readonly size: number;
  readonly #line: Line<T>;
  /** The last change of the line that this state includes. */
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

  /**
   * Takes constant time. On an older state, each later removal or addition of the value makes it
   * slower.
   */
  has(value: T): boolean {
    let stay = this.#line.newest.get(value);
    while (stay !== undefined && stay.from > this.#at) stay = stay.before;
    return stay !== undefined && stay.to > this.#at;
  }

  /**
   * Returns the set after a removal and an addition. A value that is removed and added moves to the
   * end. A value that is added again without removal keeps its place.
   */
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

  /** Returns the values, oldest first, without the first `from`. */
  toArray(from = 0): readonly T[] {
    const { stays, over } = this.#line;
    // If no value ever left, indexes equal places.
    if (over === 0) return stays.slice(from, this.size).map(({ value }) => value);
    return stays
      .filter((stay) => stay.from <= this.#at && stay.to > this.#at)
      .map(({ value }) => value)
      .slice(from);
  }

  /**
   * Returns the most recently added values, newest first. If no value was removed since, it costs
   * only its result.
   */
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

  /**
   * Returns the line that takes a change of this state. This state's own line is reused if the
   * state is the newest and the line holds few ended periods.
   */
  #writable(): Line<T> {
    const { changes, over } = this.#line;
    // The empty set is a constant that all lines share, so it never counts as the newest.
    const own = this.size > 0 && changes === this.#at && over <= this.size + SPARE_STAYS;
    return own ? this.#line : newLine(this.toArray());
  }
}
