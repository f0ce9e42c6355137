/** The first 32 bits of the fractional parts of roots of the first primes: square roots to begin with, cube roots for the rounds. */
function fractions(count: number, root: (prime: number) => number): Uint32Array {
  const found = new Uint32Array(count);
  for (let [at, n] = [0, 2]; at < count; n += 1) {
    let isPrime = true;
    for (let d = 2; d * d <= n; d += 1) if (n % d === 0) isPrime = false;
    if (!isPrime) continue;
    const value = root(n);
    found[at] = Math.floor((value - Math.floor(value)) * 2 ** 32);
    at += 1;
  }
  return found;
}

const ROUNDS = fractions(64, Math.cbrt);
const BEGIN = fractions(8, Math.sqrt);

const turned = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

/** Takes one block of 64 bytes into a state. */
function take(state: Uint32Array, block: DataView, words: Uint32Array): void {
  for (let i = 0; i < 16; i += 1) words[i] = block.getUint32(4 * i);
  for (let i = 16; i < 64; i += 1) {
    const [a, b] = [words[i - 15] as number, words[i - 2] as number];
    const low = turned(a, 7) ^ turned(a, 18) ^ (a >>> 3);
    const high = turned(b, 17) ^ turned(b, 19) ^ (b >>> 10);
    words[i] = (words[i - 16] as number) + low + (words[i - 7] as number) + high;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i += 1) {
    const chosen = (e & f) ^ (~e & g);
    const most = (a & b) ^ (a & c) ^ (b & c);
    const first = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + chosen + (ROUNDS[i] as number) + (words[i] as number)) | 0;
    const second = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + most) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i] = (state[i] as number) + value;
}

/** SHA-256 by our own hand, for pages that a browser gives no cryptography: those that came over plain HTTP from elsewhere. */
export function ownSha256(bytes: Uint8Array): string {
  const padded = new Uint8Array((Math.ceil((bytes.length + 9) / 64) || 1) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor((bytes.length * 8) / 2 ** 32));
  view.setUint32(padded.length - 4, (bytes.length * 8) >>> 0);
  const state = Uint32Array.from(BEGIN);
  const words = new Uint32Array(64);
  for (let at = 0; at < padded.length; at += 64) take(state, new DataView(padded.buffer, at, 64), words);
  return [...state].map((word) => word.toString(16).padStart(8, '0')).join('');
}

/** SHA-256 of bytes, by the browser where it has one. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const subtle = globalThis.crypto?.subtle;
  if (subtle === undefined) return ownSha256(bytes);
  const digest = new Uint8Array(await subtle.digest('SHA-256', bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
