/**
 * An append-only, immutable list. Lists of one line share their items. Appending to the newest list
 * costs only the new items; appending to an older one copies it. An older list keeps later items
 * alive in memory.
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
    // The empty list is one constant shared by all lines.
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

  /** Returns the items from a place on. */
  toArray(from = 0): readonly T[] {
    return this.#items.slice(from, this.size);
  }

  [Symbol.iterator](): Iterator<T> {
    return this.toArray()[Symbol.iterator]();
  }
}
