import fc from 'fast-check';

/** Damage to a file. Places and lengths are fractions of its length. */
export interface Damage {
  readonly kind: 'flip' | 'zero' | 'truncate' | 'duplicate' | 'insert';
  readonly at: number;
  readonly length: number;
  readonly to: number;
  readonly noise: Uint8Array;
}

const part = fc.double({ min: 0, max: 1, noNaN: true });

export const damage: fc.Arbitrary<Damage> = fc.record({
  kind: fc.constantFrom('flip', 'zero', 'truncate', 'duplicate', 'insert'),
  at: part,
  length: fc.double({ min: 0, max: 0.2, noNaN: true }),
  to: part,
  noise: fc.uint8Array({ minLength: 1, maxLength: 200 }),
});

/** Returns the bytes of a file after damage. */
export function damaged(bytes: Buffer, { kind, at, length, to, noise }: Damage): Buffer {
  const start = Math.min(bytes.length - 1, Math.floor(at * bytes.length));
  const end = Math.min(bytes.length, start + 1 + Math.floor(length * bytes.length));
  const target = Math.floor(to * bytes.length);
  const copy = Buffer.from(bytes);
  switch (kind) {
    case 'flip':
      copy.writeUInt8((copy[start] ?? 0) ^ (1 << ((noise[0] ?? 0) % 8)), start);
      return copy;
    case 'zero':
      return copy.fill(0, start, end);
    case 'truncate':
      return copy.subarray(0, Math.max(1, start));
    case 'duplicate':
      return Buffer.concat([bytes.subarray(0, target), bytes.subarray(start, end), bytes.subarray(target)]);
    case 'insert':
      return Buffer.concat([bytes.subarray(0, start), noise, bytes.subarray(start)]);
  }
}
