import type { Sighting } from '../history/ask/seen-by.js';
import { ranges } from '../history/rebuild/timeline.js';
import type { Colours } from './output.js';
import { shownTime } from './print-basis.js';

/** One session that met an object. */
export function sightingLines(
  { session, known, touched, active, versions, isActive, isPinned }: Sighting,
  colours: Colours,
): readonly string[] {
  const now = [isActive ? 'active now' : 'not active now', ...(isPinned ? ['pinned'] : [])].join(', ');
  return [
    `${colours.yellow(`session ${session}`)} ${colours.dim(`(${now})`)}`,
    `  known from   turn ${known.turn}, step ${known.seq}, ${shownTime(known.at)}`,
    `  touched in   ${touched.length === 0 ? 'no turn' : `turns ${ranges(touched)}`}`,
    `  in context   ${active.length === 0 ? 'never in full' : `turns ${ranges(active)}`}`,
    ...versions.map(({ txId, validTime, turns }) => `  version      tx:${txId} of ${shownTime(validTime)} in turns ${ranges(turns)}`),
    '',
  ];
}
