import { structuredPatch } from 'diff';

/** With more edits than this, the changed lines are not worth showing. */
const MOST_EDITS = 1_000;
/** Lines of context around a change. */
const AROUND_CHANGE = 1;

/**
 * Returns the changed lines between two texts with their numbers; undefined if the whole new text
 * is shorter.
 */
export function changedLines(before: string, after: string): string | undefined {
  const patch = structuredPatch('', '', before, after, '', '', { context: AROUND_CHANGE, maxEditLength: MOST_EDITS });
  if (patch === undefined) return undefined;
  const text = patch.hunks
    .flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
      `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`,
      ...lines,
    ])
    .join('\n');
  return text.length < after.length ? text : undefined;
}

/** A file that a call read again: its text in the request, and its current text. */
export interface ReadAgain {
  readonly path: string;
  /** The file's name in the request. */
  readonly name: string;
  readonly before: string;
  readonly after: string;
  /** Whether the earlier text is in our block. Otherwise it is in the result of an earlier call. */
  readonly inBlock: boolean;
}

/**
 * Returns the text that replaces a read's result if the request already shows the file, perhaps in
 * an earlier version. Undefined if the result itself is shorter.
 */
export function readAgainText({ path, name, before, after, inBlock }: ReadAgain): string | undefined {
  const where = inBlock ? `in the block ACTIVE_CONTENT id=${name}` : 'in what your last whole read of it answered';
  if (before === after)
    return (
      `[Palimpsest: ${path} is unchanged; its text stands above, ${where}. ` +
      'Read it once more to have it here again.]'
    );
  const changed = changedLines(before, after);
  return changed === undefined
    ? undefined
    : `[Palimpsest: ${path} has changed since its text above, ${where}. ` +
        'These are the changed lines with their numbers, the others are as they were. ' +
        `Read it once more to have all of it here.]\n${changed}`;
}
