import type { BandState, StripBand, StripCall, StripMark } from './wire.js';

/** An object over some columns in a row in the same state; `to` is the first column behind them. */
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

/** The first column whose call includes a step; the number of columns where none does. */
export function columnOf(calls: readonly Pick<StripCall, 'step'>[], step: number): number {
  let [low, high] = [0, calls.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((calls[middle]?.step ?? 0) < step) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The rows of a strip: of each object the columns over which it stands in a state. */
export function bandRows(bands: readonly StripBand[], calls: readonly Pick<StripCall, 'step'>[]): readonly BandRow[] {
  return bands.map((band) => {
    const starts = band.changes.map(({ step }) => columnOf(calls, step));
    const spans = band.changes.flatMap(({ state }, i): readonly BandSpan[] => {
      const [from, to] = [starts[i] ?? calls.length, starts[i + 1] ?? calls.length];
      return from < to ? [{ from, to, state }] : [];
    });
    return { band, spans };
  });
}

/** Which rows a strip shows. */
export interface BandFilter {
  /** A part of a name or an id. */
  readonly name: string;
  /** Only objects whose text stood in some context. */
  readonly shownOnly: boolean;
}

const wasShown = ({ spans }: BandRow): boolean => spans.some(({ state }) => state !== 'line');

/** The rows that pass a filter, files before calls, each in the order in which the session came to know them. */
export function filteredRows(rows: readonly BandRow[], { name, shownOnly }: BandFilter): readonly BandRow[] {
  const wanted = name.toLowerCase();
  const kept = rows.filter(
    (row) =>
      (!shownOnly || wasShown(row)) && (row.band.name.toLowerCase().includes(wanted) || row.band.id.includes(name)),
  );
  return [...kept.filter(({ band }) => band.type === 'file'), ...kept.filter(({ band }) => band.type !== 'file')];
}

/** What of a window can be seen, in columns or rows: the first one, and the first one behind it. */
export function seenRange(
  scroll: number,
  window: number,
  size: { readonly each: number; readonly count: number; readonly spare?: number },
) {
  const { each, count, spare = 0 } = size;
  const from = Math.max(0, Math.floor(scroll / each) - spare);
  return { from, to: Math.min(count, Math.ceil((scroll + window) / each) + spare) };
}

/** How full each call was, in the same unit for all: tokens as the provider counted them where every call has them, else characters. */
export interface Fill {
  readonly unit: 'tokens' | 'characters';
  readonly parts: readonly (readonly { readonly name: string; readonly size: number }[])[];
  readonly most: number;
}

const usedTokens = ({ usage }: Pick<StripCall, 'usage'>): number =>
  (usage?.input ?? 0) + (usage?.cache_read ?? 0) + (usage?.cache_write ?? 0);

/** The sizes of the calls by section; where no context was handed out, by what was active then. */
export function fillOf(calls: readonly StripCall[], rows: readonly BandRow[]): Fill {
  const isMeasured = calls.some(({ chars }) => chars !== null);
  const sizes = new Array<number>(calls.length).fill(0);
  if (!isMeasured)
    for (const { band, spans } of rows)
      for (const { from, to, state } of spans)
        if (state !== 'line') for (let i = from; i < to; i += 1) sizes[i] = (sizes[i] ?? 0) + band.chars;
  const parts = calls.map(({ sections }, i) =>
    isMeasured ? sections.map(({ name, chars }) => ({ name, size: chars })) : [{ name: 'active', size: sizes[i] ?? 0 }],
  );
  const sums = parts.map((own) => own.reduce((sum, { size }) => sum + size, 0));
  return { unit: 'characters', parts, most: Math.max(1, ...sums) };
}

/** What the provider counted of each call, as a curve over all of them; none where it said nothing. */
export function usageCurve(
  calls: readonly StripCall[],
): { readonly most: number; readonly tokens: readonly number[] } | undefined {
  const tokens = calls.map(usedTokens);
  const most = Math.max(0, ...tokens);
  return most === 0 ? undefined : { most, tokens };
}

/** The marks of each column that has some. */
export function marksByColumn(
  marks: readonly StripMark[],
  calls: readonly Pick<StripCall, 'step'>[],
): ReadonlyMap<number, readonly StripMark[]> {
  const found = new Map<number, StripMark[]>();
  for (const mark of marks) {
    const column = Math.min(columnOf(calls, mark.step), calls.length - 1);
    found.set(column, [...(found.get(column) ?? []), mark]);
  }
  return found;
}

/** The call before or behind one, or the first of the turn before or behind it; undefined where there is none. */
export function neighbour(
  calls: readonly StripCall[],
  step: number,
  move: 'next' | 'previous' | 'next-turn' | 'previous-turn',
) {
  const at = Math.min(columnOf(calls, step), calls.length - 1);
  const here = calls[at];
  if (here === undefined) return undefined;
  if (move === 'next') return calls[at + 1];
  if (move === 'previous') return calls[at - 1];
  if (move === 'next-turn') return calls.find(({ turn }, i) => i > at && turn > here.turn);
  const before = calls.slice(0, at).findLast(({ turn }) => turn < here.turn);
  return before === undefined ? undefined : calls.find(({ turn }) => turn === before.turn);
}
