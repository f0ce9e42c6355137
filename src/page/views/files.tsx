import { useMemo, useState } from 'preact/hooks';
import { ownMember } from '../../values/own-member.js';
import { act, actionPath } from '../act.js';
import { ActorLink } from '../actor.js';
import { AnswerBox } from '../answer-box.js';
import { isServed } from '../ask.js';
import { askedStep, callNumber, useQuestion, useStrip } from '../calls.js';
import { command } from '../command.js';
import { from, place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import { StepByStep } from '../step-by-step.js';
import { CopyButton } from '../text-view.js';
import type { FilesCopied, RestorePlan, Stale, Strip, StripBand } from '../wire.js';
import { counted, pathEnd, plural } from '../words.js';

type State = RestorePlan['files'][number]['state'];

const STATES: Readonly<Record<State, { readonly name: string; readonly tone: 'good' | 'warn' | 'bad' | '' }>> = {
  same: { name: 'as the agent had it', tone: 'good' },
  changed: { name: 'another version', tone: 'warn' },
  'newer-outside': { name: 'changed since, outside the recorded calls', tone: 'warn' },
  missing: { name: 'gone', tone: 'bad' },
  'absent-then': { name: 'was deleted then', tone: 'warn' },
  'read-in-part': { name: 'read in part, never whole', tone: '' },
  'never-read': { name: 'not read by then', tone: '' },
  'not-recorded': { name: 'changed, text not recorded', tone: '' },
  'not-kept': { name: 'only its hash was kept', tone: '' },
  'outside-roots': { name: 'outside the allowed folders', tone: '' },
  unreachable: { name: 'cannot be reached', tone: '' },
  'not-regular': { name: 'no longer a regular file', tone: 'bad' },
};

/** The reasons why a file cannot be compared with the disk, in words. */
const REASONS: Readonly<Record<string, string>> = {
  'mount-absent': 'its folder is not mounted here',
  'foreign-filesystem': 'on another machine',
  'no-permission': 'no permission to read it',
  io: 'the disk failed',
  loop: 'its symbolic links form a loop',
  'invalid-path': 'its path is not valid here',
};

/** Replaces the reason code at the end of an obstacle by words. */
const inWords = (obstacle: string): string =>
  obstacle.replace(/ \(([a-z-]+)\)$/, (told, why: string) => {
    const words = ownMember(REASONS, why);
    return words === undefined ? told : ` (${words})`;
  });

/** Maximum number of obstacles that are listed. A fold has the rest. */
const MOST_OBSTACLES = 5;

function CopyTo({ plan, call }: { readonly plan: RestorePlan; readonly call: number }) {
  const [to, setTo] = useState(`${plan.session}-call-${call}`);
  const { session, step } = plan;
  const had = plan.files.filter((file) => file.had !== null).length;
  if (had === 0) return <p class="soft">The agent had read no file then, so there is nothing to write.</p>;
  return (
    <div class="row">
      <label>
        New folder <input value={to} onInput={(event) => setTo(event.currentTarget.value)} />
      </label>
      <StepByStep<number, FilesCopied>
        key={to}
        label="Write the files there"
        name="Write the files there, into a new folder"
        ask={() => Promise.resolve(had)}
        run={() => () => act<FilesCopied>(actionPath(session, 'restore'), { at: `step:${step}`, to })}
        renderPreview={(files) =>
          `${plural(files, 'file')} as the agent had them go into the new folder ${oneLine(to, 120)}` +
          `${to.startsWith('/') ? '' : ', below the folder in which the server was started'}. ` +
          'Nothing there is overwritten.'
        }
        renderResult={({ folder, written, not_kept: left }) => (
          <>
            {plural(written.length, 'file')} in <code>{oneLine(folder, 200)}</code>
            {left.length > 0 && `; the text of ${counted(left.length)} was not recorded`}.
          </>
        )}
      />
    </div>
  );
}

/** Restores files: shows obstacles, the restore into a folder, and the command for in place. */
function PutBack({ plan, call }: { readonly plan: RestorePlan; readonly call: number }) {
  const restore = command('restore', `${plan.session}@step:${plan.step}`, '--apply', '--in-place');
  return (
    <section class="card" aria-label="Put them back">
      <h2>Put them back as they were at call {counted(call)}</h2>
      {plan.in_the_way.length > 0 ? (
        <div class="verdict warn">
          <details open={plan.in_the_way.length <= MOST_OBSTACLES}>
            <summary>
              <strong>{plural(plan.in_the_way.length, 'obstacle')} to putting them back in place</strong>
            </summary>
            <ul class="plain" aria-label="In the way">
              {plan.in_the_way.map((why) => (
                <li key={why}>{oneLine(inWords(why), 300)}</li>
              ))}
            </ul>
          </details>
        </div>
      ) : (
        <p class="soft">Nothing is in the way.</p>
      )}
      <CopyTo plan={plan} call={call} />
      <p>
        Only the command line overwrites the files themselves. It keeps what it replaces, so this can be undone:{' '}
        <code>{restore}</code> <CopyButton text={() => restore} label="Copy the command" />
      </p>
    </section>
  );
}

function StaleCalls({ stale }: { readonly stale: Stale }) {
  const { calls, outside, verdict } = stale;
  return (
    <>
      {calls.length > 0 && (
        <section class="verdict bad" aria-label="Stale copies">
          <strong>{plural(calls.length, 'call')} changed a file whose newest version the agent had not seen</strong>
          <ul class="plain">
            {calls.slice(0, 20).map(({ step, name, object, file, seen, was, by, failed }) => (
              <li key={`${step} ${object}`}>
                <a href={from('conversation', { step })}>{oneLine(name, 80)}</a>
                {failed && ' (failed)'}: had seen version {seen.number} of{' '}
                <a href={from('object', { id: object, a: seen.number, b: was.number })}>{oneLine(pathEnd(file, 60))}</a>
                , on the disk was version {was.number}, by <ActorLink by={by} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {verdict !== '' && <p class={outside.length > 0 ? 'verdict warn' : 'soft'}>{verdict}</p>}
      {outside.length > 0 && (
        <ul class="plain">
          {outside.slice(0, 20).map(({ step, name, object, file, lines, why }) => (
            <li key={`${step} ${object}`} title={oneLine(why, 300)}>
              <a href={from('object', { id: object })}>{oneLine(pathEnd(file, 60))}</a>
              {lines !== null && ` lines ${lines.from}–${lines.to}`}, before{' '}
              <a href={from('conversation', { step })}>{oneLine(name, 80)}</a>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

interface FileRow {
  readonly id: string;
  readonly name: string;
  readonly band: StripBand | undefined;
  /** Number of calls that changed it. Until known, of versions during the session. */
  readonly changes: number;
  readonly plan: RestorePlan['files'][number] | undefined;
  readonly stale: number;
}

/** Joins the facts about each file of a session. */
function rowsOf(strip: Strip, plan: RestorePlan | undefined, stale: Stale | undefined): readonly FileRow[] {
  const planned = new Map(plan?.files.map((file) => [file.id, file]));
  const bands = strip.bands.filter(({ type }) => type === 'file');
  const known = new Set(bands.map(({ id }) => id));
  const changed = new Map(stale?.changed.map(({ object, calls }) => [object, calls]));
  const rowOf = (id: string, name: string, band: StripBand | undefined): FileRow => {
    const versions = strip.marks.filter(({ kind, object }) => kind === 'version' && object === id);
    return {
      id,
      name,
      band,
      changes: stale === undefined ? versions.length : (changed.get(id) ?? 0),
      plan: planned.get(id),
      stale: stale?.calls.filter(({ object }) => object === id).length ?? 0,
    };
  };
  const rows = [
    ...bands.map((band) => rowOf(band.id, band.name, band)),
    ...(plan?.files ?? []).filter(({ id }) => !known.has(id)).map(({ id, path }) => rowOf(id, path, undefined)),
  ];
  return rows.toSorted((a, b) => b.stale - a.stale || b.changes - a.changes || (a.name < b.name ? -1 : 1));
}

const UNCOMPARED: ReadonlySet<State> = new Set([
  'unreachable',
  'outside-roots',
  'read-in-part',
  'never-read',
  'not-recorded',
]);
const isCompared = ({ plan }: FileRow): boolean => plan !== undefined && !UNCOMPARED.has(plan.state);

const differs = ({ plan }: FileRow): boolean =>
  plan !== undefined && (STATES[plan.state].tone === 'warn' || STATES[plan.state].tone === 'bad');

/** Describes how a file differs from the disk, with the reason or the number of lines. */
function stateText({ state, why }: RestorePlan['files'][number]): string {
  const { name } = STATES[state];
  if (why === null) return name;
  return state === 'read-in-part' || state === 'not-recorded'
    ? `${name}: ${oneLine(why, 60)}`
    : (ownMember(REASONS, why) ?? name);
}

function Table({ rows, call }: { readonly rows: readonly FileRow[]; readonly call: number }) {
  const { q = '', differing } = place.value.of;
  const [most, setMost] = useState(100);
  const hasPlan = rows.some(({ plan }) => plan !== undefined);
  const found = rows.filter(
    (row) => row.name.toLowerCase().includes(q.toLowerCase()) && (differing === undefined || differs(row)),
  );
  return (
    <>
      <div class="filters">
        <label>
          <span class="hidden">Filter by name</span>
          <input
            type="search"
            placeholder="Filter by name"
            value={q}
            onInput={(event) => refine({ q: event.currentTarget.value })}
          />
        </label>
        {hasPlan && (
          <label>
            <input
              type="checkbox"
              checked={differing !== undefined}
              onChange={(event) => refine({ differing: event.currentTarget.checked ? 1 : undefined })}
            />{' '}
            Only those that differ from the disk
          </label>
        )}
        <span class="soft">
          {plural(found.length, 'file')}, {counted(found.filter(({ changes }) => changes > 0).length)} edited in the
          whole session
        </span>
      </div>
      {differing !== undefined && found.length === 0 && (
        <p class="note">
          No file is known to differ. {counted(rows.filter((row) => !isCompared(row)).length)} of{' '}
          {plural(rows.length, 'file')} could not be compared with the disk.
        </p>
      )}
      <div class="wide">
        <table class="files stack">
          <thead>
            <tr>
              <th>File</th>
              <th class="number">Calls that edited it, whole session</th>
              {hasPlan && <th>On the disk, beside call {counted(call)}</th>}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, most).map((row) => (
              <tr key={row.id}>
                <td>
                  <a href={from('object', { id: row.id })} title={oneLine(row.name)}>
                    {oneLine(pathEnd(row.name, 70))}
                  </a>{' '}
                  {row.stale > 0 && <span class="chip bad">{plural(row.stale, 'call')} on a stale copy</span>}
                </td>
                <td class="number" data-name="Calls that edited it, whole session">
                  {row.changes === 0 ? <span class="soft">0</span> : counted(row.changes)}
                </td>
                {hasPlan && (
                  <td data-name="On the disk">
                    {row.plan === undefined ? (
                      <span class="soft">not met yet</span>
                    ) : (
                      <span class={`chip ${STATES[row.plan.state].tone}`}>{stateText(row.plan)}</span>
                    )}
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {found.length > most && (
        <button type="button" onClick={() => setMost(found.length)}>
          Show {counted(found.length - most)} more
        </button>
      )}
    </>
  );
}

function Files({ strip }: { readonly strip: Strip }) {
  const { session } = place.value.of;
  const step = askedStep();
  const at = step === undefined ? undefined : `step:${step}`;
  const planned = useQuestion<RestorePlan>(isServed() ? '/v1/restore' : undefined, { session, at });
  const staleCalls = useQuestion<Stale>('/v1/stale', { session });
  const plan = planned.state === 'there' ? planned.value : undefined;
  const stale = staleCalls.state === 'there' ? staleCalls.value : undefined;
  const rows = useMemo(() => rowsOf(strip, plan, stale), [strip, plan, stale]);
  const call = callNumber(strip, step ?? strip.calls.at(-1)?.step ?? 0);
  const counts = Object.entries(plan?.counts ?? {}).filter(([, count]) => count > 0);
  return (
    <>
      {stale !== undefined && <StaleCalls stale={stale} />}
      {counts.length > 0 && (
        <p>
          Beside the disk at call {counted(call)}:{' '}
          {counts.map(([state, count]) => `${counted(count)} ${STATES[state as State]?.name ?? state}`).join(', ')}.
        </p>
      )}
      <Table rows={rows} call={call} />
      {isServed() && <AnswerBox answer={planned}>{(there) => <PutBack plan={there} call={call} />}</AnswerBox>}
    </>
  );
}

/** Shows the files of a session: their authors, stale copies, and how they differ from the disk. */
export function FilesView() {
  const strip = useStrip();
  return (
    <>
      <h1 class="hidden">Files</h1>
      <AnswerBox answer={strip}>{(there) => <Files strip={there} />}</AnswerBox>
    </>
  );
}
