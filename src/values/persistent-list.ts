/**
 * A list that only grows, of which every value stays as it is. Values of one line share their items: appending to the newest costs what is appended, to an older one a copy of it.
 * An older value keeps alive what was appended after it.
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

  /** The list with more items at its end. */
  concat(more: readonly T[]): PersistentList<T> {
    if (more.length === 0) return this;
    // The empty list is one constant for every line.
    const isNewest = this.size > 0 && this.#items.length === this.size;
    const items = isNewest ? this.#items : this.#items.slice(0, this.size);
    for (const item of more) items.push(item);
    return new PersistentList(items, items.length);
  }

  /** The item at a place, counted from 0; undefined outside the list. */
  get(place: number): T | undefined {
    return place < this.size ? this.#items[place] : undefined;
  }

  first(): T | undefined {
    return this.get(0);
  }

  last(): T | undefined {
    return this.get(this.size - 1);
  }

  /** The place of the last item that a test accepts; -1 where it accepts none. Begins at the end. */
  findLastIndex(accepts: (item: T) => boolean): number {
    for (let place = this.size - 1; place >= 0; place--) if (accepts(this.#items[place] as T)) return place;
    return -1;
  }

  /** The last item that a test accepts. */
  findLast(accepts: (item: T) => boolean): T | undefined {
    return this.get(this.findLastIndex(accepts));
  }

  /** The items from a place on. */
  toArray(from = 0): readonly T[] {
    return this.#items.slice(from, this.size);
  }

  [Symbol.iterator](): Iterator<T> {
    return this.toArray()[Symbol.iterator]();
  }
}
