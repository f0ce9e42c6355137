import { posix } from 'node:path';
import { patchOfWords, type ShellOutput, scriptOf, shellOutput } from '../../../foreign-tools/shell-call.js';
import { bareLines } from '../../../foreign-tools/text-edits.js';
import { type FileAct, patchActs } from '../../../harness/tool-output/file-act.js';
import { certainNames } from '../../../harness/tool-output/listed-names.js';
import { withoutGutter } from '../../../harness/tool-output/numbered-lines.js';
import type { ReadCall } from '../../../harness/tool-output/read-output.js';
import type { ShellAct } from '../../../harness/tool-output/shell-act.js';
import { readShell } from '../../../harness/tool-output/shell-acts.js';

const MISSING = /No such file or directory|cannot access|cannot open|Permission denied|Is a directory/;

function shown(act: Extract<ShellAct, { kind: 'show' }>, text: string): readonly FileAct[] {
  const { path, range, exact } = act;
  const bare = exact && range === undefined ? { text, startLine: undefined } : withoutGutter(text);
  const whole = range === undefined && bare.startLine === undefined;
  if (whole && exact) return [{ kind: 'show', path, text: bare.text, startLine: 1, whole: true }];
  const from = bare.startLine ?? range?.from ?? 1;
  const lines = bareLines(bare.text).length;
  if (lines === 0) return [{ kind: 'name', path }];
  // If the command shows fewer lines than requested, the file ends there. A tool that cuts the end
  // of an output may have cut a blank line.
  const cut = bare.text.endsWith('\n') ? 0 : 1;
  const wanted = range?.to === undefined ? undefined : range.to - (range.from ?? 1) + 1;
  const ended = wanted === undefined ? range !== undefined || bare.startLine !== undefined : lines < wanted - cut;
  const total = ended ? { total: from + lines - 1 } : {};
  return [{ kind: 'show', path, text: bare.text, startLine: from, whole: from === 1 && ended, ...total }];
}

/**
 * Returns the effects of a command, with the file text in its output. `own` is undefined if the
 * output may come from another command.
 */
function fileActs(act: ShellAct, own: ShellOutput | undefined): readonly FileAct[] {
  if (act.kind === 'show')
    return own === undefined || own.partial ? [{ kind: 'name', path: act.path }] : shown(act, own.text);
  if (act.kind === 'list')
    return own === undefined ? [] : [{ kind: 'list', paths: certainNames(act.format, own.text, act) }];
  return [act];
}

const below = (folder: string, path: string): string =>
  posix.isAbsolute(path) || /^~|^[A-Za-z]:[\\/]/.test(path) ? path : posix.join(folder, path);

/** Resolves the paths of an act against the folder of the script. */
function inFolder(act: FileAct, folder: string): readonly FileAct[] {
  if (folder === '.' || act.kind === 'anything') return [act];
  if (folder.includes('\0'))
    return act.kind === 'name' || act.kind === 'show' || act.kind === 'list' ? [] : [{ kind: 'anything' }];
  if (act.kind === 'list') return [{ ...act, paths: act.paths.map((path) => below(folder, path)) }];
  if (act.kind === 'move' || act.kind === 'copy')
    return [{ ...act, from: below(folder, act.from), to: below(folder, act.to) }];
  return [{ ...act, path: below(folder, act.path) }];
}

/**
 * Returns the effects of a shell call on files: reads, listings, and changes that the script shows
 * (decision C8).
 */
export function shellFileActs({ args, output, truncated }: ReadCall): readonly FileAct[] {
  const script = scriptOf(args);
  if (script === undefined) return patchActs(patchOfWords(args) ?? '') ?? [{ kind: 'anything' }];
  const { acts, printing } = readShell(script);
  const answer = shellOutput(output);
  const failed = answer.exitCode !== undefined && answer.exitCode !== 0;
  const missing = MISSING.test(answer.text.slice(0, 4_000)) && printing >= 1;
  // If only one command prints, the whole output is its own. With several, the output cannot be
  // divided.
  const own = printing === 1 && !missing && !failed ? { ...answer, partial: answer.partial || truncated } : undefined;
  return acts.flatMap(({ act, folder }) => {
    if ((failed || missing) && (act.kind === 'name' || act.kind === 'show')) return [];
    // A failed script may have run partly.
    if (failed && act.kind !== 'list' && act.kind !== 'anything')
      return touched(act).flatMap((one) => inFolder(one, folder));
    return fileActs(act, own).flatMap((one) => inFolder(one, folder));
  });
}

/**
 * Returns acts that mark the files of an act as changed in an unknown way, because it may have run
 * only partly.
 */
function touched(act: ShellAct): readonly FileAct[] {
  if (act.kind === 'move' || act.kind === 'copy') return [act.from, act.to].map((path) => ({ kind: 'change', path }));
  return 'path' in act ? [{ kind: 'change', path: act.path }] : [];
}
