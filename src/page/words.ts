// Cached, because `toLocaleString` creates a formatter per number, which took a tenth of a view's
// time.
const NUMBERS = new Intl.NumberFormat('en-US');

/** Formats a number for people. */
export const counted = (n: number): string => NUMBERS.format(n);

/** Formats a change of a number with its sign. */
export const signed = (n: number): string => (n > 0 ? `+${counted(n)}` : n < 0 ? `−${counted(-n)}` : '0');

/** Formats a time as every part of the program does: UTC, without fractions of a second. */
export const shortTime = (time: string): string => `${time.slice(0, 10)} ${time.slice(11, 19)}`;

/** Shortens a digest; returns other ids unchanged. */
export const shortId = (id: string): string => (/^[0-9a-f]{64}$/.test(id) ? id.slice(0, 12) : id);

/** Formats numbers as ranges: `1–3, 7`. */
export function rangesOf(numbers: readonly number[]): string {
  const spans: [number, number][] = [];
  for (const n of numbers) {
    const last = spans.at(-1);
    if (last !== undefined && n === last[1] + 1) last[1] = n;
    else spans.push([n, n]);
  }
  return spans.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(', ');
}

/** Text for a call whose context is unknown. */
export const NOT_SEEN =
  'Not seen by Palimpsest: the agent or its harness built this request itself. The rows show the sets of the ' +
  'session, not what the model was sent.';
