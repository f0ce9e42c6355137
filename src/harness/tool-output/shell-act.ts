import type { ListingFormat } from '../../foreign-tools/tool-table.js';
import type { FileAct } from './file-act.js';
import type { ShellWord } from './shell-syntax.js';

/**
 * The lines of a file that a command prints, from 1. Both ends are inclusive; undefined is open.
 */
export interface LineRange {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** The effect of a shell command as far as its words show it. Paths are as in the script. */
export type ShellAct =
  /** Prints a file; all of it without a range. */
  | { readonly kind: 'show'; readonly path: string; readonly range: LineRange | undefined; readonly exact: boolean }
  /** Prints file names, relative to a folder if one is given. */
  | {
      readonly kind: 'list';
      readonly format: ListingFormat;
      readonly folder: string;
      readonly targets: readonly string[];
    }
  /** Effects that are independent of the output. */
  | Exclude<FileAct, { kind: 'show' | 'list' }>;

/** The effects of a command, or of a pipeline up to it, and whether it prints. */
export interface CommandActs {
  readonly acts: readonly ShellAct[];
  readonly prints: boolean;
}

/** The words of a command after its name. */
export type Words = readonly ShellWord[];
/** Returns a command's effects from its words, and from its input if that is known. */
export type CommandReader = (words: Words, input?: string) => CommandActs;

/** No effect on files and no output. */
export const SILENT: CommandActs = { acts: [], prints: false };
/** No effect on files. */
export const PRINTS: CommandActs = { acts: [], prints: true };
/** Any effect is possible. */
export const ANYTHING: CommandActs = { acts: [{ kind: 'anything' }], prints: true };

/** Returns true if a known word matches. */
export const some = (words: Words, pattern: RegExp): boolean =>
  words.some((word) => word !== undefined && pattern.test(word));
/** Returns the known words. */
export const known = (words: Words): readonly string[] => words.filter((word) => word !== undefined);
/** Reads files without usable output: they exist. */
export const reads = (words: Words): CommandActs => ({
  acts: known(words).map((path) => ({ kind: 'name', path })),
  prints: true,
});

/** Applies an act to each named file. An unknown name may be any file. */
export function toEach(files: Words, prints: boolean, act: (path: string) => ShellAct): CommandActs {
  return files.includes(undefined) ? ANYTHING : { acts: known(files).map(act), prints };
}

/** Changes files in an unknown way. */
export const changes = (files: Words, prints: boolean): CommandActs =>
  toEach(files, prints, (path) => ({ kind: 'change', path }));
