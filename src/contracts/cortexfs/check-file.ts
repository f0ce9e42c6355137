import { isJsonObject } from '../../values/json-object.js';
import { ownMember } from '../../values/own-member.js';
import { type LineFile, type LineFinding, lineFindings } from './check-line.js';
import { isPalimpsestLine, PALIMPSEST_FILE, readPalimpsestLine } from './palimpsest-file.js';
import { isName, sourceFault } from './session-paths.js';
import { strictJson } from './strict-json.js';

/** A fault in a file and its place. */
export interface FileFinding {
  /** The path within the session directory. */
  readonly path: string;
  /** The line, counted from 1; undefined if the fault concerns the whole file. */
  readonly line?: number;
  readonly field: string;
  readonly issue: FileIssue;
  readonly message: string;
}

/** Faults of lines and of whole files. `cut-line`: the last line has no line end. */
export type FileIssue = LineFinding['issue'] | 'cut-line';

/** Files that hold lines, by their path within the session directory. */
const LINE_FILES: Readonly<Record<string, LineFile>> = {
  'messages.jsonl': 'messages',
  'events.jsonl': 'events',
  'context/facts.jsonl': 'facts',
  'context/decisions.jsonl': 'decisions',
  'context/refs.jsonl': 'refs',
  'context/swap/index.jsonl': 'swap',
  'context/dedup/index.jsonl': 'dedup',
};
const STATES: ReadonlySet<string> = new Set(['active', 'idle', 'done', 'error']);
const CHILD_STATES: ReadonlySet<string> = new Set(['pending', 'active', 'done', 'error', 'cancelled']);
const SCOPES: ReadonlySet<unknown> = new Set(['private', 'shared', 'temp']);

/**
 * Splits a text into lines without line ends. An empty text has no lines. A last line without a
 * line end counts.
 */
export function linesOf(text: string): readonly string[] {
  if (text === '') return [];
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
}

function ownLineFindings(text: string, i: number): readonly LineFinding[] {
  const read = readPalimpsestLine(text, i === 0);
  return isPalimpsestLine(read) ? [] : [{ issue: 'invalid-field', ...read }];
}

function lineFileFindings(
  path: string,
  text: string,
  check: (line: string, at: number) => readonly LineFinding[],
): readonly FileFinding[] {
  const lines = linesOf(text);
  const cut: readonly FileFinding[] =
    text === '' || text.endsWith('\n')
      ? []
      : [
          {
            path,
            line: lines.length,
            field: '',
            issue: 'cut-line',
            message: 'the last line does not end with a line break and may be truncated',
          },
        ];
  return [...lines.flatMap((line, i) => check(line, i).map((found) => ({ path, line: i + 1, ...found }))), ...cut];
}

/** Returns the faults of a pack. Its items must name files of the session that may be packed. */
function packFindings(path: string, text: string): readonly FileFinding[] {
  const wrong = (issue: FileIssue, field: string, message: string): readonly FileFinding[] => [
    { path, field, issue, message },
  ];
  const read = strictJson(text);
  if (!read.ok) return wrong('invalid-json', '', read.reason);
  if (!isJsonObject(read.value)) return wrong('not-an-object', '', 'it is not a JSON object');
  const { items } = read.value;
  if (!Array.isArray(items)) return wrong('invalid-field', 'items', 'the field items must be a list');
  return items.flatMap((item: unknown, i) => {
    const field = `items[${i}]`;
    if (!isJsonObject(item)) return wrong('not-an-object', field, `${field} is not a JSON object`);
    if (!Object.hasOwn(item, 'source'))
      return wrong('missing-field', `${field}.source`, `the field ${field}.source is missing`);
    if (typeof item.source !== 'string')
      return wrong('invalid-field', `${field}.source`, `the field ${field}.source must be a text`);
    const fault = sourceFault(item.source);
    return fault === undefined
      ? []
      : wrong('invalid-field', `${field}.source`, `${field}.source ${JSON.stringify(item.source)}: ${fault}`);
  });
}

function metaFindings(path: string, text: string): readonly FileFinding[] {
  const read = strictJson(text);
  if (!read.ok) return [{ path, field: '', issue: 'invalid-json', message: read.reason }];
  if (!isJsonObject(read.value))
    return [{ path, field: '', issue: 'not-an-object', message: 'it is not a JSON object' }];
  const { scope } = read.value;
  if (scope === undefined || SCOPES.has(scope)) return [];
  return [
    { path, field: 'scope', issue: 'invalid-field', message: 'the field scope must be one of private, shared, temp' },
  ];
}

/**
 * Parses the token limit of a `budget` file. Returns undefined for no limit (empty, or 0), and null
 * for an invalid text.
 */
export function readBudget(text: string): number | undefined | null {
  if (text === '') return undefined;
  if (!/^\d+\n?$/.test(text) || !Number.isSafeInteger(Number(text))) return null;
  return Number(text) === 0 ? undefined : Number(text);
}

function wordFindings(path: string, text: string, words: ReadonlySet<string>): readonly FileFinding[] {
  if (words.has(text.replace(/\n$/, ''))) return [];
  return [{ path, line: 1, field: '', issue: 'invalid-field', message: `it must be one of ${[...words].join(', ')}` }];
}

/**
 * Returns the faults of a file in a session directory: every line and field that violates the
 * format. The path selects the format; files without a format have no faults.
 */
export function fileFindings(path: string, text: string): readonly FileFinding[] {
  const file = ownMember(LINE_FILES, path) ?? (/^context\/child\/[^/]+\/refs\.jsonl$/.test(path) ? 'refs' : undefined);
  if (file !== undefined) return lineFileFindings(path, text, (line) => lineFindings(file, line));
  if (path === PALIMPSEST_FILE) return lineFileFindings(path, text, ownLineFindings);
  if (path === 'context/pack.json') return packFindings(path, text);
  if (path === 'meta.json') return metaFindings(path, text);
  if (path === 'state') return wordFindings(path, text, STATES);
  if (/^context\/child\/[^/]+\/status$/.test(path)) return wordFindings(path, text, CHILD_STATES);
  if (path === 'context/budget' && readBudget(text) === null)
    return [
      { path, line: 1, field: '', issue: 'invalid-field', message: 'it must be empty or hold a single whole number' },
    ];
  const child = /^context\/child\/([^/]+)\//.exec(path)?.[1];
  if (child !== undefined && !isName(child))
    return [{ path, field: '', issue: 'invalid-field', message: `${JSON.stringify(child)} cannot name a child` }];
  return [];
}

/** Formats a fault as a sentence: file, line, field, fault. */
export function findingText({ path, line, message }: FileFinding): string {
  return `${path}${line === undefined ? '' : `, line ${line}`}: ${message}`;
}
