import type { JsonObject } from '../../../values/json-object.js';
import { commandFailed } from '../entries/command-outcome.js';
import { objectAt, textAt } from '../entries/fields.js';
import {
  type FileEvidence,
  fileEvidence,
  listedByEditor,
  numberedAnswer,
  printedFile,
  terminalText,
  wholeFile,
} from '../entries/shown-file.js';

/**
 * Returns the evidence about files in an editor's result. Uses the recorded texts before and after
 * a change, or else the numbered lines of the output.
 */
export function editorEvidence(
  twin: JsonObject | undefined,
  text: string,
  view: { readonly path?: string | undefined; readonly whole: boolean },
): FileEvidence {
  const path = textAt(twin, 'path') ?? view.path;
  const before = textAt(twin, 'old_content');
  const after = textAt(twin, 'new_content');
  if (path !== undefined && path !== '' && (before !== undefined || after !== undefined)) {
    return fileEvidence([
      ...(before === undefined ? [] : [wholeFile(path, before, 'before')]),
      ...(after === undefined ? [] : [wholeFile(path, after, 'after')]),
    ]);
  }
  const listed = listedByEditor(text);
  return listed === undefined
    ? fileEvidence(numberedAnswer(text, { path, whole: view.whole }))
    : fileEvidence([], listed);
}

/** Returns the evidence about files in a shell's output: the file that a plain command printed. */
export function shellEvidence(command: string, output: string): FileEvidence {
  const shown = printedFile(command, terminalText(output).text);
  return fileEvidence(shown === undefined ? [] : [shown]);
}

/** Returns the shell's working directory at the end of a command. */
export function shellDir(twin: JsonObject | undefined, output: string): string | undefined {
  const dir = textAt(objectAt(twin, 'metadata'), 'working_dir');
  return dir !== undefined && dir !== '' ? dir : terminalText(output).promptDir;
}

/** Returns whether a command failed, by its exit code. -1 means that it is still running. */
export function exitFailed(twin: JsonObject | undefined, command: string | undefined, output: string): boolean {
  const code = twin?.exit_code ?? objectAt(twin, 'metadata')?.exit_code;
  if (typeof code !== 'number') return false;
  return commandFailed(command, { code: code < 0 ? undefined : code, output: terminalText(output).text });
}
