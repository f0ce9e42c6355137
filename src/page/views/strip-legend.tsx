import { useMemo } from 'preact/hooks';
import { refine } from '../place.js';
import { type Fill, makerOf, namedTurns, sectionOf, turnSpans, usedTokens } from '../strip-layout.js';
import type { Strip, StripMark } from '../wire.js';
import { counted, plural, shortCount } from '../words.js';

export const SYMBOLS: Readonly<Record<StripMark['kind'], { readonly sign: string; readonly name: string }>> = {
  epoch: { sign: '◆', name: 'new epoch' },
  verb: { sign: '▲', name: 'pinned, loaded or collapsed by hand' },
  event: { sign: '✂', name: 'compacted by the harness' },
  version: { sign: '✎', name: 'change of a file whose text was in the context' },
};

/** Describes a mark in a sentence. */
export function markText(mark: StripMark, names: ReadonlyMap<string, string>, calls: Strip['calls']): string {
  const { kind, number, reason, price, tool, event, object, by } = mark;
  const name = object === null ? '' : (names.get(object) ?? object.slice(0, 12));
  if (kind === 'epoch')
    return (
      `Epoch ${number ?? ''} began (${reason ?? ''})` +
      (price === null
        ? ''
        : `: ${plural(price.written, 'token')} written again, ${counted(price.saved_per_call)} saved a call`)
    );
  if (kind === 'verb') return `${tool ?? ''} ${name}${by === null ? ', by the agent' : ', by a person'}`;
  if (kind === 'version')
    return `${name} changed after call ${makerOf({ calls }, mark.step)}: version ${number ?? '?'}`;
  return `The harness: ${event ?? 'its history changed'}`;
}

export const COUNTED = 'Counted by the provider';
export const BUDGET = 'Budget of an epoch';
/**
 * Share of the budget that a request must reach before the chart shows the budget's line. With
 * smaller requests, the line would flatten the chart.
 */
const NEAR = 0.3;

/** Whether a request comes so near to the budget that the chart shows its line. */
export const isNearBudget = ({ budget, calls }: Strip, { totals }: Fill): boolean =>
  budget !== null && Math.max(...totals, ...calls.map((call) => usedTokens(call) ?? 0)) > NEAR * budget;

/** Explains the colours, lines and signs that the chart has. */
export function Legend({
  fill,
  strip,
  hasPrice,
}: {
  readonly fill: Fill;
  readonly strip: Strip;
  readonly hasPrice: boolean;
}) {
  const gaps = strip.calls.filter((call) => usedTokens(call) === undefined).length;
  const kinds = new Set(strip.marks.map(({ kind }) => kind));
  return (
    <ul class="legend" aria-label="Legend">
      {fill.sections.map(({ name }) => (
        <li key={name}>
          <i style={{ background: `var(${sectionOf(name).color})` }} /> {sectionOf(name).name}
        </li>
      ))}
      {strip.bands.some(({ changes }) => changes.some(({ state }) => state === 'pinned')) && (
        <li>
          <i style={{ background: 'var(--data-pinned)' }} /> Pinned
        </li>
      )}
      {strip.calls.some((call) => usedTokens(call) !== undefined) && (
        <li>
          <i class="line-sign" style={{ color: 'var(--ink)' }} /> {COUNTED}
          {gaps > 0 && `; a gap is a call without a count (${counted(gaps)})`}
        </li>
      )}
      {strip.budget !== null && (
        <li>
          <i class="line-sign dashed" style={{ color: 'var(--bad)' }} /> {BUDGET}, {shortCount(strip.budget)} tokens
          {!isNearBudget(strip, fill) && ', above the chart'}
        </li>
      )}
      {hasPrice && (
        <li>
          <i class="line-sign" /> Price of the call
        </li>
      )}
      {(Object.keys(SYMBOLS) as StripMark['kind'][])
        .filter((kind) => kinds.has(kind))
        .map((kind) => (
          <li key={kind}>
            <span aria-hidden="true">{SYMBOLS[kind].sign}</span> {SYMBOLS[kind].name}
          </li>
        ))}
    </ul>
  );
}

/** Events that the tooltip of a sign names. */
const MOST_TOLD = 8;
/** The numbers of turns and of marks for which a ruler has room. */
const ROOM = { wide: { turns: 24, marks: 60 }, narrow: { turns: 7, marks: 14 } } as const;

/** The turns and the marks above the columns. */
export function Ruler({
  strip,
  marked,
  isNarrow,
  names,
}: {
  readonly isNarrow: boolean;
  readonly strip: Strip;
  readonly names: ReadonlyMap<string, string>;
  readonly marked: ReadonlyMap<number, readonly StripMark[]>;
}) {
  const { calls } = strip;
  const spans = useMemo(() => turnSpans(calls), [calls]);
  const room = isNarrow ? ROOM.narrow : ROOM.wide;
  const named = useMemo(() => namedTurns(spans, calls.length, room.turns), [spans, room]);
  const percent = (column: number): string => `${(column * 100) / calls.length}%`;
  const each = Math.max(1, Math.ceil(calls.length / room.marks));
  const signs = new Map<number, readonly [number, readonly StripMark[]]>();
  for (const [column, own] of marked) {
    const slot = Math.floor(column / each);
    const known = signs.get(slot);
    signs.set(slot, [known?.[0] ?? column, [...(known?.[1] ?? []), ...own]]);
  }
  return (
    <div class="ruler" aria-hidden="true">
      {spans.map(({ turn, from: first, to }) => (
        <span
          key={turn}
          class={named.has(turn) ? 'ruler-turn' : 'ruler-turn short'}
          style={{ left: percent(first), width: percent(to - first) }}
        >
          {named.has(turn) ? (!isNarrow && to - first >= calls.length / 12 ? `turn ${turn}` : turn) : ''}
        </span>
      ))}
      {[...signs.values()].map(([column, own]) => (
        <span
          key={column}
          class="ruler-mark"
          role="img"
          style={{ left: percent(column + 0.5) }}
          onClick={() => refine({ step: calls[column]?.step })}
          title={own
            .slice(0, MOST_TOLD)
            .map((mark) => markText(mark, names, calls))
            .join('\n')}
        >
          {[...new Set(own.map(({ kind }) => SYMBOLS[kind].sign))].slice(0, 2).join('')}
        </span>
      ))}
    </div>
  );
}
