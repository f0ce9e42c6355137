import type { ShownFile } from '../neutral-session.js';

/** A hunk of a patch: its lines with their marks (` `, `-`, `+`), and where it begins before and after. */
export interface PatchHunk {
  readonly oldStart: number;
  readonly newStart: number;
  readonly lines: readonly string[];
}

/** The pieces of a file that a hunk shows, before and after; `movedTo` is where the file is afterwards. */
export function hunkPieces(path: string, { oldStart, newStart, lines }: PatchHunk, movedTo = path): readonly ShownFile[] {
  const marked = lines.filter((line) => /^[-+ ]/.test(line));
  const piece = (at: string, moment: ShownFile['moment'], start: number, left: string): readonly ShownFile[] => {
    const kept = marked.filter((line) => !line.startsWith(left)).map((line) => line.slice(1));
    return start < 1 || kept.length === 0 ? [] : [{ path: at, moment, whole: false, start_line: start, text: kept.join('\n') }];
  };
  return [...piece(path, 'before', oldStart, '+'), ...piece(movedTo, 'after', newStart, '-')];
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
