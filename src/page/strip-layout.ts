import type { BandState, StripBand, StripCall, StripMark } from './wire.js';

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

/** Returns the first column whose call includes a step; the number of columns if none does. */
export function columnOf(calls: readonly Pick<StripCall, 'step'>[], step: number): number {
  let [low, high] = [0, calls.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((calls[middle]?.step ?? 0) < step) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the rows of a strip: for each object, its column spans by state. */
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

/** Selects the rows of a strip. */
export interface BandFilter {
  /** A part of a name or an id. */
  readonly name: string;
  /** Only objects whose text was in some context. */
  readonly shownOnly: boolean;
}

const wasShown = ({ spans }: BandRow): boolean => spans.some(({ state }) => state !== 'line');

/** Returns the rows that pass a filter: files before calls, each in order of discovery. */
export function filteredRows(rows: readonly BandRow[], { name, shownOnly }: BandFilter): readonly BandRow[] {
  const wanted = name.toLowerCase();
  const kept = rows.filter(
    (row) =>
      (!shownOnly || wasShown(row)) && (row.band.name.toLowerCase().includes(wanted) || row.band.id.includes(name)),
  );
  return [...kept.filter(({ band }) => band.type === 'file'), ...kept.filter(({ band }) => band.type !== 'file')];
}

/** Returns the visible range of columns or rows: the first, and the first after it. */
export function seenRange(
  scroll: number,
  window: number,
  size: { readonly each: number; readonly count: number; readonly spare?: number },
) {
  const { each, count, spare = 0 } = size;
  const from = Math.max(0, Math.floor(scroll / each) - spare);
  return { from, to: Math.min(count, Math.ceil((scroll + window) / each) + spare) };
}

/**
 * The size of each call in one unit: tokens if the provider counted every call, else characters.
 */
export interface Fill {
  readonly unit: 'tokens' | 'characters';
  readonly parts: readonly (readonly { readonly name: string; readonly size: number }[])[];
  readonly most: number;
}

const usedTokens = ({ usage }: Pick<StripCall, 'usage'>): number =>
  (usage?.input ?? 0) + (usage?.cache_read ?? 0) + (usage?.cache_write ?? 0);

/**
 * Returns the sizes of the calls by section. If no context was delivered, uses the active texts.
 */
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

/** Returns the provider's count of each call as a curve; empty without counts. */
export function usageCurve(
  calls: readonly StripCall[],
): { readonly most: number; readonly tokens: readonly number[] } | undefined {
  const tokens = calls.map(usedTokens);
  const most = Math.max(0, ...tokens);
  return most === 0 ? undefined : { most, tokens };
}

/** Groups the marks by column. */
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

/**
 * Returns the previous or next call, or the first call of the previous or next turn; undefined if
 * there is none.
 */
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
