import { posix } from 'node:path';
import { patchedPaths } from '../../foreign-tools/patch-envelope.js';
import { patchOfWords, scriptOf } from '../../foreign-tools/shell-call.js';
import type { ToolArguments } from '../../foreign-tools/tool-arguments.js';
import type { ShellAct } from './shell-act.js';
import { readShell } from './shell-acts.js';
import { isOption, type ShellWord, shellSteps } from './shell-syntax.js';

/** A git command in a script that may restore earlier texts of files. */
export interface PutBack {
  /** The command without its arguments, such as `git stash pop`. */
  readonly command: string;
  /** The files and folders that the command names. Undefined if it may change any file. */
  readonly paths: readonly string[] | undefined;
}

/** The files that a script changes, as its text shows. Paths are written as in the script. */
export interface ShellChanges {
  readonly written: readonly string[];
  readonly putsBack: readonly PutBack[];
}

function writtenBy(act: ShellAct): readonly string[] {
  if (act.kind === 'show' || act.kind === 'name' || act.kind === 'list' || act.kind === 'anything') return [];
  if (act.kind === 'move') return [act.from, act.to];
  if (act.kind === 'copy') return [act.to];
  return act.kind === 'update' && act.moveTo !== undefined ? [act.path, act.moveTo] : [act.path];
}

const PUTS_BACK = /^(?:stash|checkout|restore|reset|switch|revert|merge|rebase|pull|cherry-pick|am)$/;
const ONLY_FILES = /^(?:checkout|restore|reset)$/;

function putBack(words: readonly ShellWord[]): PutBack | undefined {
  const at = words.findIndex((word, i) => word !== undefined && !isOption(word) && !/^-[Cc]$/.test(words[i - 1] ?? ''));
  const verb = words[at];
  if (verb === undefined || !PUTS_BACK.test(verb)) return undefined;
  const rest = words.slice(at + 1);
  if (verb === 'stash' && /^(?:list|show|drop|clear|create|store)$/.test(rest[0] ?? '')) return undefined;
  const sub = verb === 'stash' && /^(?:push|pop|apply|save)$/.test(rest[0] ?? '') ? ` ${rest[0]}` : '';
  const ended = rest.indexOf('--');
  const named = ended >= 0 ? rest.slice(ended + 1) : verb === 'restore' ? rest.filter((word) => !isOption(word)) : [];
  const sound = ONLY_FILES.test(verb) && named.length > 0 && !named.includes(undefined);
  return { command: `git ${verb}${sub}`, paths: sound ? (named as readonly string[]) : undefined };
}

/** Returns the changes of files that the arguments of a shell call show. */
export function shellChanges(args: ToolArguments): ShellChanges {
  const script = scriptOf(args);
  if (script === undefined) return { written: patchedPaths(patchOfWords(args) ?? ''), putsBack: [] };
  const { acts } = readShell(script);
  const written = acts.flatMap(({ act, folder }) =>
    folder.includes('\0') ? [] : writtenBy(act).map((path) => posix.resolve('/', folder, path).slice(1)),
  );
  const putsBack = (shellSteps(script) ?? []).flatMap(({ pipeline = [] }) =>
    pipeline.flatMap(({ name, words }) => (name === 'git' ? (putBack(words) ?? []) : [])),
  );
  return { written: [...new Set(written)], putsBack };
}

/**
 * Returns whether a file is the one that a script names, or is below it. The script's folder is
 * unknown, so only the ends of the paths are compared.
 */
export function isNamedBy(path: string, name: string): boolean {
  const bare = posix.resolve('/', name);
  return bare === '/' || path === bare || path.endsWith(bare) || path.includes(`${bare}/`);
}
