/** Lines of a file that a read shows with another text than the previous read. */
export interface OtherLines {
  readonly path: string;
  readonly from: number;
  readonly to: number;
  /** Whether a command that may have changed any file ran between the two reads. */
  readonly isDoubted: boolean;
}

const SAID = /^(.+): lines (\d+)–(\d+) had another text when they were read before, and no recorded call names /;
const DOUBTED = '; commands of unknown effect ran between';

/** Formats the note of a call that read such lines. */
export const otherLinesNote = ({ path, from, to, isDoubted }: OtherLines): string =>
  `${path}: lines ${from}–${to} had another text when they were read before, and no recorded call names the file ` +
  `as changed since${isDoubted ? DOUBTED : ''}`;

/** Returns the lines of such a note; undefined for any other. */
export function otherLinesIn(note: string): OtherLines | undefined {
  const [, path, from, to] = SAID.exec(note) ?? [];
  if (path === undefined) return undefined;
  return { path, from: Number(from), to: Number(to), isDoubted: note.endsWith(DOUBTED) };
}
