import { defined } from '../../../values/defined.js';
import type { EntryOf, ShownFile } from '../neutral-session.js';

type Moment = ShownFile['moment'];

/** All of a file as evidence. */
export function wholeFile(path: string, text: string, moment: Moment): ShownFile {
  return { path, moment, text, whole: true };
}

/** A file of which only the name is shown: it is there afterwards, with an unknown text. */
export function namedFile(path: string): ShownFile {
  return { path, moment: 'after', whole: false };
}

/** What a text shows of a file after a call: where it begins, and whether it is all of the file. */
export interface TextRange {
  readonly start: number;
  readonly whole: boolean;
  readonly total?: number | undefined;
}

/** A text out of a file as evidence. */
export function fileText(path: string, text: string, { start, whole, total }: TextRange): ShownFile {
  return { path, moment: 'after', text, whole, start_line: start, ...defined({ total_lines: total }) };
}

/** The evidence of files that a result or an event carries; absent fields where nothing is shown. */
export type FileEvidence = Pick<EntryOf<'result'>, 'files' | 'listed' | 'truncated'>;

/** Files, listed paths and the mark of a cut as fields of an entry. */
export function fileEvidence(files: readonly ShownFile[], listed?: readonly string[]): FileEvidence {
  return { ...(files.length === 0 ? {} : { files: [...files] }), ...(listed === undefined ? {} : { listed: [...listed] }) };
}

/** A hunk of a patch: its lines with their marks (` `, `-`, `+`), and where it begins before and after. */
export interface PatchHunk {
  readonly oldStart: number;
  readonly newStart: number;
  readonly lines: readonly string[];
}

/** The pieces of a file that a hunk shows, before and after the patch; `movedTo` is the path of the file afterwards. */
export function hunkPieces(path: string, { oldStart, newStart, lines }: PatchHunk, movedTo = path): readonly ShownFile[] {
  const textWithout = (mark: string): string | undefined => {
    const kept = lines.filter((line) => /^[-+ ]/.test(line) && !line.startsWith(mark)).map((line) => line.slice(1));
    return kept.length === 0 ? undefined : kept.join('\n');
  };
  const pieces = [
    { path, moment: 'before' as const, start_line: oldStart, text: textWithout('+') },
    { path: movedTo, moment: 'after' as const, start_line: newStart, text: textWithout('-') },
  ];
  return pieces.flatMap(({ text, ...piece }) => (text === undefined || piece.start_line < 1 ? [] : [{ ...piece, whole: false, text }]));
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** The hunks of a unified diff of one file. */
export function unifiedHunks(diff: string): readonly PatchHunk[] {
  const hunks: { oldStart: number; newStart: number; lines: string[] }[] = [];
  for (const line of diff.split('\n')) {
    const header = HUNK.exec(line);
    if (header !== null) hunks.push({ oldStart: Number(header[1]), newStart: Number(header[2]), lines: [] });
    else hunks.at(-1)?.lines.push(line);
  }
  return hunks;
}
