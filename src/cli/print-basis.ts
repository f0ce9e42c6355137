import type { Point } from '../history/rebuild/timeline.js';
import { reportedTime } from '../store/object-store.js';
import type { Basis } from '../xtdb/db-snapshot.js';
import { escapedLine } from './escape-text.js';
import type { Colours } from './output.js';

/** A time as it is printed everywhere: UTC, to the millisecond, as it can be given back. */
export const shownTime = (time: Date): string => time.toISOString();

/** Both clocks of a basis in words. */
export function basisText({ validTime, txId }: Basis): string {
  const known = txId === undefined ? 'no transaction' : `transaction ${txId}`;
  const time = reportedTime(validTime);
  return time === undefined ? `the newest versions known after ${known}` : `what was true at ${shownTime(time)}, as known after ${known}`;
}

/** Where a point is, in words. */
export function pointText({ place, basis }: Point): string {
  const where =
    place === undefined ? '' : `turn ${place.turn}, step ${place.seq} of session ${place.session}${place.isEnd ? ' (its end)' : ''}: `;
  return `${where}${basisText(basis)}`;
}

/** The lines that end an answer: what it holds at, and what it may lack. */
export function closingLines(text: string, notes: readonly string[], colours: Colours): readonly string[] {
  return [colours.dim(`# ${text}`), ...notes.map((note) => colours.yellow(`# ${escapedLine(note)}`))];
}
