import { quoted } from '../../objects/errors.js';
import { HistoryError } from '../rebuild/history-error.js';
import { looksLikeMoment, type Moment, NOW, parseMoment, parseTime } from '../rebuild/moment.js';
import type { When } from '../rebuild/timeline.js';

/**
 * Splits `NAME@MOMENT` at the last `@` that a moment follows. Names and paths may contain an `@`.
 *
 * @throws {HistoryError} `malformed-moment` if the end begins like a moment and is none
 */
export function parseReference(text: string): { readonly name: string; readonly moment: Moment | undefined } {
  const at = text.lastIndexOf('@');
  const suffix = text.slice(at + 1);
  if (at <= 0 || !looksLikeMoment(suffix)) return { name: text, moment: undefined };
  return { name: text.slice(0, at), moment: parseMoment(suffix) };
}

/** A bare number is a turn where turns are expected. */
function momentOf(text: string): Moment {
  return /^(?:turn)?\d{1,3}(?:\.\d+)?$/.test(text)
    ? parseMoment(`turn:${text.replace(/^turn/, '')}`)
    : parseMoment(text);
}

/**
 * Parses a range of moments: `A..B`, `A..` (until now) and `..B` (from just before B). A bare
 * number is a turn.
 *
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

/** A moment as written: `at` for both clocks, or each clock separately. */
export interface MomentText {
  readonly at?: string | undefined;
  readonly validTime?: string | undefined;
  readonly tx?: string | undefined;
}

/**
 * Parses a transaction of the second clock: its number or a time.
 *
 * @throws {HistoryError} `malformed-moment`
 */
function parseTx(text: string): number | Date {
  const [, digits] = /^(?:@?tx:)?(\d{1,15})$/.exec(text) ?? [];
  return digits === undefined ? parseTime(text.replace(/^@/, '')) : Number(digits);
}

/**
 * Parses a time of the first clock. `now` is the time of the rest of the question.
 *
 * @throws {HistoryError} `malformed-moment`
 */
const timeOf = (text: string | undefined): Date | undefined =>
  text === undefined || text === 'now' ? undefined : parseTime(text);

/**
 * Returns the moment of a question, from its options and its reference.
 *
 * @throws {HistoryError} `malformed-moment`, also if both name one
 */
export function askedMoment({ at, validTime, tx }: MomentText, named?: Moment): When {
  if (at !== undefined && named !== undefined)
    throw new HistoryError('malformed-moment', `the moment is given twice: after an @ and as ${JSON.stringify(at)}`);
  return {
    moment: at === undefined ? named : parseMoment(at),
    validTime: timeOf(validTime),
    tx: tx === undefined || tx === 'now' ? undefined : parseTx(tx),
  };
}
