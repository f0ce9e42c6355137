import type { ListingFormat } from '../../foreign-tools/tool-table.js';
import type { FileAct } from './file-act.js';
import type { ShellWord } from './shell-syntax.js';

/**
 * The range of a file's lines that a command prints, from 1. Both ends are inclusive. An undefined
 * end is open.
 */
export interface LineRange {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** An effect that a command's words show. Paths are written as in the script. */
export type ShellAct =
  /** Prints a file, or a range of it. */
  | { readonly kind: 'show'; readonly path: string; readonly range: LineRange | undefined; readonly exact: boolean }
  /** Prints names of files, which may be relative to `folder`. */
  | {
      readonly kind: 'list';
      readonly format: ListingFormat;
      readonly folder: string;
      readonly targets: readonly string[];
    }
  /** Effects that do not depend on the output. */
  | Exclude<FileAct, { kind: 'show' | 'list' }>;

/** The effects of a command or pipeline, and whether it prints. */
export interface CommandActs {
  readonly acts: readonly ShellAct[];
  readonly prints: boolean;
}

/** The words of a command without its name. */
export type Words = readonly ShellWord[];
/** Returns the effects of a command from its words, and from its input if that is known. */
export type CommandReader = (words: Words, input?: string) => CommandActs;

/** No effect on files and no output. */
export const SILENT: CommandActs = { acts: [], prints: false };
/** No effect on files. */
export const PRINTS: CommandActs = { acts: [], prints: true };
/** Any effect is possible. */
export const ANYTHING: CommandActs = { acts: [{ kind: 'anything' }], prints: true };

/** Returns whether a word that is known matches. */
export const some = (words: Words, pattern: RegExp): boolean =>
  words.some((word) => word !== undefined && pattern.test(word));
/** Returns the words that are known. */
export const known = (words: Words): readonly string[] => words.filter((word) => word !== undefined);
/** Returns the effects of a command that reads files and prints something other than their text. */
export const reads = (words: Words): CommandActs => ({
  acts: known(words).map((path) => ({ kind: 'name', path })),
  prints: true,
});

/** Returns one effect for each of the files. If a name is unknown, any file may be affected. */
export function toEach(files: Words, prints: boolean, act: (path: string) => ShellAct): CommandActs {
  return files.includes(undefined) ? ANYTHING : { acts: known(files).map(act), prints };
}

/** Returns the effects of a command that changes files in an unknown way. */
export const changes = (files: Words, prints: boolean): CommandActs =>
  toEach(files, prints, (path) => ({ kind: 'change', path }));
