import type { CommandActs, ShellAct } from './shell-act.js';
import type { ShellCommand, ShellWord } from './shell-syntax.js';

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
