import { textArgument } from '../../foreign-tools/tool-arguments.js';
import { isPatch, kindOfCall, type NamedCall, patchText } from '../../history/rebuild/call-names.js';
import { diffTexts } from '../../review/ask/text-diff.js';

/** Lines of a change, as in a unified diff. */
interface EditHunk {
  readonly oldStart: number;
  readonly oldLines: number;
  readonly newStart: number;
  readonly newLines: number;
  readonly lines: readonly string[];
}

const MOST_LINES = 400;
const SIGNS = { same: ' ', added: '+', removed: '-' } as const;

function hunksOf(before: string, after: string): readonly EditHunk[] {
  const { hunks = [] } = diffTexts(before, after);
  return hunks.map(({ lines, ...hunk }) => ({
    ...hunk,
    // A replaced text is a part of a file, so a missing line end at its end means nothing.
    lines: lines.flatMap(({ kind, text }) => (kind === 'note' ? [] : [`${SIGNS[kind]}${text}`])).slice(0, MOST_LINES),
  }));
}

/** The beginning of hunks whose lines have no numbers in the file. */
const UNNUMBERED = { oldStart: 0, newStart: 0 };

/** Returns the hunks of a patch in a call's arguments. Such a patch has no line numbers. */
function patchHunks(text: string): readonly EditHunk[] {
  let left = MOST_LINES;
  return text.split(/^(?:@@|\*\*\* \w+ File:).*$/m).flatMap((part): readonly EditHunk[] => {
    const lines = part.split('\n').filter((line) => /^[-+ ]/.test(line) && !/^(?:---|\+\+\+) /.test(line));
    const shown = lines.slice(0, left);
    if (shown.length === 0) return [];
    left -= shown.length;
    const count = (sign: string): number => lines.filter((line) => line.startsWith(sign)).length;
    const [removed, added, same] = [count('-'), count('+'), count(' ')];
    return [{ ...UNNUMBERED, oldLines: same + removed, newLines: same + added, lines: shown }];
  });
}

/**
 * Returns the change that a call's arguments describe. Only a write has line numbers, because the
 * arguments do not say where a replaced text begins. Undefined for a call that changes no file by
 * its arguments.
 */
export function editDiff(call: NamedCall): readonly EditHunk[] | undefined {
  const kind = kindOfCall(call);
  const { args } = call;
  if (kind === 'write') {
    const content = textArgument(args, 'content');
    return content === undefined ? undefined : hunksOf('', content);
  }
  const hasPatch = kind === 'edit' || kind === 'patch' || (kind === 'shell' && isPatch(call));
  const patch = hasPatch ? patchText(call) : undefined;
  if (patch !== undefined) return patchHunks(patch);
  if (kind === 'edit') {
    const edits = Array.isArray(args.edits) ? (args.edits as readonly unknown[]) : [args];
    const found = edits.flatMap((edit) => {
      if (typeof edit !== 'object' || edit === null) return [];
      const [before, after] = [textArgument(edit as never, 'oldText'), textArgument(edit as never, 'newText')];
      if (before === undefined && after === undefined) return [];
      return hunksOf(before ?? '', after ?? '').map((hunk) => ({ ...hunk, ...UNNUMBERED }));
    });
    return found.length === 0 ? undefined : found;
  }
  return undefined;
}
