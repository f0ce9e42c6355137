/** A seeded source of numbers, so that a run can be repeated. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 up to, but not including, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(of: readonly T[]): T {
    const one = of[this.between(0, of.length - 1)];
    if (one === undefined) throw new Error('nothing to pick from');
    return one;
  }

  /** One key of a table of weights. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries<number>(weights) as [K, number][];
    let rest = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      rest -= weight;
      if (rest < 0) return key;
    }
    return this.pick(entries)[0];
  }

  /** Lines of text without repetitions, about this number of characters long. */
  text(length: number): string {
    const words = [
      'const',
      'value',
      'return',
      'index',
      'für',
      'naïve',
      'λ',
      '→',
      '{',
      '}',
      '🙂',
      'path',
      'node',
      'await',
      'x',
    ];
    const lines: string[] = [];
    for (let size = 0; size < length; ) {
      const number = this.between(0, 1e9);
      const line = `${number} ${Array.from({ length: this.between(2, 12) }, () => this.pick(words)).join(' ')}`;
      lines.push(line);
      size += line.length + 1;
    }
    return lines.join('\n').slice(0, length).toWellFormed();
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.between(0, 255)));
  }
}
