import { from } from './place.js';
import { oneLine } from './shown-text.js';
import { makerOf } from './strip-layout.js';
import type { Authors, LoggedVersion, Strip } from './wire.js';
import { counted, plural } from './words.js';

/** Maximum calls that are listed, and parts that are named, before the reader asks for more. */
const [MOST_CALLS, MOST_PARTS] = [12, 4];

type FileCalls = Authors['calls'];

/** The label of each state of a version. */
export const VERSION_STATES: Readonly<Record<LoggedVersion['state'], string>> = {
  text: '',
  stub: 'found, not read',
  'not-text': 'not a text',
  deleted: 'deleted',
  removed: 'removed from the database',
};

const linesText = ({ lines }: FileCalls[number]): string =>
  lines === null ? '' : ` lines ${lines.from}–${lines.to ?? 'end'}`;

/** Names the model call that made a step. */
export const byCall = (strip: Strip | undefined, step: number): string =>
  strip === undefined ? '' : ` at call ${counted(makerOf(strip, step))}`;

/** The calls of a session in a stretch of time. */
interface Stretch {
  readonly since: string;
  readonly until: string | undefined;
  readonly calls: FileCalls;
  readonly strip: Strip | undefined;
}

/** Describes which parts of a file were read, and when: `read in part: lines 1–60 at call 4`. */
export function partsRead({ since, until, calls, strip }: Stretch): string {
  const parts = calls.filter(
    ({ lines, effect, at }) =>
      lines !== null && effect === 'read' && at >= since && (until === undefined || at < until),
  );
  if (parts.length === 0) return '';
  const named = parts.map((part) => `${linesText(part)}${byCall(strip, part.step)}`);
  const more = named.length > MOST_PARTS ? ` and ${counted(named.length - MOST_PARTS)} more` : '';
  return `read in part:${named.slice(0, MOST_PARTS).join(',')}${more}`;
}

/** Describes what is recorded of a version's text. */
export const recordedPart = ({ state, valid_time: since }: LoggedVersion, stretch: Omit<Stretch, 'since'>): string =>
  (state === 'stub' && partsRead({ since, ...stretch })) || VERSION_STATES[state];

/** The effects that the summary counts. The list of all files counts the first one, too. */
const COUNTED_EFFECTS: readonly (readonly [FileCalls[number]['effect'], string])[] = [
  ['changed', 'edited it'],
  ['changed by a command', 'changed it by a command'],
  ['perhaps changed', 'perhaps changed it'],
];

/**
 * Lists the calls of this session that named the file, including calls that recorded no version.
 */
export function CallsOfFile({ calls, strip }: { readonly calls: FileCalls; readonly strip: Strip | undefined }) {
  if (calls.length === 0) return null;
  const told = COUNTED_EFFECTS.flatMap(([effect, name]) => {
    const count = calls.filter((call) => call.effect === effect).length;
    return count === 0 ? [] : [`${counted(count)} ${name}`];
  });
  return (
    <details open={calls.length <= MOST_CALLS}>
      <summary>
        {plural(calls.length, 'call')} of this session named it{' '}
        <small>{told.length === 0 ? 'none changed it' : told.join(', ')}</small>
      </summary>
      <ul class="plain" aria-label="Calls of this session">
        {calls.map((call) => (
          <li key={call.step}>
            {call.effect}
            {linesText(call)} by <a href={from('conversation', { step: call.step })}>{oneLine(call.name, 100)}</a>{' '}
            {call.unanswered ? (
              <span class="chip warn">result not recorded</span>
            ) : (
              call.failed && <span class="chip bad">✗ failed</span>
            )}{' '}
            <span class="soft">
              turn {counted(call.turn)}
              {byCall(strip, call.step).replace(' at', ',')}
            </span>
            {call.sight !== null && <div class={call.sight.is_doubtful ? 'warn' : 'soft'}>{call.sight.sentence}</div>}
          </li>
        ))}
      </ul>
    </details>
  );
}
