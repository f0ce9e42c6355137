import { hashText } from '../../objects/hashes.js';
import type { Sha256 } from '../../objects/ids.js';

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9._+-]{0,63}$/;
const LONGEST_KEPT = 40;
/** A whole SHA-256 with its prefix is longer than a name may be. */
const DIGITS = 32;

/** Whether a text can name a session, agent, child, record or tool: at most 64 letters, digits and `._+-`, no ending `.sock` or `.d`. */
export function isName(text: unknown): boolean {
  return typeof text === 'string' && NAME.test(text) && !/\.(sock|d)$/.test(text);
}

/** A text as a name: itself where it is one, otherwise what it has of letters and digits with the beginning of its hash. */
export function nameFor(text: string): string {
  if (isName(text)) return text;
  const kept = text
    .replace(/[^a-zA-Z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, LONGEST_KEPT);
  return `${kept === '' ? 'x' : kept}-${hashText(text).slice(0, 12)}`;
}

/** The name of a text in the indexes of `swap` and `dedup`: the first 32 digits of its hash; the index has the whole hash beside it. */
export const contentName = (hash: Sha256): string => `sha256-${hash.slice(0, DIGITS)}`;

/** Whether a text names content: `sha256-` and digits, a name by its length. */
export const isContentName = (text: unknown): boolean => typeof text === 'string' && isName(text) && /^sha256-./.test(text);

/** The files that every session directory has. */
const SESSION_FILES = ['messages.jsonl', 'events.jsonl', 'latest.md', 'state', 'cwd', 'created_at', 'updated_at', 'meta.json'] as const;

/** The files that the context area of every session has. */
const CONTEXT_FILES = ['budget', 'pack.json', 'pack.md', 'summary.md', 'facts.jsonl', 'decisions.jsonl', 'todo.md', 'refs.jsonl'] as const;

/** The files of a child's folder that may be packed. */
const CHILD_SOURCES: ReadonlySet<string> = new Set(['handoff.md', 'result.md', 'refs.jsonl']);
const SESSION_SOURCES: ReadonlySet<string> = new Set(SESSION_FILES);
const CONTEXT_SOURCES: ReadonlySet<string> = new Set(CONTEXT_FILES);
const NAMED_FOLDERS: ReadonlySet<string> = new Set(['pinned', 'swap', 'dedup']);

/** Whether a path stays within the folder that it is of: relative, and no part empty, `.` or `..`. */
export const isPathWithin = (path: string): boolean =>
  !/[\\\0]/.test(path) && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');

/** Why a text is no source of a pack; undefined where it is one. A child's own messages never are. */
export function sourceFault(source: string): string | undefined {
  if (source === '') return 'it is empty';
  if (source.startsWith('/')) return 'it is absolute';
  const parts = source.split('/');
  if (parts.includes('')) return 'a part of it is empty';
  if (parts.includes('.') || parts.includes('..')) return 'it holds a part . or ..';
  const [area, folder = '', name = '', file = '', artifact = ''] = parts;
  if (parts.length === 1 && SESSION_SOURCES.has(source)) return undefined;
  if (area !== 'context') return 'it is no file of the session';
  if (parts.length === 2 && CONTEXT_SOURCES.has(folder)) return undefined;
  if (parts.length === 3 && NAMED_FOLDERS.has(folder) && isName(name)) return undefined;
  if (folder !== 'child') return 'it is no file of the context area';
  if (parts.length === 4 && isName(name) && CHILD_SOURCES.has(file)) return undefined;
  if (parts.length === 5 && isName(name) && file === 'artifact' && isName(artifact)) return undefined;
  return 'of a child only handoff.md, result.md, refs.jsonl and artifact/NAME can be packed';
}
