import { Fragment } from 'preact';
import { useMemo } from 'preact/hooks';
import { AnswerBox } from '../answer-box.js';
import { callNumber, useQuestion, useStrip } from '../calls.js';
import { Chart, type ChartSeries } from '../chart.js';
import { from, goTo, place } from '../place.js';
import { oneLine } from '../shown-text.js';
import { inColumns } from '../strip-layout.js';
import type { Money, Strip } from '../wire.js';
import { axisMoney, counted, money, percentsOf, plural, shortCount, withAgents } from '../words.js';

type Cause = Money['causes'][number]['cause'];

const CAUSES: Readonly<Record<Cause, { readonly name: string; readonly about: string; readonly color: string }>> = {
  'first-writes': { name: 'New text', about: 'read by the model for the first time', color: '--data-text' },
  'lost-cache': { name: 'Lost cache', about: 'sent before, and paid in full again', color: '--data-pinned' },
  rent: { name: 'Text kept in context', about: 'read from the cache at every call', color: '--data-system' },
  answers: { name: 'Answers', about: 'written by the model', color: '--data-chat' },
};

function Spent({
  value,
  name,
  note,
}: {
  readonly value: Money['spent'];
  readonly name: string;
  readonly note?: string;
}) {
  return (
    <div>
      <dt>
        {name}
        {note !== undefined && <span class="soft"> {note}</span>}
      </dt>
      <dd>{value === null ? 'not recorded' : money(value.amount, value.currency)}</dd>
    </div>
  );
}

const SOURCES: Readonly<Record<NonNullable<Money['spent']>['source'], string>> = {
  recorded: 'as the agent recorded it',
  list: 'by the price list',
  mixed: 'as the agent recorded it, or by the price list',
};

/** Maximum number of further calls with a lost cache that are named. */
const MOST_LOST = 12;

/** Names the calls with a lost cache that are not among the costliest moments. */
function OtherLosses({ byCall, moments, strip }: Pick<CostliestProps, 'byCall' | 'moments' | 'strip'>) {
  const told = new Set(moments.flatMap(({ cause, step }) => (cause === 'lost-cache' ? [step] : [])));
  const numberOf = (step: number, at: number): number => (strip === undefined ? at + 1 : callNumber(strip, step));
  const others = byCall.flatMap(({ step, again }, i) =>
    again > 0 && !told.has(step) ? [{ step, again, number: numberOf(step, i) }] : [],
  );
  if (others.length === 0) return null;
  const shown = others.toSorted((a, b) => b.again - a.again).slice(0, MOST_LOST);
  return (
    <p class="soft">
      {plural(others.length, 'more call')} lost cache:{' '}
      {shown.map(({ step, number, again }, i) => (
        <Fragment key={step}>
          {i > 0 && ', '}
          <a href={from('changes', { step })}>call {counted(number)}</a> ({plural(again, 'token')})
        </Fragment>
      ))}
      {others.length > shown.length && ` and ${counted(others.length - shown.length)} more`}.
    </p>
  );
}

/** The parts of the cost as one bar, with a table. */
function Causes({ causes, currency }: { readonly causes: Money['causes']; readonly currency: string }) {
  const isPriced = causes.some(({ amount }) => amount !== null);
  const sizeOf = ({ amount, tokens }: Money['causes'][number]): number => (isPriced ? (amount ?? 0) : tokens);
  const sum = causes.reduce((total, cause) => total + sizeOf(cause), 0);
  if (sum === 0) return null;
  const percents = percentsOf(causes.map(sizeOf));
  return (
    <section aria-label="Where it went" class="card">
      <h2>Where it went</h2>
      <div class="parts" aria-hidden="true">
        {causes.map((cause) => (
          <i
            key={cause.cause}
            style={{ flexGrow: sizeOf(cause), background: `var(${CAUSES[cause.cause].color})` }}
            title={CAUSES[cause.cause].name}
          />
        ))}
      </div>
      <table class="bare stack">
        <tbody>
          {causes.map((cause, i) => (
            <tr key={cause.cause}>
              <td>
                <i class="swatch" style={{ background: `var(${CAUSES[cause.cause].color})` }} />{' '}
                <strong>{CAUSES[cause.cause].name}</strong> <span class="soft">{CAUSES[cause.cause].about}</span>
              </td>
              <td class="number">{plural(cause.tokens, 'token')}</td>
              <td class="number">{cause.amount === null ? 'no price' : money(cause.amount, currency)}</td>
              <td class="number soft">{percents[i]} %</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface CostliestProps {
  readonly byCall: Money['by_call'];
  readonly moments: Money['costliest'];
  readonly currency: string;
  readonly strip: Strip | undefined;
}

function Costliest({ byCall, moments, currency, strip }: CostliestProps) {
  if (moments.length === 0) return null;
  const prices = new Map(byCall.map(({ step, amount }) => [step, amount]));
  const whole = (step: number): string => {
    const price = prices.get(step);
    return price === null || price === undefined ? '' : `, ${money(price, currency)} in all`;
  };
  return (
    <section aria-label="The costliest moments" class="card">
      <h2>The costliest moments</h2>
      <ol class="moments">
        {moments.map(({ step, turn, call, amount, tokens, cause, sentence, object }) => (
          <li key={step}>
            <span class="moment-amount">{amount === null ? shortCount(tokens) : money(amount, currency)}</span>
            <div>
              {oneLine(sentence, 400)}
              <div class="row soft">
                <span>
                  {CAUSES[cause].name} · turn {counted(turn)}, call{' '}
                  {counted(strip === undefined ? call : callNumber(strip, step))}
                  {whole(step)}
                </span>
                <a href={from('changes', { step })}>why</a>
                <a href={from('request', { step })}>what the model saw</a>
                {object !== null && <a href={from('object', { id: object })}>its history</a>}
              </div>
            </div>
          </li>
        ))}
      </ol>
      <OtherLosses byCall={byCall} moments={moments} strip={strip} />
    </section>
  );
}

interface ByCallProps {
  readonly priced: Money['by_call'];
  readonly currency: string;
  readonly strip: Strip | undefined;
}

function ByCall({ priced, currency, strip }: ByCallProps) {
  const calls = useMemo(() => inColumns(priced, strip), [priced, strip]);
  const isPriced = priced.some(({ amount }) => amount !== null);
  const series = useMemo(
    (): readonly ChartSeries[] =>
      isPriced
        ? [{ name: 'Price', color: '--data-text', values: calls.map((call) => call?.amount ?? null), draws: 'bars' }]
        : [
            {
              name: 'Written',
              color: '--data-text',
              values: calls.map((call) => call?.written ?? null),
              draws: 'bars',
            },
            {
              name: 'Written again',
              color: '--data-pinned',
              values: calls.map((call) => call?.again ?? null),
              draws: 'bars',
            },
          ],
    [calls],
  );
  if (priced.length === 0) return null;
  const { step } = place.value.of;
  const chosen = calls.findIndex((call) => call !== undefined && String(call.step) === step);
  return (
    <section aria-label="Call by call" class="card">
      <h2>{isPriced ? 'Price of each call' : 'Tokens written at each call'}</h2>
      <Chart
        label={`Price of each of ${plural(calls.length, 'call')}`}
        series={series}
        height={190}
        left={{ label: isPriced ? currency : 'tokens', size: 64 }}
        chosen={chosen < 0 ? undefined : chosen}
        {...(isPriced ? { leftFormat: (n: number) => axisMoney(n, currency) } : {})}
        tip={(column) => {
          const call = calls[column];
          if (call === undefined) return [`Call ${column + 1}: no tokens are recorded`];
          return [
            `Call ${column + 1}${call.amount === null ? '' : `: ${money(call.amount, currency)}`}`,
            `${plural(call.read, 'token')} read from the cache`,
            `${plural(call.written, 'token')} written, ${counted(call.again)} of them again`,
          ];
        }}
        onChoose={(column) => goTo(from('changes', { step: (strip?.calls ?? priced)[column]?.step }))}
      />
    </section>
  );
}

function Prices({ prices, day }: { readonly prices: Money['prices']; readonly day: string }) {
  const shown = (price: number | null) => (price === null ? '–' : money(price, 'USD'));
  return (
    <details class="card">
      <summary>Prices of {day}, in US dollars for a million tokens</summary>
      <table class="bare">
        <thead>
          <tr>
            <th>Model</th>
            <th class="number">Calls</th>
            <th class="number">Input</th>
            <th class="number">From the cache</th>
            <th class="number">Into the cache</th>
            <th class="number">Output</th>
          </tr>
        </thead>
        <tbody>
          {prices.map(
            ({ model, calls, input, cache_read: read, cache_write: written, cache_write_hour: hour, output }) => (
              <tr key={model}>
                <td>{oneLine(model)}</td>
                <td class="number">{counted(calls)}</td>
                <td class="number">{shown(input)}</td>
                <td class="number">{shown(read)}</td>
                <td class="number">
                  {shown(written)}
                  {hour === undefined ? '' : `; for an hour ${shown(hour)}`}
                </td>
                <td class="number">{shown(output)}</td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </details>
  );
}

/** Shows what a session cost, and why. */
export function MoneyView() {
  const asked = useStrip();
  const strip = asked.state === 'there' ? asked.value : undefined;
  const { session } = place.value.of;
  const answer = useQuestion<Money>(session === undefined ? undefined : '/v1/money', { session });
  return (
    <>
      <h1 class="hidden">Money</h1>
      <AnswerBox answer={answer}>
        {({
          spent,
          alone,
          alone_why: why,
          tokens,
          calls,
          uncounted,
          inherited,
          with_sub_agents: sum,
          causes,
          costliest,
          by_call: byCall,
          prices,
          prices_as_of: day,
        }) => {
          const currency = spent?.currency ?? 'USD';
          const isTold = strip?.calls.some(({ kind }) => kind === 'transcript') === true;
          const summaries = isTold ? strip.marks.filter(({ event }) => event === 'compacted').length : 0;
          return (
            <>
              <dl class="figures">
                <Spent value={spent} name="Spent" {...(spent === null ? {} : { note: SOURCES[spent.source] })} />
                {alone !== null && <Spent value={alone} name="Without Palimpsest" note="estimated" />}
                <div>
                  <dt>{strip !== undefined && strip.calls.length !== calls ? 'Calls with counts' : 'Calls'}</dt>
                  <dd>{counted(calls)}</dd>
                </div>
                {tokens !== null && (
                  <>
                    <div>
                      <dt>Tokens in</dt>
                      <dd>{shortCount(tokens.fresh + tokens.cache_read + tokens.cache_write)}</dd>
                    </div>
                    <div>
                      <dt>of them from the cache</dt>
                      <dd>{shortCount(tokens.cache_read)}</dd>
                    </div>
                    <div>
                      <dt>Tokens out</dt>
                      <dd>{shortCount(tokens.output)}</dd>
                    </div>
                  </>
                )}
              </dl>
              {sum !== null && (
                <p class="soft">
                  The whole cost {withAgents(sum.sessions)}{' '}
                  {sum.cost === null ? 'no price' : money(sum.cost.amount, sum.cost.currency)}
                  {sum.tokens !== null && `, ${shortCount(sum.tokens.total)} tokens`}. The parts below are this
                  session's.
                </p>
              )}
              {inherited !== null && <p>{oneLine(inherited, 400)}</p>}
              {why !== '' && <p class="soft">{oneLine(why, 400)}</p>}
              {spent !== null && spent.unpriced > 0 && (
                <div class="verdict warn">{plural(spent.unpriced, 'call')} without a price, left out of the sum.</div>
              )}
              {uncounted > 0 && (
                <div class="verdict warn">
                  The transcript has no final count of the output of {plural(uncounted, 'call')}, so tokens out and list
                  prices are lower bounds.
                </div>
              )}
              {summaries > 0 && (
                <p class="soft">
                  The transcript does not have the {summaries === 1 ? 'call' : 'calls'} that wrote the{' '}
                  {summaries === 1 ? 'summary of its compaction' : `summaries of its ${counted(summaries)} compactions`}
                  . Their cost is not in the sum.
                </p>
              )}
              <Causes causes={causes} currency={currency} />
              <Costliest byCall={byCall} moments={costliest} currency={currency} strip={strip} />
              <ByCall priced={byCall} currency={currency} strip={strip} />
              {prices.length > 0 && <Prices prices={prices} day={day} />}
            </>
          );
        }}
      </AnswerBox>
    </>
  );
}
