import { useEffect } from 'preact/hooks';
import { addressText } from '../address.js';
import { AnswerBox } from '../answer-box.js';
import { clearAnswers } from '../ask.js';
import { place, refine } from '../place.js';
import { useSessionList } from '../session-list.js';
import { oneLine } from '../shown-text.js';
import type { ListedSession } from '../wire.js';
import { counted, duration, localTime, money, pathEnd, plural, shortCount, withAgents } from '../words.js';

const PAGE = 100;
/** Pause in milliseconds before the list asks again for figures that are still being counted. */
const AGAIN_MS = 1_500;

type SortKey = 'used' | 'calls' | 'tokens' | 'cost' | 'failures' | 'title';

function SortHead({
  name,
  label,
  numeric = false,
}: {
  readonly name: SortKey;
  readonly label: string;
  readonly numeric?: boolean;
}) {
  const { sort = 'used' } = place.value.of;
  const order = sort === name ? 'descending' : sort === `-${name}` ? 'ascending' : 'none';
  return (
    <th class={numeric ? 'number' : ''} aria-sort={order} scope="col">
      <button type="button" onClick={() => refine({ sort: sort === name ? `-${name}` : name, page: undefined })}>
        {label} <span aria-hidden="true">{order === 'descending' ? '↓' : order === 'ascending' ? '↑' : ''}</span>
      </button>
    </th>
  );
}

const unknown = <span class="soft">–</span>;

type Price = NonNullable<ListedSession['figures']>['cost'];

function Cost({ cost }: { readonly cost: Price }) {
  if (cost === null)
    return (
      <span class="soft" title="No token counts or no price are recorded">
        not recorded
      </span>
    );
  const about = cost.source === 'recorded' ? 'as the agent recorded it' : 'by the price list';
  return (
    <span title={`${about}${cost.unpriced > 0 ? `; ${plural(cost.unpriced, 'call')} without a price` : ''}`}>
      {money(cost.amount, cost.currency)}
      {cost.unpriced > 0 && '+'}
    </span>
  );
}

/** Shows the findings of `palimpsest verify`. */
function Checked({ check }: Pick<ListedSession, 'check'>) {
  if (check === null)
    return (
      <span class="soft" title="Run palimpsest verify">
        not yet
      </span>
    );
  const { findings, at } = check;
  return (
    <span class={findings === 0 ? 'good' : 'bad'} title={`Checked ${localTime(at)}`}>
      {findings === 0 ? '✓ all equal' : `✗ ${plural(findings, 'finding')}`}
    </span>
  );
}

function Title({ row, isChild }: { readonly row: ListedSession; readonly isChild: boolean }) {
  const { id, title, agent, model, folder, parent, open } = row;
  return (
    <td class={isChild ? 'session-name child' : 'session-name'}>
      <a href={addressText({ view: 'conversation', of: { session: id } })} title={oneLine(id)}>
        {oneLine(title === '' ? id : title, 120)}
      </a>
      <div class="soft session-about">
        {parent !== null && (
          <span class="chip">
            {parent.kind === 'fork' ? 'fork' : 'sub-agent'}
            {!isChild && ` of ${oneLine(parent.session, 20)}`}
          </span>
        )}
        {parent !== null && parent.at !== null && (
          <a href={addressText({ view: 'conversation', of: { session: parent.session, step: String(parent.at) } })}>
            where it began
          </a>
        )}
        {parent !== null && parent.call !== null && (
          <a href={addressText({ view: 'object', of: { session: parent.session, id: parent.call } })}>
            the call that started it
          </a>
        )}
        {open && <span class="chip good">open</span>}
        {agent !== null && <span>{oneLine(agent)}</span>}
        {model !== null && <span>{oneLine(model)}</span>}
        {folder !== null && <span title={oneLine(folder)}>{oneLine(pathEnd(folder, 40))}</span>}
      </div>
    </td>
  );
}

interface RowProps {
  readonly row: ListedSession;
  readonly isChild: boolean;
  /** Whether figures are still being counted. */
  readonly isCounting: boolean;
}

function Row({ row, isChild, isCounting }: RowProps) {
  const { from: began, to, figures, check, with_sub_agents: sum } = row;
  const shown = (value: number | null | undefined, format = counted) =>
    figures === null && isCounting ? (
      '…'
    ) : value === null || value === undefined ? (
      unknown
    ) : value === 0 ? (
      <span class="soft">0</span>
    ) : (
      format(value)
    );
  const failures = figures?.failures ?? 0;
  return (
    <tr>
      <Title row={row} isChild={isChild} />
      <td class="nowrap" data-name="Used">
        {localTime(to)}
        {began !== null && <div class="soft">{duration(Date.parse(to) - Date.parse(began))}</div>}
      </td>
      <td class="number" data-name="Answers">
        {shown(figures?.calls)}
      </td>
      <td class="number" data-name="Tokens">
        {shown(figures?.tokens?.total ?? (figures === null ? undefined : null), shortCount)}
        {sum?.tokens != null && <div class="soft">{shortCount(sum.tokens.total)}</div>}
      </td>
      <td class="number" data-name="Cost">
        {figures === null ? shown(null) : <Cost cost={figures.cost} />}
        {sum?.cost != null && (
          <div class="soft">
            {withAgents(sum.sessions)} <Cost cost={sum.cost} />
          </div>
        )}
      </td>
      <td class="number" data-name="Files changed">
        {shown(figures?.files_changed)}
      </td>
      <td class="number" data-name="Failed">
        <span class={failures > 0 ? 'bad' : ''}>{shown(figures?.failures)}</span>
      </td>
      <td class="number" data-name="Verified">
        <Checked check={check} />
      </td>
    </tr>
  );
}

/** Puts forks and sub-agents under their parents, if both are listed. */
function nested(rows: readonly ListedSession[]): readonly { readonly row: ListedSession; readonly depth: number }[] {
  const ids = new Set(rows.map(({ id }) => id));
  const below = new Map<string, ListedSession[]>();
  const top: ListedSession[] = [];
  for (const row of rows) {
    const parent = row.parent?.session;
    if (parent === undefined || !ids.has(parent) || parent === row.id) top.push(row);
    else below.set(parent, [...(below.get(parent) ?? []), row]);
  }
  const walk = (row: ListedSession, depth: number): readonly { row: ListedSession; depth: number }[] => [
    { row, depth },
    ...(below.get(row.id) ?? []).flatMap((child) => walk(child, depth + 1)),
  ];
  return top.flatMap((row) => walk(row, 0));
}

function Filters({ agents }: { readonly agents: readonly string[] }) {
  const { of } = place.value;
  return (
    <div class="filters">
      <label>
        <span class="hidden">Title, folder or id</span>
        <input
          type="search"
          placeholder="Title, folder or id"
          value={of.text ?? ''}
          onInput={(event) => refine({ text: event.currentTarget.value, page: undefined })}
        />
      </label>
      {agents.length > 0 && (
        <label>
          Agent{' '}
          <select
            value={of.agent ?? ''}
            onChange={(event) => refine({ agent: event.currentTarget.value, page: undefined })}
          >
            <option value="">all</option>
            {agents.map((agent) => (
              <option key={agent}>{agent}</option>
            ))}
          </select>
        </label>
      )}
      <label>
        Since{' '}
        <input
          type="date"
          value={of.since ?? ''}
          onInput={(event) => refine({ since: event.currentTarget.value, page: undefined })}
        />
      </label>
    </div>
  );
}

/** Lists the sessions, with sorting and filters in the address. */
export function SessionsView() {
  const { text, agent, since, sort, page = '0' } = place.value.of;
  const start = Number(page) * PAGE;
  const answer = useSessionList({ text, agent, since, sort, limit: PAGE, from: start === 0 ? undefined : start });
  const isCounting = answer.state === 'there' && answer.value.counted < answer.value.total;
  useEffect(() => {
    if (!isCounting) return undefined;
    const timer = setTimeout(clearAnswers, AGAIN_MS);
    return () => clearTimeout(timer);
  });
  const agents = answer.state === 'there' ? [...new Set(answer.value.sessions.flatMap((row) => row.agent ?? []))] : [];
  return (
    <>
      <h1>Sessions</h1>
      <Filters agents={agent === undefined || agents.includes(agent) ? agents : [...agents, agent]} />
      <AnswerBox answer={answer}>
        {({ sessions, total, prices_as_of: prices }) => (
          <>
            <div class="wide">
              <table class="sessions stack">
                <thead>
                  <tr>
                    <SortHead name="title" label="Session" />
                    <SortHead name="used" label="Last used" />
                    <SortHead name="calls" label="Answers" numeric />
                    <SortHead name="tokens" label="Tokens" numeric />
                    <SortHead name="cost" label="Cost" numeric />
                    <th class="number" scope="col">
                      Files changed
                    </th>
                    <SortHead name="failures" label="Failed" numeric />
                    <th class="number" scope="col" title="Findings of palimpsest verify">
                      Verified
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {nested(sessions).map(({ row, depth }) => (
                    <Row key={row.id} row={row} isChild={depth > 0} isCounting={isCounting} />
                  ))}
                </tbody>
              </table>
              {sessions.length === 0 && (
                <p class="note">
                  No session passes these filters. <code>palimpsest open LAST</code> imports the latest one of an agent.
                </p>
              )}
            </div>
            <div class="row soft" role="status">
              {sessions.length === total
                ? plural(total, 'session')
                : `${counted(start + 1)}–${counted(start + sessions.length)} of ${plural(total, 'session')}`}
              {start > 0 && (
                <button type="button" onClick={() => refine({ page: Number(page) - 1 || undefined })}>
                  Earlier page
                </button>
              )}
              {start + sessions.length < total && (
                <button type="button" onClick={() => refine({ page: Number(page) + 1 })}>
                  Next page
                </button>
              )}
              {prices !== '' && <span class="spread">Prices of {prices}</span>}
            </div>
          </>
        )}
      </AnswerBox>
    </>
  );
}
