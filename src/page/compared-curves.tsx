import { useMemo } from 'preact/hooks';
import { Chart, type ChartSeries } from './chart.js';
import { oneLine } from './shown-text.js';
import { bandRows, fillOf, inColumns, usedTokens } from './strip-layout.js';
import type { ListedSession, Money, Strip } from './wire.js';
import { axisMoney, counted, money, plural } from './words.js';

const COLORS = ['--data-text', '--data-pinned'] as const;

/** Returns the title of a session, or its id. */
export const titleOf = ({ title, id }: ListedSession): string => (title === '' ? id : title);

/** The sizes of the contexts at each call, by session. */
interface Sizes {
  /** Whether the provider counted every call of all sessions. Otherwise the sizes are estimates. */
  readonly isCounted: boolean;
  readonly bySession: readonly (readonly (number | null)[])[];
}

function sizesOf(strips: readonly Strip[]): Sizes {
  const isCounted = strips.every(({ calls }) => calls.every((call) => usedTokens(call) !== undefined));
  const bySession = strips.map(({ calls, bands }) =>
    isCounted ? calls.map((call) => usedTokens(call) ?? null) : fillOf(calls, bandRows(bands, calls)).totals,
  );
  return { isCounted, bySession };
}

/** Returns the money spent up to each column; null from the first call without a price. */
function spentOf({ by_call: calls }: Money, strip: Strip | undefined): readonly (number | null)[] {
  let sum: number | null = 0;
  return inColumns(calls, strip).map((call) => {
    if (call !== undefined) sum = sum === null || call.amount === null ? null : sum + call.amount;
    return sum;
  });
}

interface CurvesProps {
  readonly strips: readonly Strip[];
  readonly moneys: readonly Money[];
  readonly rows: readonly ListedSession[];
  readonly shared: number | undefined;
}

/** Draws the contexts and the money of two sessions, call by call. */
export function Curves({ strips, moneys, rows, shared }: CurvesProps) {
  const names = rows.map(titleOf);
  const { isCounted, bySession } = useMemo(() => sizesOf(strips), [strips]);
  const length = Math.max(...bySession.map((own) => own.length));
  const padded = (own: readonly (number | null)[]): readonly (number | null)[] =>
    Array.from({ length }, (_, i) => own[i] ?? null);
  const seriesOf = (all: readonly (readonly (number | null)[])[]): readonly ChartSeries[] =>
    all.map((own, i) => ({
      name: names[i] ?? '',
      color: COLORS[i] ?? '--data-other',
      values: padded(own),
      draws: 'steps',
      width: 2,
      isDashed: i === 1,
    }));
  const series = useMemo(() => seriesOf(bySession), [bySession]);
  const spent = useMemo(() => moneys.map((one, i) => spentOf(one, strips[i])), [moneys, strips]);
  const prices = useMemo(() => seriesOf(spent), [spent]);
  const tip = (lines: readonly ChartSeries[], format: (n: number) => string) => (column: number) => [
    `Call ${column + 1}${shared !== undefined && column < shared ? ' (shared past)' : ''}`,
    ...lines.map(({ name, values }) => {
      const value = values[column];
      return `${oneLine(name, 40)}: ${value === null || value === undefined ? '–' : format(value)}`;
    }),
  ];
  return (
    <section class="card" aria-label="Call by call">
      <ul class="legend">
        {names.map((name, i) => (
          <li key={i}>
            <i
              class={`line-sign ${i === 1 ? 'dashed' : ''}`}
              style={{ color: `var(${COLORS[i] ?? '--data-other'})` }}
            />{' '}
            {oneLine(name, 60)}
          </li>
        ))}
        {shared !== undefined && shared > 0 && (
          <li>
            <i class="shared-sign" /> {plural(shared, 'shared call')}
          </li>
        )}
      </ul>
      <h2>Context at each call, in {isCounted ? '' : '≈ '}tokens</h2>
      <Chart
        label={`Context of both sessions at each of ${length} calls`}
        series={series}
        height={210}
        left={{ label: 'tokens', size: 60 }}
        shaded={shared}
        tip={tip(series, counted)}
      />
      {spent.length === 2 && spent.every((own) => own.some((sum) => sum !== null && sum > 0)) && (
        <>
          <h2>Spent up to each call</h2>
          <Chart
            label="Money spent by both sessions up to each call"
            series={prices}
            height={150}
            left={{ label: 'US dollars', size: 60 }}
            leftFormat={(n) => axisMoney(n, 'USD')}
            shaded={shared}
            tip={tip(prices, (n) => money(n, 'USD'))}
          />
        </>
      )}
    </section>
  );
}
