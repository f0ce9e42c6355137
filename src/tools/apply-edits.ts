import { findText, toCrlf } from '../foreign-tools/text-edits.js';
import { ToolError } from './tool.js';

/** One replacement: `oldText` stands exactly once in the original. */
export interface Edit {
  readonly oldText: string;
  readonly newText: string;
}

/** A text after its edits, with the lines that each one now occupies, in the order of the text. */
export interface EditedText {
  readonly text: string;
  readonly changed: readonly { readonly firstLine: number; readonly lastLine: number }[];
}

interface Replacement {
  readonly index: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

function lineAt(text: string, position: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < position; at = text.indexOf('\n', at + 1)) line++;
  return line;
}

const squeezed = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** Where the text stands but for white space: what a model most often gets wrong. */
function almost(text: string, wanted: string): string | undefined {
  const lines = text.split('\n');
  const first = wanted
    .split('\n')
    .map(squeezed)
    .find((line) => line.length > 3);
  const at = first === undefined ? -1 : lines.findIndex((line) => squeezed(line) === first);
  return at < 0 ? undefined : `line ${at + 1} is like it but for white space`;
}

/** The text that is edited, the file that it is of, and what the edit at hand is called in errors. */
interface Target {
  readonly text: string;
  readonly path: string;
  readonly name: string;
}

function notFound({ name, path, text }: Target, wanted: string): ToolError {
  const near = almost(text, wanted);
  return new ToolError(
    'no-match',
    `${name}: the text was not found in ${path}${near === undefined ? '' : ` (${near})`}. Nothing was changed.`,
    { next: `Read the lines first and give oldText exactly as they stand, white space included: read path=${path}` },
  );
}

function several({ name, path, text }: Target, found: readonly number[]): ToolError {
  const lines = found.slice(0, 5).map((at) => lineAt(text, at));
  return new ToolError(
    'ambiguous',
    `${name}: the text stands ${found.length} times in ${path} (lines ${lines.join(', ')}${found.length > 5 ? ', ...' : ''}). Nothing was changed.`,
    { next: 'Make oldText longer until it stands only once, or give one edit for each place.' },
  );
}

function locate(edit: Edit, index: number, target: Target): Replacement {
  const { text, name } = target;
  if (edit.oldText === '') {
    throw new ToolError('invalid-arguments', `${name} is empty. Nothing was changed.`, {
      next: 'Name the text to replace; write makes a new file.',
    });
  }
  const { text: wanted, places } = findText(text, edit.oldText, { overlapping: true });
  const [start] = places;
  if (start === undefined) throw notFound(target, edit.oldText);
  if (places.length > 1) throw several(target, places);
  const onlyCrlf = text.includes('\r\n') && !/(^|[^\r])\n/.test(text);
  const replacement = onlyCrlf || wanted !== edit.oldText ? toCrlf(edit.newText) : edit.newText;
  return { index, start, end: start + wanted.length, text: replacement };
}

/**
 * Applies edits to a text, each matched against the original, all or none.
 * Windows line ends stay Windows line ends, a byte order mark stays.
 *
 * @throws {ToolError} `no-match`, `ambiguous`, `invalid-arguments`, `nothing-done` – for edits that do not apply, overlap, or change nothing
 */
export function applyEdits(original: string, edits: readonly Edit[], path: string): EditedText {
  const nameOf = (index: number): string => (edits.length === 1 ? 'oldText' : `edits[${index}].oldText`);
  const replacements = edits
    .map((edit, index) => locate(edit, index, { text: original, path, name: nameOf(index) }))
    .sort((a, b) => a.start - b.start);
  let text = '';
  let position = 0;
  const changed: { firstLine: number; lastLine: number }[] = [];
  for (const [order, replacement] of replacements.entries()) {
    const before = replacements[order - 1];
    if (before !== undefined && replacement.start < before.end) {
      throw new ToolError(
        'invalid-arguments',
        `edits[${before.index}] and edits[${replacement.index}] overlap in ${path}. Nothing was changed.`,
        { next: 'Join them into one edit.' },
      );
    }
    text += original.slice(position, replacement.start);
    const firstLine = lineAt(text, text.length);
    text += replacement.text;
    changed.push({ firstLine, lastLine: Math.max(firstLine, lineAt(text, text.length - (text.endsWith('\n') ? 1 : 0))) });
    position = replacement.end;
  }
  text += original.slice(position);
  if (text === original) {
    throw new ToolError('nothing-done', `the edits leave ${path} as it is. Nothing was changed.`, {
      next: 'Give a newText that differs from oldText.',
    });
  }
  return { text, changed };
}
