import { ownMember } from '../../values/own-member.js';
import { parseTime } from '../rebuild/moment.js';

const HOURS: Readonly<Record<string, number>> = { h: 1, d: 24, w: 168 };

/**
 * Returns the moment of `7d`, `24h`, `2w` or of a time.
 *
 * @throws {HistoryError} `malformed-moment`
 */
export function sinceTime(text: string, now: number): Date {
  const [, amount, unit = ''] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  return amount === undefined
    ? parseTime(text)
    : new Date(now - Number(amount) * (ownMember(HOURS, unit) ?? 0) * 3_600_000);
}
