import { patchedPaths } from '../../foreign-tools/patch-envelope.js';
import { textArgument } from '../../foreign-tools/tool-arguments.js';
import { kindOfCall, type NamedCall } from '../../history/ask/call-names.js';
import { diffTexts } from '../../history/ask/text-diff.js';

/** Lines of a change, as in a unified diff. */
export interface EditHunk {
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
    // A replaced text is a part of a file, so its missing line end says nothing.
    lines: lines.flatMap(({ kind, text }) => (kind === 'note' ? [] : [`${SIGNS[kind]}${text}`])).slice(0, MOST_LINES),
  }));
}

/** Returns the lines of a patch that a call gives, as one hunk. */
function patchHunk(text: string): readonly EditHunk[] {
  const lines = text.split('\n').filter((line) => /^[-+ ]/.test(line) && !/^(?:---|\+\+\+)/.test(line));
  const removed = lines.filter((line) => line.startsWith('-')).length;
  const added = lines.filter((line) => line.startsWith('+')).length;
  const same = lines.length - removed - added;
  const shown = lines.slice(0, MOST_LINES);
  return [{ oldStart: 0, oldLines: same + removed, newStart: 0, newLines: same + added, lines: shown }];
}

/**
 * Returns the change that a call's arguments describe. Its line numbers count from the beginning of
 * the replaced text. Undefined for a call that changes no file by its arguments.
 */
export function editDiff(call: NamedCall): readonly EditHunk[] | undefined {
  const kind = kindOfCall(call);
  const { args } = call;
  if (kind === 'write') {
    const content = textArgument(args, 'content');
    return content === undefined ? undefined : hunksOf('', content);
  }
  if (kind === 'edit') {
    const edits = Array.isArray(args.edits) ? (args.edits as readonly unknown[]) : [args];
    const found = edits.flatMap((edit) => {
      if (typeof edit !== 'object' || edit === null) return [];
      const [before, after] = [textArgument(edit as never, 'oldText'), textArgument(edit as never, 'newText')];
      return before === undefined && after === undefined ? [] : hunksOf(before ?? '', after ?? '');
    });
    return found.length === 0 ? undefined : found;
  }
  if (kind !== 'patch') return undefined;
  const text = textArgument(args, 'script') ?? (typeof args.patch === 'string' ? args.patch : '');
  return patchedPaths(text).length === 0 ? undefined : patchHunk(text);
}
