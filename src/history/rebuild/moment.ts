import { quoted } from '../../objects/errors.js';
import { HistoryError } from './history-error.js';

/** A point in time, as a reviewer names it. */
export type Moment =
  | { readonly kind: 'now' }
  /** The end of a turn, or of one of its steps, counted from 1 within the turn. */
  | { readonly kind: 'turn'; readonly turn: number; readonly step?: number }
  /** A step of the session, counted from its beginning. */
  | { readonly kind: 'step'; readonly seq: number }
  /** The state of the database after a transaction. */
  | { readonly kind: 'tx'; readonly txId: number }
  /** The state that was valid at a time, as the database knows it today (decision F7). */
  | { readonly kind: 'time'; readonly time: Date };

/** The time of a question: a moment, and optionally a value for each clock. */
export interface When {
  readonly moment?: Moment | undefined;
  /** Restricts the valid time (decision F7). */
  readonly validTime?: Date | undefined;
  /** Restricts the transaction time: the state after a transaction, or at a time. */
  readonly tx?: number | Date | undefined;
}

/** The state that is valid and known now. */
export const NOW: Moment = { kind: 'now' };

/** The accepted forms, for messages and help. */
const MOMENT_FORMS =
  'now, turn:7, turn:7.3 (its third step), step:41, tx:123, 2026-11-21, 2026-11-21T14:05, 2026-11-21T14:05:30.123Z';

const malformed = (text: string, why: string): HistoryError =>
  new HistoryError('malformed-moment', `${quoted(text)} is not a moment: ${why}. Forms: ${MOMENT_FORMS}`);

const TIME =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3})\d*)?)?)?\s?(Z|[+-]\d{2}:?\d{2})?$/i;

function offsetMinutes(zone: string): number {
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d{2}):?(\d{2})$/.exec(zone) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

/**
 * Parses a time. Without a zone it is UTC, like every printed time.
 *
 * @throws {HistoryError} `malformed-moment`
 */
export function parseTime(text: string): Date {
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = '', zone = 'Z'] =
    TIME.exec(text.trim()) ?? [];
  if (year === undefined) throw malformed(text, 'it is not a time');
  const parts = [Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second)] as const;
  const utc = new Date(Date.UTC(...parts, Number(fraction.padEnd(3, '0'))));
  const back = [
    utc.getUTCFullYear(),
    utc.getUTCMonth(),
    utc.getUTCDate(),
    utc.getUTCHours(),
    utc.getUTCMinutes(),
    utc.getUTCSeconds(),
  ];
  if (!parts.every((part, i) => part === back[i])) throw malformed(text, 'there is no such date or time of day');
  return new Date(utc.getTime() - offsetMinutes(zone) * 60_000);
}

function wholeNumber(text: string, whole: string, least: number): number {
  const value = Number(text);
  if (!/^\d{1,15}$/.test(text) || value < least)
    throw malformed(whole, `${quoted(text)} is not a whole number of at least ${least}`);
  return value;
}

type Prefix = 'turn' | 'step' | 'tx';

const NUMBERED: Readonly<Record<Prefix, (rest: string, whole: string) => Moment>> = {
  turn: (rest, whole) => {
    const [turn = '', step, ...more] = rest.split('.');
    if (more.length > 0) throw malformed(whole, 'write at most one step after the turn, such as turn:7.3');
    const of = wholeNumber(turn, whole, 1);
    return step === undefined
      ? { kind: 'turn', turn: of }
      : { kind: 'turn', turn: of, step: wholeNumber(step, whole, 1) };
  },
  step: (rest, whole) => ({ kind: 'step', seq: wholeNumber(rest, whole, 1) }),
  tx: (rest, whole) => ({ kind: 'tx', txId: wholeNumber(rest, whole, 0) }),
};

/** Returns whether the text after a reference's `@` is meant as a moment, even if malformed. */
function looksLikeMoment(text: string): boolean {
  return /^(?:now$|(?:turn|step|tx):|\d{4}-\d{2})/i.test(text);
}

/**
 * Parses a moment, with or without a leading `@`.
 *
 * @throws {HistoryError} `malformed-moment`, with the accepted forms
 */
export function parseMoment(text: string): Moment {
  const given = text.startsWith('@') ? text.slice(1) : text;
  if (given === 'now') return NOW;
  const [, prefix, rest] = /^(turn|step|tx):(.*)$/s.exec(given) ?? [];
  if (prefix !== undefined && rest !== undefined) return NUMBERED[prefix as Prefix](rest, text);
  return { kind: 'time', time: parseTime(given) };
}

/** Formats a moment so that `parseMoment` reads it. */
export function formatMoment(moment: Moment): string {
  if (moment.kind === 'now') return 'now';
  if (moment.kind === 'turn') return `turn:${moment.turn}${moment.step === undefined ? '' : `.${moment.step}`}`;
  if (moment.kind === 'step') return `step:${moment.seq}`;
  return moment.kind === 'tx' ? `tx:${moment.txId}` : moment.time.toISOString();
}

/**
 * Splits `NAME@MOMENT` at the last `@` that is followed by a moment. Names and paths may contain an
 * `@`.
 *
 * @throws {HistoryError} `malformed-moment` if the end looks like a moment but is malformed
 */
export function parseReference(text: string): { readonly name: string; readonly moment: Moment | undefined } {
  const at = text.lastIndexOf('@');
  const suffix = text.slice(at + 1);
  if (at <= 0 || !looksLikeMoment(suffix)) return { name: text, moment: undefined };
  return { name: text.slice(0, at), moment: parseMoment(suffix) };
}

/** Parses an end of a range, where a bare number is a turn. */
function momentOf(text: string): Moment {
  return /^(?:turn)?\d{1,3}(?:\.\d+)?$/.test(text)
    ? parseMoment(`turn:${text.replace(/^turn/, '')}`)
    : parseMoment(text);
}

/**
 * Parses a range of moments: `A..B`, `A..` (until now) and `..B`. For `..B`, `from` is undefined
 * and the caller chooses it, for example the version that precedes the one at B. A bare number is a
 * turn.
 *
 * @throws {HistoryError} `malformed-moment`
 */
export function parseRange(text: string): { readonly from: Moment | undefined; readonly to: Moment } {
  const [from = '', to = '', ...more] = text.split('..');
  if (!text.includes('..') || more.length > 0 || (from === '' && to === ''))
    throw new HistoryError(
      'malformed-moment',
      `${quoted(text)} is not a range: write two moments as A..B, such as turn:3..turn:7 or tx:10..now`,
    );
  return { from: from === '' ? undefined : momentOf(from), to: to === '' ? NOW : momentOf(to) };
}

/** A moment as text: `at` for both clocks, or each clock separately. */
export interface MomentText {
  readonly at?: string | undefined;
  readonly validTime?: string | undefined;
  readonly tx?: string | undefined;
}

/**
 * Parses a transaction time: the number of a transaction, or a time.
 *
 * @throws {HistoryError} `malformed-moment`
 */
function parseTx(text: string): number | Date {
  const [, digits] = /^(?:@?tx:)?(\d{1,15})$/.exec(text) ?? [];
  return digits === undefined ? parseTime(text.replace(/^@/, '')) : Number(digits);
}

/**
 * Parses a valid time. `now` gives undefined, so the question's moment decides.
 *
 * @throws {HistoryError} `malformed-moment`
 */
const timeOf = (text: string | undefined): Date | undefined =>
  text === undefined || text === 'now' ? undefined : parseTime(text);

/**
 * Returns the moment of a question, from its options and its reference.
 *
 * @throws {HistoryError} `malformed-moment`; also if both name a moment
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
