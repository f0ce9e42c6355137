import { useMemo } from 'preact/hooks';
import { AnswerBox } from '../answer-box.js';
import { isServed, useAnswer } from '../ask.js';
import { keptWhileFollowed, knownTx, useSessionStrip } from '../calls.js';
import { DiffView } from '../diff-view.js';
import { SetVerbs } from '../person.js';
import { from, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import { TextView } from '../text-view.js';
import type { Log, LoggedVersion, Show, Strip, Who } from '../wire.js';
import { counted, rangesOf, shortId, shortTime } from '../words.js';

const MOST_VERSIONS = 1_000;

const STATES = { line: 'a line only', active: 'active', pinned: 'pinned' } as const;

/** Maximum characters of a line that are searched for. */
const MOST_SEARCHED = 200;

/** Links to the calls whose context contained a line. */
const whereItStood = (line: string): string => from('search', { q: line.slice(0, MOST_SEARCHED) });

/** Returns the version valid at a moment, as known after a transaction. */
function heldAt(versions: readonly LoggedVersion[], validTime: string, txId: number): LoggedVersion | undefined {
  return versions
    .filter((version) => version.valid_time <= validTime && version.tx_id <= txId)
    .toSorted((a, b) => (a.valid_time < b.valid_time ? -1 : 1) || a.tx_id - b.tx_id)
    .at(-1);
}

function useVersion(id: string, version: LoggedVersion | undefined) {
  const asked = version === undefined || version.state === 'removed' ? undefined : '/v1/show';
  return useAnswer<Show>(asked, { object: id, valid_time: version?.valid_time, tx: version?.tx_id });
}

function Compared({ id, a, b }: { readonly id: string; readonly a: LoggedVersion; readonly b: LoggedVersion }) {
  const [before, after] = [useVersion(id, a), useVersion(id, b)];
  return (
    <AnswerBox answer={before}>
      {(was) => (
        <AnswerBox answer={after}>
          {(is) => (
            <DiffView
              before={was.text ?? ''}
              after={is.text ?? ''}
              label={`From version ${a.number} to version ${b.number}`}
            />
          )}
        </AnswerBox>
      )}
    </AnswerBox>
  );
}

function Chosen({ id, version }: { readonly id: string; readonly version: LoggedVersion }) {
  const answer = useVersion(id, version);
  return (
    <AnswerBox answer={answer}>
      {({ text, whole, object }) => (
        <>
          <h2>
            Version {version.number} <small>{`${version.state}, ${counted(version.chars)} characters`}</small>
          </h2>
          {text === null ? (
            <p class="note">It has no text.</p>
          ) : (
            <TextView text={text} label={`Version ${version.number}`} lineHref={whereItStood} />
          )}
          {!whole && <p class="note">Only the head and the tail of the text were kept.</p>}
          <details>
            <summary>The document, with its five hashes</summary>
            <TextView text={JSON.stringify({ ...object, content: undefined }, null, 2)} label="The document" />
          </details>
        </>
      )}
    </AnswerBox>
  );
}

/** A slider over the moments at which one of the two clocks has a change. */
function Scrubber({
  label,
  moments,
  at,
  onMove,
}: {
  readonly label: string;
  readonly moments: readonly string[];
  readonly at: number;
  readonly onMove: (at: number) => void;
}) {
  return (
    <label class="scrubber">
      <span>{label}</span>
      <input
        type="range"
        min={0}
        max={Math.max(0, moments.length - 1)}
        value={at}
        onInput={(event) => onMove(Number(event.currentTarget.value))}
      />
      <output>{moments[at] ?? ''}</output>
    </label>
  );
}

/** Returns the turns of this session in which a call showed an outdated version. */
function staleTurns(
  versions: readonly LoggedVersion[],
  seen: Who['sessions'][number]['versions'][number],
  strip: Strip | undefined,
): readonly number[] {
  if (strip === undefined) return [];
  const newer = versions.filter((version) => version.valid_time > seen.valid_time && version.state !== 'stub');
  const shown = strip.calls.filter(({ step }) => seen.steps.some(({ first, last }) => first <= step && step <= last));
  const stale = shown.filter((call) => newer.some((version) => version.valid_time <= call.at));
  return [...new Set(stale.map(({ turn }) => turn))];
}

function Seen({ id, versions }: { readonly id: string; readonly versions: readonly LoggedVersion[] }) {
  const { session } = place.value.of;
  const answer = useAnswer<Who>('/v1/who', { object: id });
  const strip = useSessionStrip();
  const numberOf = (txId: number, validTime: string): number | undefined =>
    versions.find((version) => version.tx_id === txId && version.valid_time === validTime)?.number;
  return (
    <section aria-label="Who saw it">
      <h2>Sessions that saw it</h2>
      <AnswerBox answer={answer}>
        {({ sessions }) => (
          <table>
            <thead>
              <tr>
                <th>Session</th>
                <th>Known from</th>
                <th>Version</th>
                <th>Active in turns</th>
                <th>After steps</th>
                <th>Requests not seen in turns</th>
                <th>Stale in turns</th>
              </tr>
            </thead>
            <tbody>
              {sessions.flatMap((sighting) => {
                const shown = sighting.versions.length === 0 ? [undefined] : sighting.versions;
                return shown.map((seen, i) => {
                  const stale =
                    seen === undefined || sighting.session !== session
                      ? []
                      : staleTurns(versions, seen, strip.state === 'there' ? strip.value : undefined);
                  return (
                    <tr key={`${sighting.session} ${i}`} class={stale.length > 0 ? 'stale' : ''}>
                      <td>
                        <a href={from('strip', { session: sighting.session, tx: undefined, step: undefined })}>
                          {oneLine(sighting.session)}
                        </a>
                      </td>
                      <td>
                        turn {sighting.known_from.turn}, step {sighting.known_from.step}
                      </td>
                      <td>
                        {seen === undefined ? 'a line only' : `version ${numberOf(seen.tx_id, seen.valid_time) ?? '?'}`}
                      </td>
                      <td>{seen === undefined ? '' : rangesOf(seen.turns)}</td>
                      <td>
                        {seen?.steps
                          .map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`))
                          .join(', ')}
                      </td>
                      <td>{rangesOf(sighting.unseen)}</td>
                      <td>{stale.length === 0 ? '' : <span class="bad">{rangesOf(stale)}</span>}</td>
                    </tr>
                  );
                });
              })}
            </tbody>
          </table>
        )}
      </AnswerBox>
    </section>
  );
}

/** Shows a person's actions on the object in the address's session. */
function InSession({ id, name }: { readonly id: string; readonly name: string }) {
  const strip = useSessionStrip();
  const band = strip.state === 'there' ? strip.value.bands.find((one) => one.id === id) : undefined;
  const state = band?.changes.at(-1)?.state;
  if (state === undefined || !isServed()) return null;
  return (
    <p>
      In the session it is {STATES[state]}. <SetVerbs object={id} name={band?.name ?? name} state={state} />
    </p>
  );
}

function Versions({ id, versions }: { readonly id: string; readonly versions: readonly LoggedVersion[] }) {
  const { a, b, valid, known } = place.value.of;
  const oldest = useMemo(() => versions.toReversed(), [versions]);
  const valids = useMemo(() => [...new Set(versions.map((version) => version.valid_time))].sort(), [versions]);
  const txs = useMemo(() => [...new Set(versions.map((version) => version.tx_id))].sort((x, y) => x - y), [versions]);
  const [atValid, atTx] = [
    Math.min(Number(valid ?? valids.length - 1), valids.length - 1),
    Math.min(Number(known ?? txs.length - 1), txs.length - 1),
  ];
  const chosen = heldAt(oldest, valids[atValid] ?? '', txs[atTx] ?? 0);
  const [left, right] = [a, b].map((number) => versions.find((version) => String(version.number) === number));
  return (
    <>
      <Scrubber
        label="True at (valid time)"
        moments={valids.map(shortTime)}
        at={atValid}
        onMove={(at) => refine({ valid: at })}
      />
      <Scrubber
        label="Known after (transaction)"
        moments={txs.map(String)}
        at={atTx}
        onMove={(at) => refine({ known: at })}
      />
      <table>
        <thead>
          <tr>
            <th>Version</th>
            <th>State</th>
            <th>True from</th>
            <th>Known since</th>
            <th class="number">Characters</th>
            <th>Content</th>
            <th>Compare</th>
          </tr>
        </thead>
        <tbody>
          {versions.map((version) => (
            <tr key={`${version.number} ${version.tx_id}`} class={version === chosen ? 'chosen' : ''}>
              <td>
                {version.number}
                {version === chosen && ' ◀'}
              </td>
              <td>{version.state}</td>
              <td>{shortTime(version.valid_time)}</td>
              <td>
                {shortTime(version.tx_time)}, transaction {version.tx_id}
              </td>
              <td class="number">{counted(version.chars)}</td>
              <td>
                <code>{shortId(version.content_hash ?? '')}</code>
              </td>
              <td>
                <button type="button" aria-pressed={version === left} onClick={() => refine({ a: version.number })}>
                  from {version.number}
                </button>{' '}
                <button type="button" aria-pressed={version === right} onClick={() => refine({ b: version.number })}>
                  to {version.number}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {left !== undefined && right !== undefined && (
        <section aria-label="Difference">
          <h2>
            From version {left.number} to version {right.number}
          </h2>
          <Compared id={id} a={left} b={right} />
        </section>
      )}
      {chosen === undefined ? <p class="note">There was no version then.</p> : <Chosen id={id} version={chosen} />}
      <Seen id={id} versions={versions} />
    </>
  );
}

/**
 * Shows an object: its versions on both clocks, the difference between any two, and the sessions
 * that saw each.
 */
export function ObjectView() {
  const { id } = place.value.of;
  const asked = id === undefined ? undefined : '/v1/log';
  const answer = useAnswer<Log>(asked, { object: id, tx: knownTx(), limit: MOST_VERSIONS }, keptWhileFollowed());
  return (
    <>
      <h1>Object {id === undefined ? '' : <code>{oneLine(id, 80)}</code>}</h1>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          const wanted = new FormData(event.currentTarget).get('id');
          refine({ id: String(wanted ?? ''), a: undefined, b: undefined, valid: undefined, known: undefined }, {});
        }}
      >
        <label>
          Id or path <input type="search" name="id" defaultValue={id ?? ''} />
        </label>
        <button type="submit">Show</button>
      </form>
      {id !== undefined && <InSession id={id} name={id} />}
      {id !== undefined && (
        <AnswerBox answer={answer}>
          {({ versions }) => <Versions key={id} id={id} versions={versions ?? []} />}
        </AnswerBox>
      )}
    </>
  );
}
