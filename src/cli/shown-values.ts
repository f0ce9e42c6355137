import { homedir } from 'node:os';
import { sep } from 'node:path';

const pad = (value: number): string => String(value).padStart(2, '0');
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Formats the local day of a time: `2026-11-27`. */
export function localDay(time: Date): string {
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
}

/**
 * Formats a local time with its zone and without milliseconds, `2026-11-27T19:02:31+01:00`. `--at`
 * accepts this form.
 */
export function localSecond(time: Date): string {
  const minutes = -time.getTimezoneOffset();
  const zone =
    minutes === 0
      ? 'Z'
      : `${minutes < 0 ? '-' : '+'}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`;
  const clock = `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
  return `${localDay(time)}T${clock}${zone}`;
}

/** Formats a day for a list: `27 Nov`. If it is not in the current year, the year is added. */
export function shortDay(time: Date, now: Date): string {
  const day = `${time.getDate()} ${MONTHS[time.getMonth()]}`;
  return time.getFullYear() === now.getFullYear() ? day : `${day} ${time.getFullYear()}`;
}

/**
 * Formats a time for a list: `27 Nov 19:02`. If it is not in the current year, the year replaces
 * the time of day.
 */
export function shortTime(time: Date, now: Date): string {
  return time.getFullYear() === now.getFullYear()
    ? `${shortDay(time, now)} ${pad(time.getHours())}:${pad(time.getMinutes())}`
    : shortDay(time, now);
}

/** Formats a number of tokens with three figures: `812`, `34.1k`, `1.25M`. */
export function shortCount(count: number): string {
  for (const [unit, name] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const) {
    // 999,600 becomes 1.00M, because it would round to 1000k.
    if (count < unit * 0.9995) continue;
    const value = count / unit;
    return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)}${name}`;
  }
  return String(Math.round(count));
}

/** Formats a size with three figures: `812B`, `34.1kB`, `1.25MB`. */
export const shortBytes = (bytes: number): string => `${shortCount(bytes)}B`;

/** Formats an amount of US dollars: `$12.34`. Below a cent it has four digits. */
export function dollars(amount: number): string {
  if (amount === 0) return '$0';
  if (amount < 0.01) return `$${amount.toFixed(4)}`;
  const [whole = '', cents = ''] = amount.toFixed(2).split('.');
  return `$${whole.replace(/\B(?=(?:\d{3})+$)/g, ',')}.${cents}`;
}

/** Returns a path with `~` in place of the home folder. */
export function homeless(path: string, home: string = homedir()): string {
  return path === home ? '~' : path.startsWith(`${home}${sep}`) ? `~${path.slice(home.length)}` : path;
}
