import { Fragment } from 'preact';
import { ActorLink } from '../actor.js';
import { AnswerBox } from '../answer-box.js';
import { isServed, useAnswer } from '../ask.js';
import { STATES } from '../band.js';
import { callNumber, useQuestion, useSessionStrip, useStrip } from '../calls.js';
import { byCall, CallsOfFile, partsRead, recordedPart, VERSION_STATES } from '../calls-of-file.js';
import { DiffView } from '../diff-view.js';
import { SetVerbs } from '../person.js';
import { from, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import { makerOf } from '../strip-layout.js';
import { TextView } from '../text-view.js';
import { NoVerbs, useForeign } from '../transcript-note.js';
import type { Authors, Log, LoggedVersion, Sessions, Show, Stale, Strip, Who } from '../wire.js';
import { counted, localTime, pathEnd, plural, rangesOf } from '../words.js';

const MOST_VERSIONS = 1_000;

type Unrecorded = Authors['unrecorded'][number];

/** Maximum characters of a line that a search for it uses. */
const MOST_SEARCHED = 200;

/** Links to the calls that saw a line. */
const whereItStood = (line: string): string => from('search', { q: line.slice(0, MOST_SEARCHED) });

function useVersion(id: string, version: LoggedVersion | undefined) {
  const asked = version === undefined || version.state === 'removed' ? undefined : '/v1/show';
  return useAnswer<Show>(asked, { object: id, valid_time: version?.valid_time, tx: version?.tx_id });
}

function Compared({
  id,
  name,
  a,
  b,
}: {
  readonly id: string;
  readonly name: string;
  readonly a: LoggedVersion;
  readonly b: LoggedVersion;
}) {
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
              title={`${pathEnd(name, 60)}: version ${a.number} → ${b.number}`}
            />
          )}
        </AnswerBox>
      )}
    </AnswerBox>
  );
}

function Text({ id, name, version }: { readonly id: string; readonly name: string; readonly version: LoggedVersion }) {
  const answer = useVersion(id, version);
  if (version.state === 'removed') return <p class="note">This version was removed from the database.</p>;
  return (
    <AnswerBox answer={answer}>
      {({ text, whole, object }) => (
        <>
          {text === null ? (
            <p class="note">
              {version.state === 'stub'
                ? 'The whole text of this version was not recorded: no call read all of it.'
                : `This version has no text: ${VERSION_STATES[version.state] || 'nothing was read'}.`}
            </p>
          ) : (
            <TextView
              text={text}
              label={`${name}, version ${version.number}`}
              title={`${pathEnd(name, 60)}, version ${version.number}`}
              file={name.split('/').at(-1)}
              lineHref={whereItStood}
            />
          )}
          {!whole && <p class="soft">Only the beginning and the end of the text were kept.</p>}
          <details class="ids">
            <summary class="soft">Ids and hashes</summary>
            <TextView text={JSON.stringify({ ...object, content: undefined }, null, 2)} label="The document" />
          </details>
        </>
      )}
    </AnswerBox>
  );
}

/** Calls of this session that changed the file on a stale copy. */
function StaleCalls({ id }: { readonly id: string }) {
  const { session } = place.value.of;
  const answer = useQuestion<Stale>(session === undefined ? undefined : '/v1/stale', { session });
  const own = answer.state === 'there' ? answer.value.calls.filter(({ object }) => object === id) : [];
  if (own.length === 0) return null;
  return (
    <div class="verdict bad" role="status">
      <strong>{plural(own.length, 'call')} acted on a stale copy:</strong>
      <ul class="plain">
        {own.map(({ step, name, seen, was, by }) => (
          <li key={step}>
            <a href={from('conversation', { step })}>{oneLine(name, 80)}</a> had seen version {seen.number}. On the disk
            was version {was.number}, by <ActorLink by={by} />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Where a version was seen. */
interface Sighted {
  readonly who: Who;
  readonly session: string | undefined;
  readonly strip: Strip | undefined;
}

/** Returns the numbers of the model calls that had a version in full. */
function seenBy({ tx_id: tx, valid_time: at }: LoggedVersion, { who, session, strip }: Sighted): string {
  const own = who.sessions.find((sighting) => sighting.session === session);
  const seen = own?.versions.find((one) => one.tx_id === tx && one.valid_time === at);
  if (seen === undefined || strip === undefined) return '';
  const calls = strip.calls.flatMap(({ step }, i) =>
    seen.steps.some(({ first, last }) => first <= step && step <= last) ? [i + 1] : [],
  );
  return rangesOf(calls);
}

interface UnrecordedProps {
  readonly change: Unrecorded;
  readonly parts: string;
  /** Whether the table has a column of the calls that had a version in full. */
  readonly wasWhole: boolean;
  readonly strip: Strip | undefined;
}

/** Shows a change of the file by a call whose text was not recorded. */
function UnrecordedRow({ change, parts, wasWhole, strip }: UnrecordedProps) {
  return (
    <tr>
      <td data-name="Version">
        <span class="soft">
          {change.is_sure ? 'changed' : 'perhaps changed'}, text not recorded{parts !== '' && `; ${parts}`}
        </span>
      </td>
      <td data-name="By">
        <ActorLink by={change.by} />
      </td>
      <td class="nowrap" data-name="Since">
        {localTime(change.at)}
        {byCall(strip, change.step)}
      </td>
      <td colSpan={wasWhole ? 3 : 2} />
    </tr>
  );
}

function History({
  id,
  name,
  versions,
}: {
  readonly id: string;
  readonly name: string;
  readonly versions: readonly LoggedVersion[];
}) {
  const { a, b, session, step } = place.value.of;
  const strip = useSessionStrip();
  const who = useQuestion<Who>('/v1/who', { object: id });
  const isFile = strip.state === 'there' && strip.value.bands.some((band) => band.id === id && band.type === 'file');
  const authors = useQuestion<Authors>(isFile ? '/v1/authors' : undefined, { session, object: id });
  const calls = authors.state === 'there' ? authors.value.calls : [];
  const unrecorded = authors.state === 'there' ? authors.value.unrecorded.toReversed() : [];
  const actedOf = ({ tx_id: tx, valid_time: at }: LoggedVersion) =>
    authors.state === 'there'
      ? authors.value.versions.find((one) => one.tx_id === tx && one.valid_time === at)
      : undefined;
  /**
   * Returns the changes without a recorded text between a version and the next one, newest first.
   */
  const changedAfter = (version: LoggedVersion | undefined, later: LoggedVersion | undefined) =>
    unrecorded.filter(
      ({ at }) => (version === undefined || at >= version.valid_time) && (later === undefined || at < later.valid_time),
    );
  const there = strip.state === 'there' ? strip.value : undefined;
  const number = step === undefined || there === undefined ? undefined : callNumber(there, Number(step));
  const call = number === undefined ? undefined : there?.calls[number - 1];
  const isLater = ({ valid_time: at }: LoggedVersion): boolean => call !== undefined && at > call.at;
  const right =
    versions.find(({ number }) => String(number) === b) ?? versions.find((one) => !isLater(one)) ?? versions[0];
  const before = versions.find(({ number, state }) => number === (right?.number ?? 0) - 1 && state === 'text');
  const left = a === 'none' ? undefined : (versions.find(({ number }) => String(number) === a) ?? before);
  const wholeAt = versions.map((version) =>
    who.state === 'there' ? seenBy(version, { who: who.value, session, strip: there }) : '…',
  );
  const wasWhole = wholeAt.some((calls) => calls !== '');
  const unrecordedRows = (version: LoggedVersion | undefined, later: LoggedVersion | undefined) =>
    changedAfter(version, later).map((change, i, all) => {
      const until = all[i - 1]?.at ?? later?.valid_time;
      const parts = partsRead({ since: change.at, until, calls, strip: there });
      return <UnrecordedRow key={change.step} change={change} parts={parts} wasWhole={wasWhole} strip={there} />;
    });
  const others = who.state === 'there' ? who.value.sessions.filter((sighting) => sighting.session !== session) : [];
  const listed = useAnswer<Sessions>(others.length > 0 && isServed() ? '/v1/sessions' : undefined);
  const titles = new Map(
    listed.state === 'there' ? listed.value.sessions.map(({ id: one, title }) => [one, title]) : [],
  );
  return (
    <>
      <div class="wide">
        <table class="versions stack">
          <thead>
            <tr>
              <th>Version</th>
              <th>By</th>
              <th>Since</th>
              {wasWhole && <th>In full at calls</th>}
              <th class="number">Characters</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {versions.map((version, i) => {
              const acted = actedOf(version);
              return (
                <Fragment key={version.number}>
                  {unrecordedRows(version, versions[i - 1])}
                  <tr class={version === right ? 'chosen' : ''}>
                    <td data-name="Version">
                      {version.number} {isLater(version) && <span class="chip">after call {number}</span>}{' '}
                      <span class="soft">
                        {recordedPart(version, {
                          until: changedAfter(version, versions[i - 1]).at(-1)?.at ?? versions[i - 1]?.valid_time,
                          calls,
                          strip: there,
                        })}
                        {acted?.back != null && `back to version ${acted.back}`}
                      </span>
                    </td>
                    <td data-name="By">
                      {(version.state !== 'stub' || acted?.by.kind !== 'unknown') && <ActorLink by={acted?.by} />}
                    </td>
                    <td class="nowrap" data-name="Since">
                      {localTime(version.valid_time)}
                      {acted?.by.step != null && acted.by.session === session && byCall(there, acted.by.step)}
                    </td>
                    {wasWhole && <td data-name="In full at calls">{wholeAt[i]}</td>}
                    <td class="number" data-name="Characters">
                      {version.state === 'text' && counted(version.chars)}
                    </td>
                    <td class="number">
                      <button type="button" onClick={() => refine({ a: undefined, b: version.number })}>
                        Show <span class="hidden">version {version.number}</span>
                      </button>
                    </td>
                  </tr>
                </Fragment>
              );
            })}
            {unrecordedRows(undefined, versions.at(-1))}
          </tbody>
        </table>
      </div>
      <CallsOfFile calls={calls} strip={there} />
      <div class="filters">
        {(
          [
            ['a', 'Compare version', left, 'none'],
            ['b', 'with version', right, undefined],
          ] as const
        ).map(([field, label, value, none]) => (
          <label key={field}>
            {label}{' '}
            <select value={value?.number ?? none} onChange={(event) => refine({ [field]: event.currentTarget.value })}>
              {none !== undefined && <option value={none}>none: only the text</option>}
              {versions.map(({ number }) => (
                <option key={number} value={number}>
                  {number}
                </option>
              ))}
            </select>
          </label>
        ))}
      </div>
      {right !== undefined &&
        (left === undefined || left === right ? (
          <Text id={id} name={name} version={right} />
        ) : (
          <>
            <Compared id={id} name={name} a={left} b={right} />
            <details>
              <summary>All of version {right.number}</summary>
              <Text id={id} name={name} version={right} />
            </details>
          </>
        ))}
      {others.length > 0 && (
        <section aria-label="Other sessions">
          <h2>Other sessions that saw it</h2>
          <ul class="plain">
            {others.map((sighting) => (
              <li key={sighting.session}>
                <a
                  href={from('conversation', {
                    session: sighting.session,
                    tx: undefined,
                    step: sighting.known_from.step,
                  })}
                  title={oneLine(sighting.session)}
                >
                  {oneLine(titles.get(sighting.session) || sighting.session, 100)}
                </a>{' '}
                <span class="soft">
                  since turn {sighting.known_from.turn}; in full in {plural(sighting.active.length, 'turn')}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** Returns the name of an object: from the session's strip, or from its newest version. */
function useName(id: string, strip: Strip | undefined): string {
  const band = strip?.bands.find((one) => one.id === id);
  const shown = useQuestion<Show>(band === undefined && strip !== undefined ? '/v1/show' : undefined, { object: id });
  if (band !== undefined) return band.name;
  return shown.state === 'there' ? (shown.value.version.display ?? id) : id;
}

/** Shows a file or call: its versions, their authors, and the model calls that had them. */
function Shown({ id }: { readonly id: string }) {
  const strip = useStrip();
  const there = strip.state === 'there' ? strip.value : undefined;
  const name = useName(id, there);
  const band = there?.bands.find((one) => one.id === id);
  const state = band?.changes.at(-1)?.state;
  const answer = useQuestion<Log>('/v1/log', { object: id, limit: MOST_VERSIONS });
  const isForeign = useForeign(there);
  const made = band?.type === 'toolcall' ? band.changes[0]?.step : undefined;
  return (
    <>
      <div class="row call-head">
        <h2 title={oneLine(name)}>{oneLine(pathEnd(name, 90))}</h2>
        {state !== undefined && (
          <span class="chip">at the last call {state === 'out' ? STATES.out : `${STATES[state]} in the context`}</span>
        )}
        {made !== undefined && there !== undefined && (
          <a href={from('conversation', { step: made })}>made by call {counted(makerOf(there, made))}</a>
        )}
        <span class="spread" />
        {state !== undefined && isServed() && isForeign === false && <SetVerbs object={id} name={name} state={state} />}
      </div>
      {state !== undefined && isServed() && isForeign === true && <NoVerbs />}
      <StaleCalls id={id} />
      <AnswerBox answer={answer}>
        {({ versions }) => <History key={id} id={id} name={name} versions={versions ?? []} />}
      </AnswerBox>
    </>
  );
}

/** Shows an object of the address. */
export function ObjectView() {
  const { id } = place.value.of;
  return (
    <>
      <h1 class="hidden">File</h1>
      {id === undefined ? (
        <p class="note">
          Choose a file in <a href={from('files')}>Files</a>.
        </p>
      ) : (
        <Shown key={id} id={id} />
      )}
    </>
  );
}
