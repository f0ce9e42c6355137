import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { AnswerBox } from '../answer-box.js';
import { Band, type BandProps, bandTip } from '../band.js';
import { callNumber, chosenStep, useCountedTexts, useQuestion, useStrip } from '../calls.js';
import { Chart, type ChartSeries } from '../chart.js';
import type { CountedTexts } from '../counted-texts.js';
import { ForkHere, UndoStep } from '../person.js';
import { from, place, refine } from '../place.js';
import { requestSize } from '../request-size.js';
import { oneLine } from '../shown-text.js';
import {
  type BandRow,
  bandRows,
  type Fill,
  fillOf,
  marksByColumn,
  sectionOf,
  sortedRows,
  usedTokens,
} from '../strip-layout.js';
import { TranscriptNote } from '../transcript-note.js';
import type { Money, Strip, StripCall } from '../wire.js';
import { axisMoney, counted, localTime, money, pathEnd, plural } from '../words.js';
import { BUDGET, COUNTED, isNearBudget, Legend, markText, Ruler, SYMBOLS } from './strip-legend.js';

const ROWS_FIRST = 25;
const CHART_PX = 170;
/** Width of the row names, on wide and narrow pages, and of the axis of sizes, in pixels. */
const [NAMES, NAMES_NARROW, SIZES] = [250, 52, 66];
/** Maximum page width, in pixels, at which a name stands above its row. */
const NARROW = 640;

/** Returns the sizes of the requests as stacked areas, the largest sum first. */
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

interface CallHeadProps {
  readonly strip: Strip;
  readonly call: StripCall;
  readonly fill: Fill;
  readonly texts: CountedTexts | undefined;
}

function CallHead({ strip, call, fill, texts }: CallHeadProps) {
  const column = callNumber(strip, call.step) - 1;
  const total = fill.totals[column] ?? 0;
  const size = requestSize({
    provider: usedTokens(call),
    texts: texts?.total,
    isTranscript: call.kind === 'transcript',
  });
  return (
    <div class="row call-head">
      <h2>
        Context at call {column + 1} <small>{`turn ${call.turn} · ${localTime(call.at)}`}</small>
      </h2>
      <span class="soft">{size === '' ? `≈ ${plural(total, 'token')}` : size}</span>
      {call.usage?.model !== undefined && <span class="chip">{oneLine(call.usage.model, 60)}</span>}
      {call.epoch !== null && <span class="chip">epoch {call.epoch}</span>}
      {call.kind === 'unseen' && <span class="chip warn">request not seen</span>}
      <span class="spread" />
      <a class="button" href={from('request', { step: call.step })}>
        See the request
      </a>
      <a class="button" href={from('changes', { step: call.step })}>
        See the changes
      </a>
      <ForkHere step={call.step} call={column + 1} />
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
  const call = calls[chosen];
  const texts = useCountedTexts(call);
  const sorted = useMemo(
    () => sortedRows(rows, chosen, { name: of.q, counts: texts?.byObject, isTranscript: call?.kind === 'transcript' }),
    [rows, chosen, of.q, texts],
  );
  const fill = useMemo(() => fillOf(calls, rows), [calls, rows]);
  const marked = useMemo(() => marksByColumn(marks, calls), [marks, calls]);
  const names = useMemo(
    () => new Map(bands.map(({ id, name, type }) => [id, oneLine(type === 'file' ? pathEnd(name) : name, 60)])),
    [bands],
  );
  const [hovered, setHovered] = useState<{ readonly row: BandRow; readonly column: number }>();
  const [box, width] = useWidth();
  const spent = useQuestion<Money>('/v1/money', { session: of.session });
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
  const isTold = calls.some(({ kind }) => kind === 'transcript');
  const isNarrow = innerWidth <= NARROW;
  const namesPx = isNarrow ? NAMES_NARROW : NAMES;
  const props = {
    strip,
    chosen,
    counts: texts?.byObject,
    onHover: (row: BandRow | undefined, column: number) => setHovered(row === undefined ? undefined : { row, column }),
  };
  const tip = (column: number): readonly string[] => {
    const at = calls[column];
    const used = at === undefined ? undefined : usedTokens(at);
    const price = hasPrice ? series.at(-1)?.values[column] : null;
    return [
      `Call ${column + 1}, turn ${at?.turn ?? '?'}`,
      `≈ ${plural(fill.totals[column] ?? 0, 'token')} in the context, estimated from its length`,
      used === undefined ? 'not counted by the provider' : `${plural(used, 'token')} counted by the provider`,
      ...(price === null || price === undefined ? [] : [money(price, 'USD')]),
      ...(marked.get(column) ?? []).slice(0, 4).map((mark) => markText(mark, names, calls)),
    ];
  };
  const own = marked.get(chosen) ?? [];
  return (
    <>
      {call !== undefined && <CallHead strip={strip} call={call} fill={fill} texts={texts} />}
      {call?.kind === 'transcript' && <TranscriptNote />}
      <div class="card strip" ref={box} style={{ '--names': `${namesPx}px`, '--sizes': `${SIZES}px` }}>
        <Legend fill={fill} strip={strip} hasPrice={hasPrice} />
        <Ruler strip={strip} marked={marked} names={names} isNarrow={isNarrow} />
        {width > 0 && (
          <Chart
            label={`Size of the context at each of ${plural(calls.length, 'call')}, in tokens`}
            series={series}
            height={CHART_PX}
            left={{ label: 'tokens', size: namesPx }}
            {...(hasPrice
              ? { right: { label: 'US dollars', size: SIZES, format: (n: number) => axisMoney(n, 'USD') } }
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
            {hovered === undefined ? '' : bandTip(hovered, props).join(' · ')}
          </span>
          <span
            class="band-size"
            title="Counted in the request of the chosen call. The sign ≈ marks estimates from the length of a text."
          >
            {texts === undefined ? 'estimated' : 'tokens'}
          </span>
        </div>
        <Rows name={`In the context at call ${chosen + 1}`} rows={sorted.present} isOpen props={props} />
        <Rows
          name="Files whose text these calls have"
          rows={sorted.files}
          isOpen={false}
          props={{ ...props, isSized: false }}
        />
        <Rows
          name="In the context of other calls"
          rows={sorted.elsewhere}
          isOpen={sorted.present.length < 8}
          props={props}
        />
        <Rows
          name={isTold ? 'In the context of no call' : 'Never more than one line'}
          rows={sorted.lines}
          isOpen={false}
          props={props}
        />
      </div>
      {own.length > 0 && (
        <section aria-label="Events of this call">
          <h2>Events of call {chosen + 1}</h2>
          <ul class="plain">
            {own.slice(0, 30).map((mark, i) => (
              <li key={i}>
                <span aria-hidden="true">{SYMBOLS[mark.kind].sign}</span>
                {` ${oneLine(markText(mark, names, calls), 300)} `}
                {mark.kind === 'verb' && <UndoStep step={mark.step} />}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** Shows the context of every call, and which calls had each object. */
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
