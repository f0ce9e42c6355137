import { type CountedFall, countedFalls, SHORTENING } from '../history/rebuild/counted-fall.js';
import { ownMember } from '../values/own-member.js';
import { tokensOf } from '../values/token-estimate.js';
import type { CountedTexts } from './counted-texts.js';
import type { BandState, Strip, StripBand, StripCall, StripMark } from './wire.js';

/** An object's columns with the same state; `to` is the first column after them. */
export interface BandSpan {
  readonly from: number;
  readonly to: number;
  readonly state: BandState;
}

/** A row of the strip. */
export interface BandRow {
  readonly band: StripBand;
  readonly spans: readonly BandSpan[];
}

/** Returns the first column whose request includes a step, or the number of columns. */
export function columnOf(calls: readonly Pick<StripCall, 'step'>[], step: number): number {
  let [low, high] = [0, calls.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((calls[middle]?.step ?? 0) < step) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether a column stands for a whole turn, in a session without known requests. */
export const isTurn = ({ delivered, sections }: StripCall): boolean => delivered === null && sections.length === 0;

/**
 * Returns the number, from 1, of the model call that made a step. The request of that call ends
 * before the step. In a session without known requests, it is the number of the step's turn column.
 */
export function makerOf({ calls }: Pick<Strip, 'calls'>, step: number): number {
  const before = columnOf(calls, step);
  const next = calls[before];
  return Math.min(calls.length, Math.max(1, next !== undefined && isTurn(next) ? before + 1 : before));
}

/** Returns the last step of the request that a step answered. */
export function requestOf(strip: Pick<Strip, 'calls'> | undefined, step: number): number {
  const call = strip?.calls[makerOf(strip, step) - 1];
  return call === undefined || call.step >= step ? Math.max(0, step - 1) : call.step;
}

/** Returns the last step of the first request that includes a step, or the step itself. */
export const requestWith = (strip: Pick<Strip, 'calls'> | undefined, step: number): number =>
  strip?.calls[columnOf(strip.calls, step)]?.step ?? step;

/** Returns the rows of a strip: for each object, its column spans by state. */
export function bandRows(bands: readonly StripBand[], calls: readonly Pick<StripCall, 'step'>[]): readonly BandRow[] {
  return bands.map((band) => {
    const starts = band.changes.map(({ step }) => columnOf(calls, step));
    const spans = band.changes.flatMap(({ state }, i): readonly BandSpan[] => {
      const [from, to] = [starts[i] ?? calls.length, starts[i + 1] ?? calls.length];
      return from < to && state !== 'out' ? [{ from, to, state }] : [];
    });
    return { band, spans };
  });
}

/** Returns the state of a row's object at a column; undefined before it was known. */
export const stateAt = ({ spans }: BandRow, column: number): BandState | undefined =>
  spans.find(({ from, to }) => from <= column && column < to)?.state;

/** The rows of a strip at a column. */
export interface SortedRows {
  /** Objects whose text is in the context, pinned ones first, each group by size. */
  readonly present: readonly BandRow[];
  /** Files whose text is in the context by the results of calls, which are also present. */
  readonly files: readonly BandRow[];
  /** Objects whose text is in the context of other calls. */
  readonly elsewhere: readonly BandRow[];
  /** Objects that were never more than a line, or that a transcript only names. */
  readonly lines: readonly BandRow[];
}

/**
 * Sorts rows by the context at a column, and keeps those whose name contains a text. If an object's
 * tokens at that column are not known, its size is estimated.
 */
export function sortedRows(
  rows: readonly BandRow[],
  column: number,
  {
    name = '',
    counts,
    isTranscript = false,
  }: {
    readonly name?: string | undefined;
    readonly counts?: CountedTexts['byObject'] | undefined;
    readonly isTranscript?: boolean;
  } = {},
): SortedRows {
  const wanted = name.toLowerCase();
  const sizeOf = ({ band }: BandRow): number => counts?.get(band.id) ?? tokensOf(band.chars);
  const kept = rows
    .filter(({ band }) => band.name.toLowerCase().includes(wanted) || band.id === name)
    .toSorted((a, b) => sizeOf(b) - sizeOf(a));
  const at = (state: BandState): readonly BandRow[] => kept.filter((row) => stateAt(row, column) === state);
  const there = [...at('pinned'), ...at('active'), ...at('part')];
  const others = kept.filter((row) => !there.includes(row));
  // In a transcript's request the calls have the texts of files.
  const isOfCalls = ({ band }: BandRow): boolean => isTranscript && band.type === 'file';
  const [present, files] = [there.filter((row) => !isOfCalls(row)), there.filter(isOfCalls)];
  const wasShown = ({ spans }: BandRow): boolean => spans.some(({ state }) => state !== 'line');
  return { present, files, elsewhere: others.filter(wasShown), lines: others.filter((row) => !wasShown(row)) };
}

/** Returns the visible range of columns or rows: the first one, and the first one after it. */
export function seenRange(
  scroll: number,
  window: number,
  size: { readonly each: number; readonly count: number; readonly spare?: number },
) {
  const { each, count, spare = 0 } = size;
  const from = Math.max(0, Math.floor(scroll / each) - spare);
  return { from, to: Math.min(count, Math.ceil((scroll + window) / each) + spare) };
}

/** The sections of a request, in its order, with their names for people and their colours. */
const SECTIONS: Readonly<Record<string, { readonly name: string; readonly color: string }>> = {
  system: { name: 'System prompt', color: '--data-system' },
  notes: { name: 'Notes of the epoch', color: '--data-notes' },
  pool: { name: 'One line each', color: '--data-other' },
  list: { name: 'User, model and tools', color: '--data-list' },
  chat: { name: 'Conversation', color: '--data-chat' },
  active: { name: 'Files and results', color: '--data-text' },
  untold: { name: 'Not in the transcript', color: '--data-other' },
};

/** Returns the name and the colour of a section. */
export const sectionOf = (name: string): { readonly name: string; readonly color: string } =>
  ownMember(SECTIONS, name) ?? { name, color: '--data-other' };

/** The sizes of the requests by section, in tokens that are estimated from characters. */
export interface Fill {
  /** For each section that occurs, its size at each call. */
  readonly sections: readonly { readonly name: string; readonly sizes: readonly number[] }[];
  readonly totals: readonly number[];
}

/** Returns the provider's count of a call's prompt; undefined without one. */
export function usedTokens({ usage }: Pick<StripCall, 'usage'>): number | undefined {
  if (usage === null) return undefined;
  const { input = 0, cache_read: read = 0, cache_write: written = 0 } = usage;
  return input + read + written || undefined;
}

/** Returns the falls of the provider's count in a session that only a transcript shows. */
export const fallsOf = ({ calls, marks }: Pick<Strip, 'calls' | 'marks'>): readonly CountedFall[] =>
  countedFalls(
    calls.map((call) => ({ ...call, tokens: usedTokens(call) })),
    marks.flatMap(({ event, step }) => (event !== null && SHORTENING.has(event) ? [step] : [])),
  );

/** Estimates the tokens of a number of characters. */
export const aboutTokens = (chars: number): number => Math.round(tokensOf(chars));

/**
 * Returns the sizes of the requests by section. If no context was recorded, uses the active texts.
 */
export function fillOf(calls: readonly StripCall[], rows: readonly BandRow[]): Fill {
  const isMeasured = calls.some(({ chars }) => chars !== null);
  const active = new Array<number>(calls.length).fill(0);
  if (!isMeasured)
    for (const { band, spans } of rows)
      for (const { from, to, state } of spans)
        if (state !== 'line') for (let i = from; i < to; i += 1) active[i] = (active[i] ?? 0) + band.chars;
  const names = isMeasured
    ? Object.keys(SECTIONS).filter((name) => calls.some((call) => call.sections.some((own) => own.name === name)))
    : ['active'];
  const charsOf = (name: string): readonly number[] =>
    isMeasured ? calls.map((call) => call.sections.find((own) => own.name === name)?.chars ?? 0) : active;
  const sections = names.map((name) => ({ name, sizes: charsOf(name).map(aboutTokens) }));
  const totals = calls.map((_, i) => sections.reduce((sum, { sizes }) => sum + (sizes[i] ?? 0), 0));
  return { sections, totals };
}

/** A turn's columns; `to` is the first column after them. */
export interface TurnSpan {
  readonly turn: number;
  readonly from: number;
  readonly to: number;
}

/** Returns the turns of a strip, for a ruler. */
export function turnSpans(calls: readonly Pick<StripCall, 'turn'>[]): readonly TurnSpan[] {
  const spans: { turn: number; from: number; to: number }[] = [];
  for (const [i, { turn }] of calls.entries()) {
    const last = spans.at(-1);
    if (last?.turn === turn) last.to = i + 1;
    else spans.push({ turn, from: i, to: i + 1 });
  }
  return spans;
}

/** Returns the turns whose numbers have room above their columns. Prefers longer turns. */
export function namedTurns(spans: readonly TurnSpan[], calls: number, room: number): ReadonlySet<number> {
  const named: TurnSpan[] = [];
  for (const span of spans.toSorted((a, b) => b.to - b.from - (a.to - a.from) || a.from - b.from))
    if (named.length < room && named.every(({ from }) => Math.abs(from - span.from) * room >= calls)) named.push(span);
  return new Set(named.map(({ turn }) => turn));
}

/** Groups the marks by column. */
export function marksByColumn(
  marks: readonly StripMark[],
  calls: readonly Pick<StripCall, 'step'>[],
): ReadonlyMap<number, readonly StripMark[]> {
  const found = new Map<number, StripMark[]>();
  for (const mark of marks) {
    const column = Math.min(columnOf(calls, mark.step), calls.length - 1);
    const own = found.get(column);
    if (own === undefined) found.set(column, [mark]);
    else own.push(mark);
  }
  return found;
}

/**
 * Returns the previous or next call, or the first call of the previous or next turn; undefined if
 * there is none.
 */
export function neighbour(
  calls: readonly StripCall[],
  step: number,
  move: 'next' | 'previous' | 'next-turn' | 'previous-turn',
) {
  const at = Math.max(0, columnOf(calls, step + 1) - 1);
  const here = calls[at];
  if (here === undefined) return undefined;
  if (move === 'next') return calls[at + 1];
  if (move === 'previous') return calls[at - 1];
  if (move === 'next-turn') return calls.find(({ turn }, i) => i > at && turn > here.turn);
  const before = calls.slice(0, at).findLast(({ turn }) => turn < here.turn);
  return before === undefined ? undefined : calls.find(({ turn }) => turn === before.turn);
}

/** Arranges facts about some calls by column. A column without a fact gets undefined. */
export function inColumns<T extends { readonly step: number }>(
  known: readonly T[],
  strip: Strip | undefined,
): readonly (T | undefined)[] {
  if (strip === undefined) return known;
  const found = new Map(known.map((one) => [columnOf(strip.calls, one.step + 1), one]));
  return strip.calls.map((_call, i) => found.get(i + 1));
}
