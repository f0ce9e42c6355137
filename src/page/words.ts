import { ownMember } from '../values/own-member.js';

// Cached, because `toLocaleString` creates a formatter per number, which took a tenth of a view's
// time.
const NUMBERS = new Intl.NumberFormat('en-US');
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const TIMES = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

/** Formats a number for people. */
export const counted = (n: number): string => NUMBERS.format(n);

/** Formats a large number in few characters: `19.2K`. */
export const shortCount = (n: number): string => SHORT.format(n);

/** Formats a number with its noun: `1 call`, `2 calls`. */
export const plural = (n: number, noun: string, many = `${noun}s`): string => `${counted(n)} ${n === 1 ? noun : many}`;

/** Describes what a sum contains besides the session's own cost: `with 4 sub-agents:`. */
export const withAgents = (sessions: number): string => `with ${plural(sessions, 'sub-agent')}:`;

/** Formats a change of a number with its sign. */
export const signed = (n: number): string => (n > 0 ? `+${counted(n)}` : n < 0 ? `−${counted(-n)}` : '0');

/** Formats a time in the reader's time zone. */
export const localTime = (time: string): string => TIMES.format(new Date(time));

/** Formats the time of day without the date, in the reader's time zone. */
export const clockTime = (time: string): string => CLOCK.format(new Date(time));

/** Formats a price for an axis. */
export const axisMoney = (amount: number, currency: string): string =>
  new Intl.NumberFormat('en-US', { style: 'currency', currency, maximumFractionDigits: 6 }).format(amount);

/** Names of a conversation's speakers, and of its section in a request, for people. */
const SPEAKERS: Readonly<Record<string, string>> = {
  user: 'User',
  parent: 'Parent agent',
  assistant: 'Model',
  system: 'System prompt',
  developer: 'System prompt',
  harness: 'Harness',
  chat: 'Messages',
};

/** Names the speaker of a message for people; returns other names unchanged. */
export const speaker = (role: string): string => ownMember(SPEAKERS, role) ?? role;

/** Returns the parts of some sizes in whole percents, which add up to 100. */
export function percentsOf(sizes: readonly number[]): readonly number[] {
  const sum = sizes.reduce((total, size) => total + size, 0);
  const exact = sizes.map((size) => (sum === 0 ? 0 : (size * 100) / sum));
  const percents = exact.map(Math.floor);
  const left = sum === 0 ? 0 : 100 - percents.reduce((total, part) => total + part, 0);
  const byRest = exact.map((part, i) => ({ i, rest: part % 1 })).sort((a, b) => b.rest - a.rest);
  for (const { i } of byRest.slice(0, left)) percents[i] = (percents[i] ?? 0) + 1;
  return percents;
}

/** Formats a period for people: `3 h 12 min`. */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const [minutes, hours, days] = [Math.round(seconds / 60), Math.floor(seconds / 3_600), Math.floor(seconds / 86_400)];
  if (minutes < 60) return `${minutes} min`;
  if (days < 2) return `${hours} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${days} days`;
}

/** Formats money with its currency; small amounts have two significant digits. */
export function money(amount: number, currency: string): string {
  const isSmall = amount !== 0 && Math.abs(amount) < 0.1;
  const digits = isSmall ? { minimumSignificantDigits: 2, maximumSignificantDigits: 2 } : {};
  return new Intl.NumberFormat('en-US', { style: 'currency', currency, ...digits }).format(amount);
}

/** Shortens a digest; returns other ids unchanged. */
export const shortId = (id: string): string => (/^[0-9a-f]{64}$/.test(id) ? id.slice(0, 12) : id);

/** The folder of most files of the session, which names leave out. */
let root = '';

/** Minimum share of the files that a folder must contain to be left out of names. */
const MOST_OF = 0.9;

/** Sets the folder that names leave out: the one that contains most of these files. */
export function nameBelow(paths: readonly string[]): void {
  const counts = new Map<string, number>();
  for (const path of paths)
    for (let end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1)) {
      const folder = path.slice(0, end + 1);
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
  const shared = [...counts].filter(([folder, count]) => folder.startsWith('/') && count >= paths.length * MOST_OF);
  root = shared.map(([folder]) => folder).reduce((a, b) => (b.length > a.length ? b : a), '');
}

/** Returns the end of a path: without the session's folder, and with as many last names as fit. */
export function pathEnd(path: string, most = 48): string {
  const own = root !== '' && path.startsWith(root) ? path.slice(root.length) : path;
  if (own.length <= most) return own;
  const names = own.split('/');
  let end = names.pop() ?? own;
  for (let name = names.pop(); name !== undefined && end.length + name.length + 3 <= most; name = names.pop())
    end = `${name}/${end}`;
  return names.length === 0 && end.length > most ? end : `…/${end}`;
}

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
