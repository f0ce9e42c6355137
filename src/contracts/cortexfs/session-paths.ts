import { hashText } from '../../objects/hashes.js';
import type { Sha256 } from '../../objects/ids.js';

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9._+-]{0,63}$/;
const LONGEST_KEPT = 40;
/** Number of digits of a SHA-256 in a name. All 64 would exceed the maximum length of a name. */
const DIGITS = 32;

/**
 * Returns true if a text can name a session, agent, child, record or tool. A name has at most 64
 * characters, each a letter, a digit or one of `._+-`. It does not end in `.sock` or `.d`.
 */
export function isName(text: unknown): boolean {
  return typeof text === 'string' && NAME.test(text) && !/\.(sock|d)$/.test(text);
}

/**
 * Converts a text to a name. If the text is not a valid name, the name consists of its letters and
 * digits and the start of its hash.
 */
export function nameFor(text: string): string {
  if (isName(text)) return text;
  const kept = text
    .replace(/[^a-zA-Z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, LONGEST_KEPT);
  return `${kept === '' ? 'x' : kept}-${hashText(text).slice(0, 12)}`;
}

/**
 * Returns the name of a text in the `swap` and `dedup` indexes: the first 32 digits of its hash.
 * The index also holds the whole hash.
 */
export const contentName = (hash: Sha256): string => `sha256-${hash.slice(0, DIGITS)}`;

/** Returns true if a text names content: `sha256-` and digits, within the length of a name. */
export const isContentName = (text: unknown): boolean =>
  typeof text === 'string' && isName(text) && /^sha256-./.test(text);

/** The files that every session directory has. */
const SESSION_FILES = [
  'messages.jsonl',
  'events.jsonl',
  'latest.md',
  'state',
  'cwd',
  'created_at',
  'updated_at',
  'meta.json',
] as const;

/** The files that every context area has. */
const CONTEXT_FILES = [
  'budget',
  'pack.json',
  'pack.md',
  'summary.md',
  'facts.jsonl',
  'decisions.jsonl',
  'todo.md',
  'refs.jsonl',
] as const;

/** Files of a child's folder that may be packed. */
const CHILD_SOURCES: ReadonlySet<string> = new Set(['handoff.md', 'result.md', 'refs.jsonl']);
const SESSION_SOURCES: ReadonlySet<string> = new Set(SESSION_FILES);
const CONTEXT_SOURCES: ReadonlySet<string> = new Set(CONTEXT_FILES);
const NAMED_FOLDERS: ReadonlySet<string> = new Set(['pinned', 'swap', 'dedup']);

/**
 * Returns true if a path stays within its folder: it is relative, without empty, `.` or `..` parts.
 */
export const isPathWithin = (path: string): boolean =>
  !/[\\\0]/.test(path) && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');

/**
 * Returns why a path cannot be the source of a pack's item. Undefined if it can. A child's own
 * messages are never a source.
 */
export function sourceFault(source: string): string | undefined {
  if (source === '') return 'it is empty';
  if (source.startsWith('/')) return 'it is absolute';
  const parts = source.split('/');
  if (parts.includes('')) return 'a part of it is empty';
  if (parts.includes('.') || parts.includes('..')) return 'it holds a part . or ..';
  const [area, folder = '', name = '', file = '', artifact = ''] = parts;
  if (parts.length === 1 && SESSION_SOURCES.has(source)) return undefined;
  if (area !== 'context') return 'it is not a file of the session';
  if (parts.length === 2 && CONTEXT_SOURCES.has(folder)) return undefined;
  if (parts.length === 3 && NAMED_FOLDERS.has(folder) && isName(name)) return undefined;
  if (folder !== 'child') return 'it is not a file of the context area';
  if (parts.length === 4 && isName(name) && CHILD_SOURCES.has(file)) return undefined;
  if (parts.length === 5 && isName(name) && file === 'artifact' && isName(artifact)) return undefined;
  return 'of a child only handoff.md, result.md, refs.jsonl and artifact/NAME can be packed';
}
