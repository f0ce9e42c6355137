import { useMemo } from 'preact/hooks';
import { addressText } from '../address.js';
import { AnswerBox } from '../answer-box.js';
import { useQuestion, useStrip } from '../calls.js';
import { Chart, type ChartSeries } from '../chart.js';
import { place, refine } from '../place.js';
import { Prose } from '../prose.js';
import { useSessionList } from '../session-list.js';
import { oneLine } from '../shown-text.js';
import { bandRows, fillOf, inColumns, usedTokens } from '../strip-layout.js';
import type { Compared, ListedSession, Money, Strip } from '../wire.js';
import { counted, duration, money, pathEnd, plural, shortCount } from '../words.js';

const COLORS = ['--data-text', '--data-pinned'] as const;

const titleOf = ({ title, id }: ListedSession): string => (title === '' ? id : title);

/**
 * Returns the size of each session's context at each call. If the provider counted every call of
 * all sessions, these are its counts, else estimates.
 */
function sizesOf(strips: readonly Strip[]): readonly (readonly (number | null)[])[] {
  const isCounted = strips.every(({ calls }) => calls.every((call) => usedTokens(call) !== undefined));
  return strips.map(({ calls, bands }) =>
    isCounted ? calls.map((call) => usedTokens(call) ?? null) : fillOf(calls, bandRows(bands, calls)).totals,
  );
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

function Curves({ strips, moneys, rows, shared }: CurvesProps) {
  const names = rows.map(titleOf);
  const sizes = useMemo(() => sizesOf(strips), [strips]);
  const isCounted = strips.every(({ calls }) => calls.every((call) => usedTokens(call) !== undefined));
  const length = Math.max(...sizes.map((own) => own.length));
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
  const series = useMemo(() => seriesOf(sizes), [sizes]);
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
            leftFormat={(n) => money(n, 'USD')}
            shaded={shared}
            tip={tip(prices, (n) => money(n, 'USD'))}
          />
        </>
      )}
    </section>
  );
}

/** Lines of a last answer that are shown at once. */
const OUTCOME_LINES = 8;

const ROWS: readonly (readonly [string, (row: ListedSession) => string])[] = [
  ['Agent, model', ({ agent, model }) => [agent, model].filter((one) => one !== null).join(', ') || 'not recorded'],
  ['Turns', ({ turns }) => counted(turns)],
  ['Answers of the model', ({ figures }) => (figures === null ? 'not counted' : counted(figures.calls))],
  ['Tool calls', ({ figures }) => (figures === null ? 'not counted' : counted(figures.tool_calls))],
  ['Failed tool calls', ({ figures }) => (figures === null ? 'not counted' : counted(figures.failures))],
  ['Time', ({ from, to }) => (from === null ? 'not recorded' : duration(Date.parse(to) - Date.parse(from)))],
  ['Tokens', ({ figures }) => (figures?.tokens == null ? 'not recorded' : shortCount(figures.tokens.total))],
  [
    'Cost',
    ({ figures }) => (figures?.cost == null ? 'not recorded' : money(figures.cost.amount, figures.cost.currency)),
  ],
  ['Files changed', ({ figures }) => (figures === null ? 'not counted' : counted(figures.files_changed))],
];

function SideBySide({
  rows,
  outcomes,
}: {
  readonly rows: readonly ListedSession[];
  readonly outcomes: readonly string[];
}) {
  return (
    <div class="wide">
      <table class="beside">
        <thead>
          <tr>
            <td />
            {rows.map((row) => (
              <th key={row.id} scope="col">
                <a href={addressText({ view: 'conversation', of: { session: row.id } })}>{oneLine(titleOf(row), 80)}</a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {ROWS.map(([name, format]) => {
            const values = rows.map(format);
            return (
              <tr key={name}>
                <th scope="row">{name}</th>
                {values.map((value, i) => (
                  <td key={i} class={i > 0 && value === values[0] ? 'soft' : ''}>
                    {value}
                  </td>
                ))}
              </tr>
            );
          })}
          <tr>
            <th scope="row">Last answer</th>
            {outcomes.map((outcome, i) => (
              <td key={i}>{outcome === '' ? 'not recorded' : <Prose text={outcome} lines={OUTCOME_LINES} />}</td>
            ))}
          </tr>
        </tbody>
      </table>
    </div>
  );
}

function resultOf(ids: Compared['files'][number]['ids'], same: boolean | null): string {
  if (ids.includes(null)) return 'changed in one session';
  return same === null ? 'not fully recorded' : same ? 'the same text' : 'different texts';
}

/** The files that the sessions changed, and whether both left the same text. */
function Changed({ files, rows }: { readonly files: Compared['files']; readonly rows: readonly ListedSession[] }) {
  if (files.length === 0) return <p class="soft">No call of either session changed a file.</p>;
  return (
    <section aria-label="Files changed">
      <h2>Files that they changed</h2>
      <div class="wide">
        <table class="beside of-files">
          <thead>
            <tr>
              <th>File</th>
              {rows.map((row) => (
                <th key={row.id} scope="col">
                  {oneLine(titleOf(row), 40)}
                </th>
              ))}
              <th>Result</th>
            </tr>
          </thead>
          <tbody>
            {files.map(({ name, ids, same }) => (
              <tr key={name}>
                <td title={oneLine(name)}>{oneLine(pathEnd(name, 60))}</td>
                {ids.map((id, i) => (
                  <td key={i}>
                    {id === null ? (
                      <span class="soft">–</span>
                    ) : (
                      <a href={addressText({ view: 'object', of: { session: rows[i]?.id ?? '', id } })}>changed</a>
                    )}
                  </td>
                ))}
                <td>{resultOf(ids, same)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function TwoSessions({ one, other }: { readonly one: string; readonly other: string }) {
  const answer = useQuestion<Compared>('/v1/compared', { session: one, with: other });
  const left = useQuestion<Strip>('/v1/strip', { session: one });
  const right = useQuestion<Strip>('/v1/strip', { session: other });
  const spentLeft = useQuestion<Money>('/v1/money', { session: one });
  const spentRight = useQuestion<Money>('/v1/money', { session: other });
  const strips = useMemo(
    () => [left, right].flatMap((found) => (found.state === 'there' ? [found.value] : [])),
    [left.state, right.state],
  );
  const moneys = useMemo(
    () => [spentLeft, spentRight].flatMap((found) => (found.state === 'there' ? [found.value] : [])),
    [spentLeft.state, spentRight.state],
  );
  return (
    <AnswerBox answer={answer}>
      {({ shared, sides, files }) => {
        const rows = sides.map(({ row }) => row);
        const calls = shared === null ? undefined : strips[0]?.calls.filter(({ step }) => step <= shared.steps).length;
        return (
          <>
            {shared !== null && (
              <p>
                They share their past: the first {plural(calls ?? shared.calls, 'call')}, up to step {shared.steps}.
                From there on they differ.
              </p>
            )}
            {strips.length === 2 && <Curves strips={strips} moneys={moneys} rows={rows} shared={calls} />}
            <SideBySide rows={rows} outcomes={sides.map(({ outcome }) => outcome ?? '')} />
            <Changed files={files} rows={rows} />
          </>
        );
      }}
    </AnswerBox>
  );
}

/** Compares the session with another one: sizes and money call by call, outcomes, and files. */
export function CompareView() {
  useStrip();
  const { session, with: other } = place.value.of;
  const answer = useSessionList({ limit: 1_000 });
  return (
    <>
      <h1 class="hidden">Compare</h1>
      <AnswerBox answer={answer}>
        {({ sessions }) => {
          const others = sessions.filter(({ id }) => id !== session);
          const kin = others.filter(
            ({ id, parent }) =>
              parent?.session === session || sessions.find((row) => row.id === session)?.parent?.session === id,
          );
          return (
            <div class="filters">
              <label>
                Compare with{' '}
                <select value={other ?? ''} onChange={(event) => refine({ with: event.currentTarget.value }, {})}>
                  <option value="">choose a session</option>
                  {[...kin, ...others.filter((row) => !kin.includes(row))].map((row) => (
                    <option key={row.id} value={row.id}>
                      {kin.includes(row) ? '↳ ' : ''}
                      {oneLine(titleOf(row), 80)}
                    </option>
                  ))}
                </select>
              </label>
            </div>
          );
        }}
      </AnswerBox>
      {session === undefined || other === undefined || other === '' ? (
        <p class="note">Choose the session to compare with. Forks and their parents come first.</p>
      ) : (
        <TwoSessions key={`${session} ${other}`} one={session} other={other} />
      )}
    </>
  );
}
