import { HistoryError } from '../rebuild/history-error.js';
import { type Moment, parseMoment, parseTime } from '../rebuild/moment.js';
import type { When } from '../rebuild/timeline.js';

/** A moment as it is written: `at` for both clocks, or either clock by itself. */
export interface MomentText {
  readonly at?: string | undefined;
  readonly validTime?: string | undefined;
  readonly tx?: string | undefined;
}

/** A transaction of the second clock: its number, or a time. Throws HistoryError `malformed-moment`. */
export function parseTx(text: string): number | Date {
  const [, digits] = /^(?:@?tx:)?(\d{1,15})$/.exec(text) ?? [];
  return digits === undefined ? parseTime(text.replace(/^@/, '')) : Number(digits);
}

/** The moment that is asked for, beside that which a reference names. Throws HistoryError `malformed-moment`, also where both name one. */
export function askedMoment({ at, validTime, tx }: MomentText, named?: Moment): When {
  if (at !== undefined && named !== undefined)
    throw new HistoryError('malformed-moment', `the moment is given twice: behind an @ and as ${JSON.stringify(at)}`);
  return {
    moment: at === undefined ? named : parseMoment(at),
    validTime: validTime === undefined ? undefined : parseTime(validTime),
    tx: tx === undefined ? undefined : parseTx(tx),
  };
}
