import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { AnswerBox } from '../answer-box.js';
import { isServed } from '../ask.js';
import { Band, type BandProps, bandTip } from '../band.js';
import { callNumber, chosenStep, useQuestion, useStrip } from '../calls.js';
import { Chart, type ChartSeries } from '../chart.js';
import { ForkHere, UndoStep } from '../person.js';
import { from, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import {
  type BandRow,
  bandRows,
  type Fill,
  fillOf,
  marksByColumn,
  sectionOf,
  sortedRows,
  turnSpans,
  usedTokens,
} from '../strip-layout.js';
import type { Money, Strip, StripCall, StripMark } from '../wire.js';
import { counted, localTime, money, plural, shortCount } from '../words.js';

const ROWS_FIRST = 25;
const CHART_PX = 170;
/** Room for the names of rows, and for the axis of prices, pixels. */
const [NAMES, NAMES_NARROW, SIZES] = [250, 116, 66];
const NARROW = 720;

const SYMBOLS: Readonly<Record<StripMark['kind'], { readonly sign: string; readonly name: string }>> = {
  epoch: { sign: '◆', name: 'new epoch' },
  verb: { sign: '▲', name: 'pinned, loaded or collapsed by hand' },
  event: { sign: '✂', name: 'compacted by the harness' },
  version: { sign: '✎', name: 'changed on the disk' },
};

/** Describes a mark in a sentence. */
function markText(mark: StripMark, names: ReadonlyMap<string, string>): string {
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
  if (kind === 'version') return `${name} changed on the disk (version ${number ?? '?'})`;
  return `The harness: ${event ?? 'its history changed'}`;
}

/** Returns the sizes of the calls as areas above each other, the largest sum first. */
function areasOf({ sections }: Fill): readonly ChartSeries[] {
  const sums = new Array<number>(sections[0]?.sizes.length ?? 0).fill(0);
  return sections
    .map(({ name, sizes }): ChartSeries => {
      const values = sizes.map((size, i) => {
        sums[i] = (sums[i] ?? 0) + size;
        return sums[i];
      });
      return {
        name: sectionOf(name).name,
        color: sectionOf(name).color,
        values,
        draws: 'area',
      };
    })
    .toReversed();
}

const COUNTED = 'Counted by the provider';
const BUDGET = 'Budget of an epoch';
/** The part of the budget from which on its line is in the chart. Else it would flatten the rest. */
const NEAR = 0.3;

/** Whether a request comes so near to the budget that the chart shows its line. */
const isNearBudget = ({ budget, calls }: Strip, { totals }: Fill): boolean =>
  budget !== null && Math.max(...totals, ...calls.map((call) => usedTokens(call) ?? 0)) > NEAR * budget;

function Legend({ fill, strip, hasPrice }: { readonly fill: Fill; readonly strip: Strip; readonly hasPrice: boolean }) {
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

/** The number of turns that the ruler has room to name. */
const MOST_NAMED = 24;

/** Returns the turns whose numbers fit above their columns. */
function namedTurns(spans: ReturnType<typeof turnSpans>, calls: number): ReadonlySet<number> {
  let free = 0;
  const named = new Set<number>();
  for (const { turn, from: first } of spans) {
    if (first < free) continue;
    named.add(turn);
    free = first + calls / MOST_NAMED;
  }
  return named;
}

/** The turns and the marks above the columns. */
function Ruler({
  strip,
  marked,
}: {
  readonly strip: Strip;
  readonly marked: ReadonlyMap<number, readonly StripMark[]>;
}) {
  const { calls } = strip;
  const spans = useMemo(() => turnSpans(calls), [calls]);
  const named = useMemo(() => namedTurns(spans, calls.length), [spans]);
  const percent = (column: number): string => `${(column * 100) / calls.length}%`;
  const each = Math.max(1, Math.ceil(calls.length / 60));
  const signs = new Map<number, readonly [number, readonly StripMark[]]>();
  for (const [column, own] of marked) {
    const slot = Math.floor(column / each);
    const known = signs.get(slot);
    signs.set(slot, [known?.[0] ?? column, [...(known?.[1] ?? []), ...own]]);
  }
  return (
    <div class="ruler" aria-hidden="true">
      {spans.map(({ turn, from: first, to }) => (
        <span key={turn} class="ruler-turn" style={{ left: percent(first), width: percent(to - first) }}>
          {named.has(turn) ? (to - first >= calls.length / 12 ? `turn ${turn}` : turn) : ''}
        </span>
      ))}
      {[...signs.values()].map(([column, own]) => (
        <span key={column} class="ruler-mark" style={{ left: percent(column + 0.5) }}>
          {[...new Set(own.map(({ kind }) => SYMBOLS[kind].sign))].slice(0, 2).join('')}
        </span>
      ))}
    </div>
  );
}

interface RowsProps {
  readonly name: string;
  readonly rows: readonly BandRow[];
  readonly isOpen: boolean;
  readonly props: Omit<BandProps, 'row'>;
}

function Rows({ name, rows, isOpen, props }: RowsProps) {
  const [most, setMost] = useState(ROWS_FIRST);
  if (rows.length === 0) return null;
  return (
    <details class="rows" open={isOpen}>
      <summary>
        {name} <small>{counted(rows.length)}</small>
      </summary>
      {rows.slice(0, most).map((row) => (
        <Band key={row.band.id} row={row} {...props} />
      ))}
      {rows.length > most && (
        <button type="button" class="quiet" onClick={() => setMost(rows.length)}>
          Show {counted(rows.length - most)} more
        </button>
      )}
    </details>
  );
}

function CallHead({ strip, call, fill }: { readonly strip: Strip; readonly call: StripCall; readonly fill: Fill }) {
  const column = callNumber(strip, call.step) - 1;
  const total = fill.totals[column] ?? 0;
  const used = usedTokens(call);
  return (
    <div class="row call-head">
      <h2>
        Context at call {column + 1} <small>{`turn ${call.turn} · ${localTime(call.at)}`}</small>
      </h2>
      <span>
        {used === undefined ? `about ${plural(total, 'token')}` : `${plural(used, 'token')} counted by the provider`}
      </span>
      {call.epoch !== null && <span class="chip">epoch {call.epoch}</span>}
      {call.kind === 'transcript' && <span class="chip">from the transcript</span>}
      {call.kind === 'unseen' && <span class="chip warn">request not seen</span>}
      <span class="spread" />
      <a class="button" href={from('request', { step: call.step })}>
        See the request
      </a>
      <a class="button" href={from('changes', { step: call.step })}>
        See the changes
      </a>
      <ForkHere step={call.step} />
    </div>
  );
}

function useWidth(): readonly [preact.RefObject<HTMLDivElement>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

function Whole({ strip }: { readonly strip: Strip }) {
  const { of } = place.value;
  const { calls, bands, marks } = strip;
  const step = chosenStep(strip) ?? 0;
  const chosen = callNumber(strip, step) - 1;
  const rows = useMemo(() => bandRows(bands, calls), [bands, calls]);
  const sorted = useMemo(() => sortedRows(rows, chosen, of.q), [rows, chosen, of.q]);
  const fill = useMemo(() => fillOf(calls, rows), [calls, rows]);
  const marked = useMemo(() => marksByColumn(marks, calls), [marks, calls]);
  const names = useMemo(() => new Map(bands.map(({ id, name }) => [id, oneLine(name, 60)])), [bands]);
  const [hovered, setHovered] = useState<{ readonly row: BandRow; readonly column: number }>();
  const [box, width] = useWidth();
  const spent = useQuestion<Money>(isServed() ? '/v1/money' : undefined, { session: of.session });
  const prices = spent.state === 'there' ? spent.value.by_call : undefined;
  const series = useMemo((): readonly ChartSeries[] => {
    const byStep = new Map(prices?.map(({ step: own, amount }) => [own, amount]));
    const amounts = calls.map((call) => byStep.get(call.step) ?? null);
    const hasPrices = amounts.some((amount) => amount !== null);
    const counts = calls.map((call) => usedTokens(call) ?? null);
    const flat = (n: number): readonly number[] => calls.map(() => n);
    return [
      ...areasOf(fill),
      ...(counts.some((count) => count !== null)
        ? [{ name: COUNTED, color: '--ink', width: 1.5, values: counts, draws: 'steps' } as const]
        : []),
      ...(isNearBudget(strip, fill)
        ? [
            {
              name: BUDGET,
              color: '--bad',
              width: 1.5,
              isDashed: true,
              values: flat(strip.budget ?? 0),
              draws: 'line',
            } as const,
          ]
        : []),
      ...(hasPrices
        ? [{ name: 'Price', color: '--data-price', width: 2, values: amounts, draws: 'steps', isRight: true } as const]
        : []),
    ];
  }, [fill, prices, calls, strip.budget]);
  const hasPrice = series.some(({ isRight }) => isRight === true);
  const namesPx = width < NARROW ? NAMES_NARROW : NAMES;
  const call = calls[chosen];
  const props = {
    strip,
    chosen,
    onHover: (row: BandRow | undefined, column: number) => setHovered(row === undefined ? undefined : { row, column }),
  };
  const tip = (column: number): readonly string[] => {
    const at = calls[column];
    const used = at === undefined ? undefined : usedTokens(at);
    const price = hasPrice ? series.at(-1)?.values[column] : null;
    return [
      `Call ${column + 1}, turn ${at?.turn ?? '?'}`,
      `about ${plural(fill.totals[column] ?? 0, 'token')} by the length of the text`,
      ...(used === undefined ? [] : [`${plural(used, 'token')} counted by the provider`]),
      ...(price === null || price === undefined ? [] : [money(price, 'USD')]),
      ...(marked.get(column) ?? []).slice(0, 4).map((mark) => markText(mark, names)),
    ];
  };
  const own = marked.get(chosen) ?? [];
  return (
    <>
      {call !== undefined && <CallHead strip={strip} call={call} fill={fill} />}
      <div class="card strip" ref={box} style={{ '--names': `${namesPx}px`, '--sizes': `${SIZES}px` }}>
        <Legend fill={fill} strip={strip} hasPrice={hasPrice} />
        <Ruler strip={strip} marked={marked} />
        {width > 0 && (
          <Chart
            label={`Size of the context at each of ${plural(calls.length, 'call')}, in tokens`}
            series={series}
            height={CHART_PX}
            left={{ label: 'tokens', size: namesPx }}
            {...(hasPrice
              ? { right: { label: 'US dollars', size: SIZES, format: (n: number) => money(n, 'USD') } }
              : { padRight: SIZES })}
            chosen={chosen}
            tip={tip}
            onChoose={(column) => refine({ step: calls[column]?.step })}
          />
        )}
        <div class="band head soft">
          <label>
            <span class="hidden">Filter by name</span>
            <input
              type="search"
              placeholder="Filter by name"
              value={of.q ?? ''}
              onInput={(event) => refine({ q: event.currentTarget.value })}
            />
          </label>
          <span class="band-told" aria-live="polite">
            {hovered === undefined ? '' : bandTip(hovered.row, hovered.column, strip).join(' · ')}
          </span>
          <span class="band-size">tokens</span>
        </div>
        <Rows name={`In the context at call ${chosen + 1}`} rows={sorted.present} isOpen props={props} />
        <Rows
          name="In the context of other calls"
          rows={sorted.elsewhere}
          isOpen={sorted.present.length < 8}
          props={props}
        />
        <Rows name="Never more than one line" rows={sorted.lines} isOpen={false} props={props} />
      </div>
      {own.length > 0 && (
        <section aria-label="Events of this call">
          <h2>Events of call {chosen + 1}</h2>
          <ul class="plain">
            {own.slice(0, 30).map((mark, i) => (
              <li key={i}>
                <span aria-hidden="true">{SYMBOLS[mark.kind].sign}</span> {oneLine(markText(mark, names), 300)}{' '}
                {mark.kind === 'verb' && <UndoStep step={mark.step} />}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** Shows the context of every call, and where each object stood in it. */
export function StripView() {
  const answer = useStrip();
  return (
    <>
      <h1 class="hidden">Context</h1>
      <AnswerBox answer={answer}>
        {(strip) =>
          strip.calls.length === 0 ? (
            <p class="note">Nothing has happened in this session up to here.</p>
          ) : (
            <Whole strip={strip} />
          )
        }
      </AnswerBox>
    </>
  );
}
