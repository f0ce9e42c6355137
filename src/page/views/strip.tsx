import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { AnswerBox } from '../answer-box.js';
import { isServed, useAnswer } from '../ask.js';
import { chosenStep, useStrip } from '../calls.js';
import { ForkHere, SetVerbs, UndoStep } from '../person.js';
import { from, goTo, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import { bandRows, columnOf, fillOf, filteredRows, marksByColumn, seenRange, usageCurve } from '../strip-layout.js';
import { treemap } from '../treemap.js';
import type { ReportDetail, Strip, StripMark } from '../wire.js';
import { counted, NOT_SEEN, shortTime } from '../words.js';

const COLUMN = 10;
const ROW = 16;
const FILL = 90;
const MARKS = 18;
const HEAD = FILL + MARKS;
const NAMES = 240;
const MOST_PX = 560;

const SYMBOLS: Readonly<Record<StripMark['kind'], string>> = { epoch: '◆', verb: '▲', event: '✂', version: '✎' };

function markText({ kind, step, number, reason, price, tool, event, object, by }: StripMark): string {
  const told: Readonly<Record<StripMark['kind'], string>> = {
    epoch:
      `epoch ${number ?? ''} began: ` +
      (reason ?? '') +
      (price === null
        ? ''
        : `, ${counted(price.written)} tokens written again, ${counted(price.saved_per_call)} saved a call`),
    verb: `${tool ?? ''}${by === null ? '' : ` by a ${by}`}`,
    event: `the harness's history: ${event ?? ''}`,
    version: `version ${number ?? ''} of ${object === null ? '' : object.slice(0, 12)} on the disk`,
  };
  return `step ${step}: ${told[kind]}`;
}

function Treemap({ detail }: { readonly detail: ReportDetail }) {
  const [width, height] = [900, 260];
  const tiles = treemap(
    detail.objects.map((object) => ({ ...object, size: object.shown_tokens })),
    width,
    height,
  );
  return (
    <svg class="treemap" viewBox={`0 0 ${width} ${height}`}>
      <title>Tokens by object</title>
      {tiles.map(({ of, x, y, width: w, height: h }) => (
        <a key={of.id} href={from('object', { id: of.id })}>
          <rect
            class={of.active ? 'active' : 'line'}
            x={x}
            y={y}
            width={Math.max(0, w - 1)}
            height={Math.max(0, h - 1)}
          >
            <title>{`${oneLine(of.name)}: ${counted(of.shown_tokens)} tokens`}</title>
          </rect>
          {w > 60 && h > 18 && (
            <text x={x + 4} y={y + 14}>
              {oneLine(of.name, Math.floor(w / 8))}
            </text>
          )}
        </a>
      ))}
    </svg>
  );
}

/** Shows how the tokens of one call are spent. */
function Ledger({
  session,
  step,
  bands,
}: {
  readonly session: string;
  readonly step: number;
  readonly bands: Strip['bands'];
}) {
  const states = useMemo(() => new Map(bands.map(({ id, changes }) => [id, changes.at(-1)?.state ?? 'line'])), [bands]);
  const answer = useAnswer<ReportDetail>('/v1/report/detail', { session, at: `step:${step}` });
  return (
    <section aria-label="Ledger">
      <h2>Where the tokens of step {step} go</h2>
      <AnswerBox answer={answer}>
        {(detail) => (
          <>
            <p>
              {counted(detail.assembly.total.tokens)} tokens ({detail.tokenizer}):{' '}
              {detail.assembly.sections.map(({ name, tokens }) => `${name} ${counted(tokens)}`).join(', ')}
            </p>
            <Treemap detail={detail} />
            <table>
              <thead>
                <tr>
                  <th>Object</th>
                  <th>Shown as</th>
                  <th class="number">Tokens</th>
                  <th class="number">Characters stored</th>
                  {isServed() && <th>Now</th>}
                </tr>
              </thead>
              <tbody>
                {detail.objects.slice(0, 20).map(({ id, name, active, shown_tokens: tokens, raw_chars: raw }) => (
                  <tr key={id}>
                    <td>
                      <a href={from('object', { id })}>{oneLine(name)}</a>
                    </td>
                    <td>{active ? 'text' : 'line'}</td>
                    <td class="number">{counted(tokens)}</td>
                    <td class="number">{counted(raw)}</td>
                    {isServed() && (
                      <td>
                        <SetVerbs object={id} name={name} state={states.get(id) ?? 'line'} />
                      </td>
                    )}
                  </tr>
                ))}
              </tbody>
            </table>
          </>
        )}
      </AnswerBox>
    </section>
  );
}

function Chart({ strip }: { readonly strip: Strip }) {
  const { of } = place.value;
  const { calls, bands, marks } = strip;
  const step = chosenStep(strip) ?? 0;
  const chosen = Math.min(columnOf(calls, step), calls.length - 1);
  const all = useMemo(() => bandRows(bands, calls), [bands, calls]);
  const shownOnly = of.all === undefined;
  const rows = useMemo(() => filteredRows(all, { name: of.q ?? '', shownOnly }), [all, of.q, shownOnly]);
  const fill = useMemo(() => fillOf(calls, all), [calls, all]);
  const curve = useMemo(() => usageCurve(calls), [calls]);
  const marked = useMemo(() => marksByColumn(marks, calls), [marks, calls]);
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState({ x: 0, y: 0, width: 1_000, height: MOST_PX });
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const look = (): void =>
      setView({
        x: element.scrollLeft,
        y: element.scrollTop,
        width: element.clientWidth,
        height: element.clientHeight,
      });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const at = chosen * COLUMN;
    const width = element.clientWidth - NAMES;
    if (at < element.scrollLeft || at + COLUMN > element.scrollLeft + width)
      element.scrollLeft = Math.max(0, at - width / 2);
  }, [chosen]);
  const columns = seenRange(view.x, view.width, { each: COLUMN, count: calls.length, spare: 4 });
  const seen = seenRange(view.y, view.height, { each: ROW, count: rows.length, spare: 4 });
  const budget = Number(of.budget ?? 0);
  const most = Math.max(fill.most, 1);
  const bars = [];
  for (let i = columns.from; i < columns.to; i += 1) {
    let top = FILL;
    for (const { name, size } of fill.parts[i] ?? []) {
      const height = (size / most) * (FILL - 6);
      top -= height;
      bars.push(
        <rect
          key={`${i} ${name}`}
          class={`section-${name}`}
          x={i * COLUMN}
          y={top}
          width={COLUMN - 1}
          height={height}
        />,
      );
    }
  }
  const points = curve?.tokens
    .slice(columns.from, columns.to)
    // A call without a provider's count has no point.
    .flatMap((tokens, n) => {
      if (tokens === 0) return [];
      const y = FILL - (tokens / Math.max(curve.most, budget)) * (FILL - 6);
      return [`${(columns.from + n) * COLUMN + COLUMN / 2},${y}`];
    })
    .join(' ');
  const signs = [...marked].filter(([column]) => column >= columns.from && column < columns.to);
  const width = calls.length * COLUMN;
  const call = calls[chosen];
  return (
    <>
      <section
        class="strip"
        ref={box}
        tabIndex={0}
        aria-label="Context strip: one column a call, one row an object"
        style={{ maxHeight: `${MOST_PX}px` }}
        onScroll={({ currentTarget: { scrollLeft: x, scrollTop: y, clientWidth, clientHeight } }) =>
          setView({ x, y, width: clientWidth, height: clientHeight })
        }
      >
        <div class="strip-whole" style={{ width: `${NAMES + width}px`, height: `${HEAD + rows.length * ROW}px` }}>
          <div class="strip-head" style={{ height: `${HEAD}px`, width: `${NAMES + width}px` }}>
            <div class="strip-corner" style={{ width: `${NAMES}px`, height: `${HEAD}px` }}>
              <span>
                {counted(most)} {fill.unit} at most
              </span>
              {curve !== undefined && <span class="curve-told">{counted(curve.most)} tokens, said the provider</span>}
              <span>
                {counted(rows.length)} of {counted(bands.length)} objects
              </span>
            </div>
            <svg
              width={width}
              height={HEAD}
              role="img"
              aria-label="How full each call was"
              onClick={(event) => {
                const column = Math.floor((event.clientX - event.currentTarget.getBoundingClientRect().left) / COLUMN);
                refine({ step: calls[column]?.step });
              }}
            >
              <rect class="chosen" x={chosen * COLUMN} y={0} width={COLUMN} height={HEAD} />
              {bars}
              {points !== undefined && <polyline class="curve" points={points} />}
              {signs.map(([column, own]) => (
                <text key={column} class={`mark mark-${own[0]?.kind ?? ''}`} x={column * COLUMN} y={FILL + 13}>
                  {SYMBOLS[own[0]?.kind ?? 'event']}
                  <title>{own.map(markText).join('\n')}</title>
                </text>
              ))}
            </svg>
          </div>
          <svg
            class="bands"
            width={width}
            height={(seen.to - seen.from) * ROW}
            style={{ top: `${HEAD + seen.from * ROW}px`, left: `${NAMES}px` }}
            role="img"
            aria-label="Objects over the calls"
          >
            <rect class="chosen" x={chosen * COLUMN} y={0} width={COLUMN} height={(seen.to - seen.from) * ROW} />
            {rows.slice(seen.from, seen.to).flatMap(({ band, spans }, n) =>
              spans
                .filter((span) => span.to > columns.from && span.from < columns.to)
                .map((span) => (
                  <rect
                    key={`${band.id} ${span.from}`}
                    class={`band-${span.state}`}
                    x={Math.max(span.from, columns.from) * COLUMN}
                    y={n * ROW + 2}
                    width={(Math.min(span.to, columns.to) - Math.max(span.from, columns.from)) * COLUMN - 1}
                    height={ROW - 4}
                  >
                    <title>{`${oneLine(band.name)}: ${span.state}`}</title>
                  </rect>
                )),
            )}
          </svg>
          <ul class="band-names" style={{ top: `${HEAD + seen.from * ROW}px`, width: `${NAMES}px` }}>
            {rows.slice(seen.from, seen.to).map(({ band }) => (
              <li key={band.id} style={{ height: `${ROW}px` }}>
                <a href={from('object', { id: band.id })}>{oneLine(band.name, 60)}</a>
              </li>
            ))}
          </ul>
        </div>
      </section>
      {call !== undefined && (
        <p class="chosen-call">
          <strong>
            Turn {call.turn}, step {call.step}
          </strong>{' '}
          {shortTime(call.at)}
          {call.chars !== null && ` · ${counted(call.chars)} characters`}
          {call.epoch !== null && ` · epoch ${call.epoch}`}
          {call.usage !== null && ` · the provider read ${counted(call.usage.cache_read ?? 0)} tokens from its cache`}
          {call.kind === 'transcript' && ' · from the transcript'}
          {call.delivered !== null && (
            <>
              {' '}
              · <a href={from('request', { step: call.step })}>the request</a> ·{' '}
              <a href={from('changes', { step: call.step })}>what changed</a>
            </>
          )}{' '}
          <ForkHere step={call.step} />
        </p>
      )}
      <ul class="marks" aria-label="Marks of this call">
        {(marked.get(chosen) ?? []).slice(0, 30).map((mark, i) => (
          <li key={i}>
            {SYMBOLS[mark.kind]} {oneLine(markText(mark), 300)} {mark.kind === 'verb' && <UndoStep step={mark.step} />}
          </li>
        ))}
      </ul>
      {call?.kind === 'unseen' && <p class="note">{NOT_SEEN}</p>}
      {call !== undefined && call.kind !== 'unseen' && of.session !== undefined && (
        <Ledger session={of.session} step={call.step} bands={bands} />
      )}
    </>
  );
}

/** Shows a session call by call: the size of each call, and the state of each object. */
export function StripView() {
  const { of } = place.value;
  const answer = useStrip();
  return (
    <>
      <h1>Context strip</h1>
      <div class="filters">
        <label>
          Object{' '}
          <input type="search" value={of.q ?? ''} onInput={(event) => refine({ q: event.currentTarget.value })} />
        </label>
        <label>
          <input
            type="checkbox"
            checked={of.all !== undefined}
            onChange={(event) => refine({ all: event.currentTarget.checked ? 1 : undefined })}
          />{' '}
          Also those that were never more than a line
        </label>
        <ul class="legend" aria-label="Legend">
          <li class="band-active">text</li>
          <li class="band-pinned">pinned</li>
          <li class="band-line">line only</li>
          <li>{SYMBOLS.epoch} epoch</li>
          <li>{SYMBOLS.verb} verb</li>
          <li>{SYMBOLS.event} the harness's history</li>
          <li>{SYMBOLS.version} changed on the disk</li>
        </ul>
      </div>
      <AnswerBox answer={answer}>
        {(strip) =>
          strip.calls.length === 0 ? (
            <p class="note">Nothing happened in this session up to here.</p>
          ) : (
            <Chart strip={strip} />
          )
        }
      </AnswerBox>
      {of.session === undefined && (
        <button type="button" onClick={() => goTo(from('sessions'))}>
          Choose a session
        </button>
      )}
    </>
  );
}
