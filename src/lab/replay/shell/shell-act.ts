import type { ShellWord } from '../../../foreign-tools/shell-syntax.js';
import type { ListingFormat } from '../../../foreign-tools/tool-table.js';
import type { FileAct } from '../files/apply-acts.js';

/** Lines of a file that a command prints, from 1; both ends included, open where undefined. */
export interface LineRange {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** What one command of a script does, as far as its words show without running it; paths as the script names them. */
export type ShellAct =
  /** Prints a file: all of it where there is no range. */
  | { readonly kind: 'show'; readonly path: string; readonly range: LineRange | undefined; readonly exact: boolean }
  /** Its output names files, below a folder where the names are relative to that. */
  | {
      readonly kind: 'list';
      readonly format: ListingFormat;
      readonly folder: string;
      readonly targets: readonly string[];
    }
  /** What it does whatever it prints. */
  | Exclude<FileAct, { kind: 'show' | 'list' }>;

/** What one command, or a pipeline up to it, does and whether it prints. */
export interface CommandActs {
  readonly acts: readonly ShellAct[];
  readonly prints: boolean;
}

/** The words of a command behind its name. */
export type Words = readonly ShellWord[];
/** Says what a command does by its words. */
export type CommandReader = (words: Words) => CommandActs;

/** Does nothing to files and prints nothing. */
export const SILENT: CommandActs = { acts: [], prints: false };
/** Does nothing to files. */
export const PRINTS: CommandActs = { acts: [], prints: true };
/** May do anything. */
export const ANYTHING: CommandActs = { acts: [{ kind: 'anything' }], prints: true };

/** Whether one of the words is known and fits. */
export const some = (words: Words, pattern: RegExp): boolean =>
  words.some((word) => word !== undefined && pattern.test(word));
/** The words that are known. */
export const known = (words: Words): readonly string[] => words.filter((word) => word !== undefined);
/** Reads files in a way that shows nothing to be taken up: they exist. */
export const reads = (words: Words): CommandActs => ({
  acts: known(words).map((path) => ({ kind: 'name', path })),
  prints: true,
});

/** Does the same to each file that it names; one that is not known may be any file. */
export function toEach(files: Words, prints: boolean, act: (path: string) => ShellAct): CommandActs {
  return files.includes(undefined) ? ANYTHING : { acts: known(files).map(act), prints };
}

/** Changes files in a way that is not followed. */
export const changes = (files: Words, prints: boolean): CommandActs =>
  toEach(files, prints, (path) => ({ kind: 'change', path }));
