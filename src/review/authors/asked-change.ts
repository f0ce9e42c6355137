import { askedReplacements } from '../../foreign-tools/asked-replacements.js';
import { type PatchHunk, parsePatch, patched } from '../../foreign-tools/patch-envelope.js';
import { findText, type Replacement, replaced } from '../../foreign-tools/text-edits.js';
import { textArgument } from '../../foreign-tools/tool-arguments.js';
import { isNamedBy } from '../../harness/tool-output/shell-changes.js';
import { kindOfCall, type NamedCall, patchText } from '../../history/rebuild/call-names.js';

/** The change of one file that a call's arguments describe. */
export type AskedChange =
  | { readonly kind: 'replace'; readonly replacements: readonly Replacement[] }
  | { readonly kind: 'patch'; readonly hunks: readonly PatchHunk[] }
  | { readonly kind: 'write'; readonly text: string };

/** A change that expects a text in the file. */
export type ReplacingChange = Exclude<AskedChange, { kind: 'write' }>;

/** Returns the change of a file that a call asks for; undefined if its arguments do not say it. */
export function askedChange(call: NamedCall, path: string): AskedChange | undefined {
  const patch = patchText(call);
  if (patch !== undefined) {
    const changes = parsePatch(patch) ?? [];
    const own =
      changes.find((change) => isNamedBy(path, change.path)) ?? (changes.length === 1 ? changes[0] : undefined);
    if (own?.kind === 'update') return { kind: 'patch', hunks: own.hunks };
    return own?.kind === 'add' ? { kind: 'write', text: own.text } : undefined;
  }
  const replacements = askedReplacements(call.args);
  if (replacements !== undefined) return { kind: 'replace', replacements };
  const text = kindOfCall(call) === 'write' ? textArgument(call.args, 'content') : undefined;
  return text === undefined ? undefined : { kind: 'write', text };
}

/** Returns whether a change expects a text in the file before it. */
export function expectsText(change: AskedChange | undefined): change is ReplacingChange {
  if (change?.kind === 'replace') return change.replacements.some(({ from }) => from !== '');
  return change?.kind === 'patch' && change.hunks.some(({ before }) => before.length > 0);
}

/**
 * Returns how often a file's text has the text that a change replaces. The result is 1 if the
 * change applies, and 0 if a replaced text is missing.
 */
export function placesOf(change: ReplacingChange, text: string): number {
  if (change.kind === 'patch') return patched(text, change.hunks) === undefined ? 0 : 1;
  let now = text;
  for (const one of change.replacements) {
    if (one.from === '') continue;
    const { count } = findText(now, one.from);
    if (count === 0 || (count > 1 && !one.all)) return count;
    now = replaced(now, [one]) ?? now;
  }
  return 1;
}

/** Returns a test for each text that a change replaces: whether a part of the file has it. */
export function replacedTexts(change: ReplacingChange): readonly ((part: string) => boolean)[] {
  if (change.kind === 'replace')
    return change.replacements.flatMap(({ from }) => (from === '' ? [] : [(part) => findText(part, from).count > 0]));
  return change.hunks.flatMap((hunk) =>
    hunk.before.length === 0 ? [] : [(part) => patched(part, [bareHunk(hunk)]) !== undefined],
  );
}

/** Returns a part of a file after a change. Skips replaced texts that the part does not have. */
export function changedPart(change: ReplacingChange, part: string): string {
  if (change.kind === 'replace')
    return change.replacements.reduce((now, one) => (one.from === '' ? now : (replaced(now, [one]) ?? now)), part);
  return change.hunks.reduce(
    (now, hunk) => (hunk.before.length === 0 ? now : (patched(now, [bareHunk(hunk)]) ?? now)),
    part,
  );
}

/** A part of a file may lack the lines above a hunk, and the file's end. */
const bareHunk = (hunk: PatchHunk): PatchHunk => ({ ...hunk, contexts: [], atEnd: false });

/** Returns whether each line that a change replaces is in some shown part of a file. */
export function hasShownLines(change: ReplacingChange, parts: readonly string[]): boolean {
  const shown = new Set(parts.flatMap((part) => part.split('\n').map((line) => line.trim())));
  const lines =
    change.kind === 'replace'
      ? change.replacements.flatMap(({ from }) => from.split('\n'))
      : change.hunks.flatMap(({ before }) => before);
  return lines.every((line) => shown.has(line.trim()));
}

/** Returns the texts that a change puts into the file. */
export function putTexts(change: AskedChange): readonly string[] {
  if (change.kind === 'write') return [change.text];
  const texts =
    change.kind === 'replace'
      ? change.replacements.map(({ to }) => to)
      : change.hunks.map(({ after }) => after.join('\n'));
  return texts.filter((text) => text.trim() !== '');
}
