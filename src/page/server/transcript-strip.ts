import type { SessionRequest } from '../../history/rebuild/session-requests.js';
import type { TranscriptEntries, TranscriptEntry } from '../../history/rebuild/transcript-entries.js';
import { type Presence, type Presences, presentAt } from '../../history/rebuild/transcript-presence.js';
import type { BandState, Ways } from '../../history/search/exposure.js';
import type { ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { SessionCall } from '../../review/ask/session-calls.js';
import type { StripCall } from './strip-call.js';

/** The lengths of a transcript's texts, in UTF-16 units. */
export interface TranscriptLengths {
  readonly prompt: number;
  readonly calls: ReadonlyMap<ObjectId, Pick<SessionCall, 'tool' | 'args' | 'chars'>>;
}

/** Returns the length of the result of a step's call. */
const resultChars = ({ call }: Step, { calls }: TranscriptLengths): number =>
  call === undefined ? 0 : (call.answer?.chars ?? calls.get(call.id)?.chars ?? 0);

/** Returns the length of an entry as the model saw it. */
function lengthOf({ kind, step }: TranscriptEntry, lengths: TranscriptLengths): number {
  const { message, call, event } = step;
  if (kind === 'summary') return event?.detail?.length ?? 0;
  if (kind === 'message') return (message?.role.length ?? 0) + 2 + (message?.text.length ?? 0);
  const made = call === undefined ? undefined : lengths.calls.get(call.id);
  if (made === undefined) return 0;
  return made.tool.length + 1 + JSON.stringify(made.args).length + resultChars(step, lengths);
}

/** Builds the columns of requests that a transcript shows, with the sizes of their sections. */
export function transcriptColumns(
  requests: readonly SessionRequest[],
  { entries }: TranscriptEntries,
  lengths: TranscriptLengths,
): ReadonlyMap<SessionRequest, StripCall> {
  const changes = entries.flatMap((entry) => {
    const { step, until, replaced } = entry;
    const section = entry.kind === 'call' ? ('active' as const) : ('chat' as const);
    let [chars, result] = [lengthOf(entry, lengths), resultChars(step, lengths)];
    const found = [{ step: step.seq, section, chars }];
    for (const { from, text } of replaced) {
      found.push({ step: from, section, chars: text.length - result });
      chars += text.length - result;
      result = text.length;
    }
    return Number.isFinite(until) ? [...found, { step: until, section, chars: -chars }] : found;
  });
  changes.sort((a, b) => a.step - b.step);
  const sums = { chat: 0, active: 0 };
  let next = 0;
  const columns = new Map<SessionRequest, StripCall>();
  for (const request of requests) {
    const end = request.call?.step ?? request.step;
    for (let change = changes[next]; change !== undefined && change.step <= end; change = changes[next]) {
      sums[change.section] += change.chars;
      next += 1;
    }
    const { kind, turn, step, at, usage } = request;
    const sections = [
      { name: 'system', chars: lengths.prompt },
      { name: 'chat', chars: sums.chat },
      { name: 'active', chars: sums.active },
    ].filter(({ chars }) => chars > 0);
    columns.set(request, {
      kind,
      turn,
      step,
      at: new Date(at),
      chars: lengths.prompt + sums.chat + sums.active,
      sections,
      ...(usage === undefined ? {} : { usage }),
    });
  }
  return columns;
}

const STATES: Readonly<Record<'whole' | 'part', BandState>> = { whole: 'active', part: 'part' };

function wayOf(presences: readonly Presence[]): readonly { readonly step: number; readonly state: BandState }[] {
  const borders = new Set(presences.flatMap(({ from, until }) => (Number.isFinite(until) ? [from, until] : [from])));
  const way: { step: number; state: BandState }[] = [];
  for (const step of [...borders].sort((a, b) => a - b)) {
    const here = presentAt(presences, step);
    const state = here === undefined ? 'out' : STATES[here];
    if (way.at(-1)?.state !== state) way.push({ step, state });
  }
  return way;
}

/**
 * Returns the states of each object over the steps of a transcript, in the order of discovery. A
 * request that only names an object does not count as having it.
 */
export function transcriptWays(presences: Presences, steps: readonly Step[]): Ways {
  const ways = new Map<ObjectId, readonly { readonly step: number; readonly state: BandState }[]>();
  for (const { seq, call, changes } of steps) {
    for (const id of [...(call === undefined ? [] : [call.id]), ...(changes.index ?? [])]) {
      if (ways.has(id)) continue;
      const own = presences.get(id);
      ways.set(id, own === undefined ? [{ step: seq, state: 'out' }] : wayOf(own));
    }
  }
  return ways;
}
