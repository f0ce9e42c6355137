import type { Change, Changed, Made, TakenBack } from './change.js';
import { changeJson, findInJson, takeBackJson } from './json-edit.js';
import { changeToml, findInToml, takeBackToml } from './toml-edit.js';

/** Formats of settings files: JSON with comments, and TOML. */
export type SettingsFormat = 'json' | 'toml';

/** The byte order mark, which some editors write at the beginning of a file. */
const MARK = '\ufeff';

function afterMark<T extends { readonly text: string }>(text: string, edit: (text: string) => T): T {
  if (!text.startsWith(MARK)) return edit(text);
  const edited = edit(text.slice(MARK.length));
  return { ...edited, text: MARK + edited.text };
}

/**
 * Makes changes in the text of a settings file. Comments, order, indentation, line ends and a byte
 * order mark stay.
 * @throws {SettingsError} unparsable, unfit – with line and reason
 */
export function changeSettings(format: SettingsFormat, text: string, changes: readonly Change[]): Changed {
  const edit = format === 'json' ? changeJson : changeToml;
  return afterMark(text, (body) => edit(body, changes));
}

/**
 * Undoes changes in a text that may have been changed since. Keeps all later changes.
 * @throws {SettingsError} unparsable, unfit – with line and reason
 */
export function takeBackSettings(format: SettingsFormat, text: string, made: readonly Made[]): TakenBack {
  const edit = format === 'json' ? takeBackJson : takeBackToml;
  return afterMark(text, (body) => edit(body, made));
}

/**
 * Returns the value at a path of a settings file. Undefined if there is none.
 * @throws {SettingsError} unparsable, unfit – with line and reason
 */
export function findSetting(format: SettingsFormat, text: string, path: readonly string[]): unknown {
  const body = text.startsWith(MARK) ? text.slice(MARK.length) : text;
  return format === 'json' ? findInJson(body, path) : findInToml(body, path);
}
