import { useMemo } from 'preact/hooks';
import { addressText } from '../address.js';
import { AnswerBox } from '../answer-box.js';
import { useQuestion, useStrip } from '../calls.js';
import { Curves, titleOf } from '../compared-curves.js';
import { from, place, refine } from '../place.js';
import { Prose } from '../prose.js';
import { useSessionList } from '../session-list.js';
import { oneLine } from '../shown-text.js';
import { TranscriptNote } from '../transcript-note.js';
import type { Compared, ListedSession, Money, Strip } from '../wire.js';
import { counted, duration, localTime, money, pathEnd, plural, shortCount, withAgents } from '../words.js';

/** Lines of a last answer that are shown before the reader asks for all. */
const OUTCOME_LINES = 8;

/** Names the models that answered. If there are several, each has its number of calls. */
function modelsOf({ id, model }: ListedSession, moneys: readonly Money[]): string | null {
  const used = moneys.find(({ session }) => session === id)?.prices.filter((price) => price.model !== '') ?? [];
  if (used.length < 2) return model;
  return used.map((price) => `${price.model} (${plural(price.calls, 'call')})`).join(', ');
}

const priced = (cost: NonNullable<ListedSession['figures']>['cost'] | undefined): string =>
  cost == null ? 'not recorded' : money(cost.amount, cost.currency);

/** Returns whether a cost leaves out output that the transcript did not count to its end. */
const isLeast = (id: string, moneys: readonly Money[]): boolean =>
  moneys.some(({ session, uncounted, spent }) => session === id && uncounted > 0 && spent !== null);

/** Formats the tokens and the cost with sub-agents. */
const withSum = ({ sessions, tokens, cost }: NonNullable<ListedSession['with_sub_agents']>): string =>
  `${withAgents(sessions)} ${tokens === null ? '' : `${shortCount(tokens.total)} tokens, `}${priced(cost)}`;

type RowFormat = (row: ListedSession, moneys: readonly Money[]) => string;
const ROWS: readonly (readonly [string, RowFormat])[] = [
  [
    'Agent, model',
    (row, moneys) => [row.agent, modelsOf(row, moneys)].filter((one) => one !== null).join(', ') || 'not recorded',
  ],
  ['Turns', ({ turns }) => counted(turns)],
  ['Answers of the model', ({ figures }) => (figures === null ? 'not counted' : counted(figures.calls))],
  ['Tool calls', ({ figures }) => (figures === null ? 'not counted' : counted(figures.tool_calls))],
  ['Failed tool calls', ({ figures }) => (figures === null ? 'not counted' : counted(figures.failures))],
  ['Time', ({ from, to }) => (from === null ? 'not recorded' : duration(Date.parse(to) - Date.parse(from)))],
  ['Tokens', ({ figures }) => (figures?.tokens == null ? 'not recorded' : shortCount(figures.tokens.total))],
  ['Cost', ({ id, figures }, moneys) => `${priced(figures?.cost)}${isLeast(id, moneys) ? ', a lower bound' : ''}`],
  ['with its sub-agents', ({ with_sub_agents: sum }) => (sum === null ? '' : withSum(sum))],
  ['Files changed', ({ figures }) => (figures === null ? 'not counted' : counted(figures.files_changed))],
];

function SideBySide({
  rows,
  moneys,
  outcomes,
}: {
  readonly rows: readonly ListedSession[];
  readonly moneys: readonly Money[];
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
            const values = rows.map((row) => format(row, moneys));
            if (values.every((value) => value === '')) return null;
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
              <td key={i} data-name={oneLine(titleOf(rows[i] as ListedSession), 60)}>
                {outcome === '' ? 'not recorded' : <Prose text={outcome} lines={OUTCOME_LINES} />}
              </td>
            ))}
          </tr>
        </tbody>
      </table>
    </div>
  );
}

function resultOf(ids: Compared['files'][number]['ids'], same: boolean | null): string {
  if (ids.includes(null)) return 'changed in one only';
  return same === null ? 'not fully recorded' : same ? 'the same text' : 'different texts';
}

/** Lists the files that the sessions changed, and whether both ended with the same text. */
function Changed({ files, rows }: { readonly files: Compared['files']; readonly rows: readonly ListedSession[] }) {
  if (files.length === 0) return <p class="soft">No call of either session changed a file.</p>;
  // If no file was changed in both, there is no result to compare.
  const hasResults = files.some(({ ids }) => !ids.includes(null));
  return (
    <section aria-label="Files changed">
      <h2>Files that they changed</h2>
      <div class="wide">
        <table class="beside">
          <thead>
            <tr>
              <th class="file-name">File</th>
              {rows.map((row) => (
                <th key={row.id} scope="col">
                  {oneLine(titleOf(row), 40)}
                </th>
              ))}
              {hasResults && <th>Result</th>}
            </tr>
          </thead>
          <tbody>
            {files.map(({ name, ids, same }) => (
              <tr key={name}>
                <td class="file-name" title={oneLine(name)}>
                  {oneLine(pathEnd(name, 60))
                    .split('/')
                    .flatMap((part, i) => (i === 0 ? part : ['/', <wbr key={i} />, part]))}
                </td>
                {ids.map((id, i) => (
                  <td key={i}>
                    {id === null ? (
                      <span class="soft">–</span>
                    ) : (
                      <a href={addressText({ view: 'object', of: { session: rows[i]?.id ?? '', id } })}>changed</a>
                    )}
                  </td>
                ))}
                {hasResults && <td>{resultOf(ids, same)}</td>}
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
        const calls = shared && (strips[0]?.calls.filter(({ step }) => step <= shared.steps).length ?? shared.calls);
        const rows = sides.map(({ row }, i) =>
          calls !== null && row.parent?.session === sides[1 - i]?.row.id
            ? { ...row, title: `fork at call ${calls + 1} of ${titleOf(row)}` }
            : row,
        );
        return (
          <>
            {calls !== null && <p>They share their past: the first {plural(calls, 'call')}. Then they differ.</p>}
            {strips.some(({ calls: own }) => own.some(({ kind }) => kind === 'transcript')) && <TranscriptNote />}
            {strips.length === 2 && <Curves strips={strips} moneys={moneys} rows={rows} shared={calls ?? undefined} />}
            <SideBySide rows={rows} moneys={moneys} outcomes={sides.map(({ outcome }) => outcome ?? '')} />
            <Changed files={files} rows={rows} />
          </>
        );
      }}
    </AnswerBox>
  );
}

/** Maximum number of sessions that are offered. The list above has all of them. */
const MOST_OFFERED = 12;

/** Describes how a session is related to the session of the address. */
function kinOf({ parent }: ListedSession): string {
  if (parent === null || parent.session !== place.value.of.session) return 'its parent';
  return parent.kind === 'fork' ? 'its fork' : 'its sub-agent';
}

/** Names a session for the choice. A fork has the title of its parent, so its name says more. */
function offeredName(row: ListedSession, strip: Strip | undefined): string {
  const { parent } = row;
  if (parent?.kind !== 'fork') return titleOf(row);
  const { at } = parent;
  const isOwn = strip !== undefined && strip.session === parent.session && at !== null;
  const where = isOwn ? ` at call ${counted(strip.calls.filter(({ step }) => step <= at).length + 1)}` : '';
  return `fork${where} of ${titleOf(row)}`;
}

interface ChoicesProps {
  readonly rows: readonly ListedSession[];
  readonly kin: number;
  readonly nameOf: (row: ListedSession) => string;
}

/** Offers the sessions to compare with, forks, sub-agents and parents first. */
function Choices({ rows, kin, nameOf }: ChoicesProps) {
  if (rows.length === 0) return <p class="note">There is no other session to compare with.</p>;
  return (
    <>
      <p class="soft">
        Choose the session to compare with{kin > 0 && '. Its forks, sub-agents and parent come first'}
        {rows.length > MOST_OFFERED && `. The list above has all ${counted(rows.length)}`}.
      </p>
      <div class="wide">
        <table class="stack">
          <thead>
            <tr>
              <th>Session</th>
              <th>Agent</th>
              <th>Last used</th>
              <th class="number">Cost</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MOST_OFFERED).map((row, i) => (
              <tr key={row.id}>
                <td>
                  <a href={from('compare', { with: row.id })}>{oneLine(nameOf(row), 100)}</a>{' '}
                  {i < kin && <span class="chip">{kinOf(row)}</span>}
                </td>
                <td data-name="Agent">{row.agent === null ? <span class="soft">–</span> : oneLine(row.agent)}</td>
                <td class="nowrap" data-name="Last used">
                  {localTime(row.to)}
                </td>
                <td class="number" data-name="Cost">
                  {row.figures?.cost == null ? '–' : priced(row.figures.cost)}
                  {row.with_sub_agents?.cost != null && (
                    <div class="soft">
                      {withAgents(row.with_sub_agents.sessions)} {priced(row.with_sub_agents.cost)}
                    </div>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Compares the session with another one: sizes and money call by call, outcomes, and files. */
export function CompareView() {
  const strip = useStrip();
  const { session, with: other } = place.value.of;
  const isChoosing = session === undefined || other === undefined || other === '';
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
          const rows = [...kin, ...others.filter((row) => !kin.includes(row))];
          const there = strip.state === 'there' ? strip.value : undefined;
          const nameOf = (row: ListedSession): string => offeredName(row, there);
          return (
            <>
              {(!isChoosing || rows.length > MOST_OFFERED) && (
                <div class="filters">
                  <label>
                    Compare with{' '}
                    <select value={other ?? ''} onChange={(event) => refine({ with: event.currentTarget.value }, {})}>
                      <option value="">choose a session</option>
                      {rows.map((row) => (
                        <option key={row.id} value={row.id}>
                          {kin.includes(row) ? '↳ ' : ''}
                          {oneLine(nameOf(row), 80)}
                        </option>
                      ))}
                    </select>
                  </label>
                </div>
              )}
              {isChoosing && <Choices rows={rows} kin={kin.length} nameOf={nameOf} />}
            </>
          );
        }}
      </AnswerBox>
      {session !== undefined && other !== undefined && !isChoosing && (
        <TwoSessions key={`${session} ${other}`} one={session} other={other} />
      )}
    </>
  );
}
