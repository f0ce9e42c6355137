import { structuredPatch } from 'diff';

/** A difference that takes more edits than this is not worth its lines. */
const MOST_EDITS = 1_000;
/** Lines around a change. */
const AROUND_CHANGE = 1;

/** The changed lines between two texts with their numbers; undefined where the text itself is shorter. */
export function changedLines(before: string, after: string): string | undefined {
  const patch = structuredPatch('', '', before, after, '', '', { context: AROUND_CHANGE, maxEditLength: MOST_EDITS });
  if (patch === undefined) return undefined;
  const text = patch.hunks
    .flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [`@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`, ...lines])
    .join('\n');
  return text.length < after.length ? text : undefined;
}

/** A file as a call read it again: what the request has of it, whole, and what it says now. */
export interface ReadAgain {
  readonly path: string;
  /** What the request calls the file. */
  readonly name: string;
  readonly before: string;
  readonly after: string;
  /** Whether the text before stands in a block of ours; else in what an earlier call answered. */
  readonly inBlock: boolean;
}

/** What stands in the place of a text that the request has, or has an earlier version of; undefined where the text itself is shorter. */
export function readAgainText({ path, name, before, after, inBlock }: ReadAgain): string | undefined {
  const where = inBlock ? `in the block ACTIVE_CONTENT id=${name}` : 'in what your last whole read of it answered';
  if (before === after)
    return `[Palimpsest: ${path} is unchanged; its text stands above, ${where}. Read it once more to have it here again.]`;
  const changed = changedLines(before, after);
  return changed === undefined
    ? undefined
    : `[Palimpsest: ${path} has changed since its text above, ${where}. These are the changed lines with their numbers, the others are as they were. Read it once more to have all of it here.]\n${changed}`;
}
