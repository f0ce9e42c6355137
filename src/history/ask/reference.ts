import { quoted } from '../../objects/errors.js';
import { HistoryError } from '../rebuild/history-error.js';
import { looksLikeMoment, type Moment, NOW, parseMoment, parseTime } from '../rebuild/moment.js';
import type { When } from '../rebuild/timeline.js';

/**
 * Splits `NAME@MOMENT` at its last `@`, where a moment follows: names and paths may hold an `@` themselves.
 * @throws {HistoryError} `malformed-moment` for what begins like a moment and is none
 */
export function parseReference(text: string): { readonly name: string; readonly moment: Moment | undefined } {
  const at = text.lastIndexOf('@');
  const suffix = text.slice(at + 1);
  if (at <= 0 || !looksLikeMoment(suffix)) return { name: text, moment: undefined };
  return { name: text.slice(0, at), moment: parseMoment(suffix) };
}

/** A bare number is a turn where turns are meant. */
function momentOf(text: string): Moment {
  return /^(?:turn)?\d{1,3}(?:\.\d+)?$/.test(text)
    ? parseMoment(`turn:${text.replace(/^turn/, '')}`)
    : parseMoment(text);
}

/**
 * Reads two moments that are compared, `A..B`, `A..` (until now) and `..B` (from just before B); a bare number is a turn.
 * @throws {HistoryError} `malformed-moment`
 */
export function parseRange(text: string): { readonly from: Moment | undefined; readonly to: Moment } {
  const [from = '', to = '', ...more] = text.split('..');
  if (!text.includes('..') || more.length > 0 || (from === '' && to === ''))
    throw new HistoryError(
      'malformed-moment',
      `${quoted(text)} is no range: write two moments as A..B, such as turn:3..turn:7 or tx:10..now`,
    );
  return { from: from === '' ? undefined : momentOf(from), to: to === '' ? NOW : momentOf(to) };
}

/** A moment as it is written: `at` for both clocks, or either clock by itself. */
export interface MomentText {
  readonly at?: string | undefined;
  readonly validTime?: string | undefined;
  readonly tx?: string | undefined;
}

/**
 * A transaction of the second clock: its number, or a time.
 * @throws {HistoryError} `malformed-moment`
 */
function parseTx(text: string): number | Date {
  const [, digits] = /^(?:@?tx:)?(\d{1,15})$/.exec(text) ?? [];
  return digits === undefined ? parseTime(text.replace(/^@/, '')) : Number(digits);
}

/** A time of the first clock; `now` is that of whatever else is asked for. @throws {HistoryError} `malformed-moment` */
const timeOf = (text: string | undefined): Date | undefined =>
  text === undefined || text === 'now' ? undefined : parseTime(text);

/**
 * The moment that is asked for, beside that which a reference names.
 * @throws {HistoryError} `malformed-moment`, also where both name one
 */
export function askedMoment({ at, validTime, tx }: MomentText, named?: Moment): When {
  if (at !== undefined && named !== undefined)
    throw new HistoryError('malformed-moment', `the moment is given twice: behind an @ and as ${JSON.stringify(at)}`);
  return {
    moment: at === undefined ? named : parseMoment(at),
    validTime: timeOf(validTime),
    tx: tx === undefined || tx === 'now' ? undefined : parseTx(tx),
  };
}
