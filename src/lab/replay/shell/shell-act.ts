import type { ListingFormat } from '../../../foreign-tools/tool-table.js';
import type { ShellCommand, ShellWord } from './shell-syntax.js';

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
  | { readonly kind: 'list'; readonly format: ListingFormat; readonly folder: string; readonly targets: readonly string[] }
  /** Needs the file to be there, shows nothing of it that could be taken up. */
  | { readonly kind: 'name'; readonly path: string }
  | { readonly kind: 'write'; readonly path: string; readonly text: string; readonly append: boolean }
  /** Changes the file in a way that is not followed. */
  | { readonly kind: 'change'; readonly path: string }
  | { readonly kind: 'remove'; readonly path: string; readonly folders: boolean }
  | { readonly kind: 'move'; readonly from: string; readonly to: string }
  | { readonly kind: 'copy'; readonly from: string; readonly to: string }
  /** May change any file. */
  | { readonly kind: 'anything' };

/** What one command, or a pipeline up to it, does and whether it prints. */
export interface CommandActs {
  readonly acts: readonly ShellAct[];
  readonly prints: boolean;
}

/** The words of a command behind its name. */
export type Words = readonly ShellWord[];
/** Tells what a command does from its words. */
export type CommandReader = (words: Words, command: ShellCommand) => CommandActs;

/** Does nothing to files and prints nothing. */
export const SILENT: CommandActs = { acts: [], prints: false };
/** Does nothing to files. */
export const PRINTS: CommandActs = { acts: [], prints: true };
/** May do anything. */
export const ANYTHING: CommandActs = { acts: [{ kind: 'anything' }], prints: true };

/** Whether a word is an option. */
export const isOption = (word: ShellWord): boolean => word !== undefined && word.length > 1 && word.startsWith('-');

/** Words that are no options; those after the options that take a value are left out with them. */
export function operands(words: Words, valued: RegExp = /^$/): Words {
  const found: ShellWord[] = [];
  let ended = false;
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    if (!ended && word === '--') ended = true;
    else if (!ended && isOption(word)) {
      if (valued.test(word ?? '')) i += 1;
    } else found.push(word);
  }
  return found;
}

/** The words that are known. */
export const known = (words: Words): readonly string[] => words.filter((word) => word !== undefined);
/** Proof that files exist. */
export const names = (paths: readonly string[]): readonly ShellAct[] => paths.map((path) => ({ kind: 'name', path }));
/** Reads files in a way that shows nothing to be taken up. */
export const reads = (words: Words): CommandActs => ({ acts: names(known(words)), prints: true });
