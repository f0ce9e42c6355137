import { objectAt, textAt } from '../entries/fields.js';
import { printedFile, terminalText } from '../evidence/printed-file.js';
import { fileWindows, listedByEditor, numberedAnswer, wholeFile } from '../evidence/shown-file.js';
import type { JsonObject } from '../json/json-text.js';
import type { ShownFile } from '../neutral-session.js';

/** What an observation of OpenHands shows of files. */
export interface Evidence {
  readonly files?: ShownFile[];
  readonly listed?: string[];
}

const evidence = (files: readonly ShownFile[], listed?: readonly string[]): Evidence => ({
  ...(files.length === 0 ? {} : { files: [...files] }),
  ...(listed === undefined ? {} : { listed: [...listed] }),
});

/** Of the editor: the texts before and after a change where the recording has them, else what its answer shows. */
export function editorEvidence(
  twin: JsonObject | undefined,
  text: string,
  view: { readonly path?: string | undefined; readonly whole: boolean },
): Evidence {
  const path = textAt(twin, 'path') ?? view.path;
  const before = textAt(twin, 'old_content');
  const after = textAt(twin, 'new_content');
  if (path !== undefined && path !== '' && (before !== undefined || after !== undefined)) {
    return evidence([
      ...(before === undefined ? [] : [wholeFile(path, before, 'before')]),
      ...(after === undefined ? [] : [wholeFile(path, after, 'after')]),
    ]);
  }
  const listed = listedByEditor(text);
  return listed === undefined ? evidence(numberedAnswer(text, { path, whole: view.whole })) : evidence([], listed);
}

/** Of a shell: the file that a plain command printed. */
export function shellEvidence(command: string, output: string): Evidence {
  const shown = printedFile(command, terminalText(output).text);
  return evidence(shown === undefined ? [] : [shown]);
}

/** Of the skills of the Python cell (`open_file`, `edit_file_by_replace`): their windows. */
export function cellEvidence(output: string): Evidence {
  return evidence(fileWindows(output));
}

/** The folder in which a shell stands after a command. */
export function shellDir(twin: JsonObject | undefined, output: string): string | undefined {
  const dir = textAt(objectAt(twin, 'metadata'), 'working_dir');
  return dir !== undefined && dir !== '' ? dir : terminalText(output).promptDir;
}

/** Whether a command failed, by its exit code; -1 is a command that still runs. */
export function exitFailed(twin: JsonObject | undefined): boolean {
  const code = twin?.exit_code ?? objectAt(twin, 'metadata')?.exit_code;
  return typeof code === 'number' && code > 0;
}
