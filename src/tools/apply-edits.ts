import { ToolError } from './tool-error.js';

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

const toCrlf = (text: string): string => text.replace(/\r?\n/g, '\r\n');

function occurrences(text: string, wanted: string): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) found.push(at);
  return found;
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

function notFound(name: string, path: string, text: string, wanted: string): ToolError {
  const near = almost(text, wanted);
  return new ToolError(
    'no-match',
    `${name}: the text was not found in ${path}${near === undefined ? '' : ` (${near})`}. Nothing was changed.`,
    `Read the lines first and give oldText exactly as they stand, white space included: read path=${path}`,
  );
}

function several(name: string, path: string, text: string, found: readonly number[]): ToolError {
  const lines = found.slice(0, 5).map((at) => lineAt(text, at));
  return new ToolError(
    'ambiguous',
    `${name}: the text stands ${found.length} times in ${path} (lines ${lines.join(', ')}${found.length > 5 ? ', ...' : ''}). Nothing was changed.`,
    'Make oldText longer until it stands only once, or give one edit for each place.',
  );
}

function locate(text: string, edit: Edit, index: number, count: number, path: string): Replacement {
  const name = count === 1 ? 'oldText' : `edits[${index}].oldText`;
  if (edit.oldText === '') {
    throw new ToolError('invalid-arguments', `${name} is empty. Nothing was changed.`, 'Name the text to replace; write makes a new file.');
  }
  let wanted = edit.oldText;
  let found = occurrences(text, wanted);
  if (found.length === 0 && text.includes('\r\n') && wanted.includes('\n')) {
    wanted = toCrlf(wanted);
    found = occurrences(text, wanted);
  }
  const [start] = found;
  if (start === undefined) throw notFound(name, path, text, edit.oldText);
  if (found.length > 1) throw several(name, path, text, found);
  const onlyCrlf = text.includes('\r\n') && !/(^|[^\r])\n/.test(text);
  const replacement = onlyCrlf || wanted !== edit.oldText ? toCrlf(edit.newText) : edit.newText;
  return { index, start, end: start + wanted.length, text: replacement };
}

/**
 * Applies edits to a text, each matched against the original, all or none.
 * Windows line ends stay Windows line ends, a byte order mark stays. Throws ToolError `no-match`, `ambiguous` or `invalid-arguments`.
 */
export function applyEdits(original: string, edits: readonly Edit[], path: string): EditedText {
  const replacements = edits.map((edit, index) => locate(original, edit, index, edits.length, path)).sort((a, b) => a.start - b.start);
  let text = '';
  let position = 0;
  const changed: { firstLine: number; lastLine: number }[] = [];
  for (const [order, replacement] of replacements.entries()) {
    const before = replacements[order - 1];
    if (before !== undefined && replacement.start < before.end) {
      throw new ToolError(
        'invalid-arguments',
        `edits[${before.index}] and edits[${replacement.index}] overlap in ${path}. Nothing was changed.`,
        'Join them into one edit.',
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
    throw new ToolError(
      'nothing-done',
      `the edits leave ${path} as it is. Nothing was changed.`,
      'Give a newText that differs from oldText.',
    );
  }
  return { text, changed };
}
