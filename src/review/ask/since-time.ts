import { HistoryError } from '../../history/rebuild/history-error.js';
import { parseTime } from '../../history/rebuild/moment.js';
import { quoted } from '../../objects/errors.js';

const HOUR_MS = 3_600_000;
const DAYS = { d: 1, w: 7 } as const;

const dayOf = (year: number, month: number, day: number): Date => new Date(year, month, day);

/**
 * Returns the time that `--since` names. `7d` and `2w` count local days, today included.
 * `2026-11-01` is the beginning of a local day. `24h` counts back from now. Other times are written
 * as in moments.
 *
 * @throws {HistoryError} `malformed-moment`
 */
export function sinceTime(text: string, now: Date): Date {
  const [, amount, unit] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  if (unit === 'h') return new Date(now.getTime() - Number(amount) * HOUR_MS);
  if (unit === 'd' || unit === 'w') {
    const days = Math.max(1, Number(amount) * DAYS[unit]);
    return dayOf(now.getFullYear(), now.getMonth(), now.getDate() - days + 1);
  }
  const [, year, month, day] = /^(\d{4})-?(\d\d)-?(\d\d)$/.exec(text) ?? [];
  const from = dayOf(Number(year), Number(month) - 1, Number(day));
  if (year !== undefined && from.getMonth() === Number(month) - 1) return from;
  try {
    return parseTime(text);
  } catch (error) {
    const forms = '7d, 2w, 24h, 2026-11-01 or 2026-11-01T14:05';
    throw new HistoryError('malformed-moment', `${quoted(text)} is not a day or time to begin with: write ${forms}.`, {
      cause: error,
    });
  }
}
