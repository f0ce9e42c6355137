import { useMemo, useState } from 'preact/hooks';
import { AnswerBox } from '../answer-box.js';
import { useAnswer } from '../ask.js';
import { type Comparison, type LabRun, linePoints, readLabRun, sessionComparison } from '../compared-lines.js';
import { from, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import type { Sessions, Strip } from '../wire.js';
import { counted } from '../words.js';

const [WIDTH, HEIGHT] = [960, 300];
/** Number of lines shown by default. */
const SHOWN_FIRST = 4;
/** Number of line styles of the page. */
const STYLES = 8;

const markOf = (exact: number, calls: number): string =>
  exact >= calls ? 'exact' : exact === 0 ? 'bounded' : `exact up to call ${exact}, bounded behind it`;

function Chart({ comparison, shown }: { readonly comparison: Comparison; readonly shown: ReadonlySet<string> }) {
  const { lines, unit, shared } = comparison;
  const own = lines.flatMap((line, i) => (shown.has(line.name) ? [{ line, style: i % STYLES }] : []));
  const calls = Math.max(1, ...own.map(({ line }) => line.sizes.length));
  const most = Math.max(1, ...own.flatMap(({ line }) => line.sizes));
  const partAt = shared === undefined ? undefined : (shared * WIDTH) / calls;
  return (
    <figure class="compared">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Size of each request in ${unit}, over ${calls} calls`}
      >
        {partAt !== undefined && <line class="parting" x1={partAt} x2={partAt} y1={0} y2={HEIGHT} />}
        {own.map(({ line, style }) => {
          const points = linePoints(line, { width: WIDTH, height: HEIGHT - 4, calls, most });
          return (
            <g key={line.name} class={`line line-${style}`}>
              <title>{oneLine(line.name)}</title>
              <polyline points={points.exact} />
              <polyline class="bounded" points={points.bounded} />
            </g>
          );
        })}
      </svg>
      <figcaption>
        {counted(calls)} calls, at most {counted(Math.round(most))} {unit}. Dashed: a bound.
        {shared !== undefined && ` They share the first ${counted(shared)} calls.`}
      </figcaption>
    </figure>
  );
}

function Compared({ comparison }: { readonly comparison: Comparison }) {
  const { lines, unit, marks } = comparison;
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set(lines.slice(0, SHOWN_FIRST).map(({ name }) => name)));
  const toggle = (name: string): void => {
    const next = new Set(shown);
    if (!next.delete(name)) next.add(name);
    setShown(next);
  };
  return (
    <>
      <Chart comparison={comparison} shown={shown} />
      <table aria-label="What is compared">
        <thead>
          <tr>
            <th>Shown</th>
            <th>What</th>
            <th class="number">Calls</th>
            <th class="number">Largest, {unit}</th>
            <th class="number">Mean</th>
            <th>Mark</th>
          </tr>
        </thead>
        <tbody>
          {lines.map(({ name, sizes, exact }, i) => (
            <tr key={name}>
              <td>
                <input
                  type="checkbox"
                  checked={shown.has(name)}
                  onChange={() => toggle(name)}
                  aria-label={`show ${oneLine(name)}`}
                />
              </td>
              <td class={`line-name line-${i % STYLES}`}>{oneLine(name)}</td>
              <td class="number">{counted(sizes.length)}</td>
              <td class="number">{counted(Math.round(Math.max(0, ...sizes)))}</td>
              <td class="number">
                {counted(Math.round(sizes.reduce((sum, size) => sum + size, 0) / Math.max(1, sizes.length)))}
              </td>
              <td>{markOf(exact, sizes.length)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {marks.length > 0 && (
        <ul aria-label="What limits it">
          {marks.map((mark) => (
            <li key={mark}>{oneLine(mark, 400)}</li>
          ))}
        </ul>
      )}
    </>
  );
}

function TwoSessions({ a, b, rows }: { readonly a: string; readonly b: string; readonly rows: Sessions['sessions'] }) {
  const [left, right] = [useAnswer<Strip>('/v1/strip', { session: a }), useAnswer<Strip>('/v1/strip', { session: b })];
  return (
    <AnswerBox answer={left}>
      {(one) => (
        <AnswerBox answer={right}>
          {(other) => (
            <>
              <Compared key={`${a} ${b}`} comparison={sessionComparison(one, other, rows)} />
              <p>
                <a href={from('strip', { session: a, tx: undefined, step: undefined })}>strip of {oneLine(a)}</a>,{' '}
                <a href={from('strip', { session: b, tx: undefined, step: undefined })}>strip of {oneLine(b)}</a>
              </p>
            </>
          )}
        </AnswerBox>
      )}
    </AnswerBox>
  );
}

/**
 * Shows the policies of a laboratory run. The reader opens the run's report from disk. The browser
 * reads it without uploading it.
 */
function Laboratory() {
  const [run, setRun] = useState<LabRun | string>();
  const [name, setName] = useState('');
  const names = useMemo(() => (run === undefined || typeof run === 'string' ? [] : [...run.sessions.keys()]), [run]);
  const comparison = typeof run === 'object' ? run.sessions.get(name === '' ? (names[0] ?? '') : name) : undefined;
  const onFile = (event: Event): void => {
    const [file] = (event.currentTarget as HTMLInputElement).files ?? [];
    if (file === undefined) return;
    file.text().then(
      (text) => {
        try {
          setRun(readLabRun(text));
          setName('');
        } catch (error) {
          setRun(error instanceof Error ? error.message : String(error));
        }
      },
      (error: unknown) => setRun(String(error)),
    );
  };
  return (
    <section aria-label="Policies">
      <h2>Policies of a laboratory run</h2>
      <p>
        <label>
          Its laboratory.json <input type="file" accept=".json,application/json" onChange={onFile} />
        </label>{' '}
        {names.length > 0 && (
          <label>
            Session{' '}
            <select value={name === '' ? names[0] : name} onChange={(event) => setName(event.currentTarget.value)}>
              {names.map((one) => (
                <option key={one} value={one}>
                  {oneLine(one)}
                </option>
              ))}
            </select>
          </label>
        )}
      </p>
      {typeof run === 'string' && <p role="alert">{run}</p>}
      {comparison !== undefined && <Compared key={name} comparison={comparison} />}
    </section>
  );
}

/** Compares two sessions, or the policies of a laboratory run, on one axis of calls. */
export function CompareView() {
  const { session = '', with: other = '' } = place.value.of;
  const answer = useAnswer<Sessions>('/v1/sessions');
  return (
    <>
      <h1>Compare</h1>
      <section aria-label="Sessions">
        <h2>Two sessions</h2>
        <AnswerBox answer={answer}>
          {({ sessions }) => (
            <>
              <div class="filters">
                {(
                  [
                    ['session', 'Session', session],
                    ['with', 'beside', other],
                  ] as const
                ).map(([field, told, value]) => (
                  <label key={field}>
                    {told}{' '}
                    <select
                      value={value}
                      onChange={(event) =>
                        refine({ [field]: event.currentTarget.value, tx: undefined, step: undefined })
                      }
                    >
                      <option value="">choose one</option>
                      {sessions.map(({ id, title, parent }) => (
                        <option key={id} value={id}>
                          {title === undefined ? oneLine(id) : `${oneLine(title)} (${oneLine(id)})`}
                          {parent === undefined ? '' : `, fork of ${oneLine(parent.session)}`}
                        </option>
                      ))}
                    </select>
                  </label>
                ))}
              </div>
              {session !== '' && other !== '' && <TwoSessions a={session} b={other} rows={sessions} />}
            </>
          )}
        </AnswerBox>
      </section>
      <Laboratory />
    </>
  );
}
