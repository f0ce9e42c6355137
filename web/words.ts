// Made once: `toLocaleString` makes one for each number, which was a tenth of a view.
const NUMBERS = new Intl.NumberFormat('en-US');

/** A number for people. */
export const counted = (n: number): string => NUMBERS.format(n);

/** A change of a number, with its sign. */
export const signed = (n: number): string => (n > 0 ? `+${counted(n)}` : n < 0 ? `−${counted(-n)}` : '0');

/** A time as every part of the program prints it: UTC, without the parts of a second. */
export const shortTime = (time: string): string => `${time.slice(0, 10)} ${time.slice(11, 19)}`;

/** The beginning of a digest; other ids as they are. */
export const shortId = (id: string): string => (/^[0-9a-f]{64}$/.test(id) ? id.slice(0, 12) : id);

/** Numbers as ranges: `1–3, 7`. */
export function rangesOf(numbers: readonly number[]): string {
  const spans: [number, number][] = [];
  for (const n of numbers) {
    const last = spans.at(-1);
    if (last !== undefined && n === last[1] + 1) last[1] = n;
    else spans.push([n, n]);
  }
  return spans.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(', ');
}

/** What a page says of a call whose context is not known. */
export const NOT_SEEN =
  'Not seen by Palimpsest: the agent or its harness built this request itself. The rows show the sets of the session, not what the model was sent.';
