import { bareLines } from './text-edits.js';

/** The change of one file in a patch envelope (`*** Begin Patch`). */
type PatchChange =
  | { readonly kind: 'add'; readonly path: string; readonly text: string }
  | { readonly kind: 'delete'; readonly path: string }
  | {
      readonly kind: 'update';
      readonly path: string;
      readonly moveTo: string | undefined;
      readonly hunks: readonly PatchHunk[];
    };

/**
 * The lines to find, and their replacement. They are searched below the contexts that `@@` lines
 * give.
 */
export interface PatchHunk {
  readonly contexts: readonly string[];
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly atEnd: boolean;
}

interface DraftHunk {
  contexts: string[];
  before: string[];
  after: string[];
  atEnd: boolean;
}

const HEADER = /^\*\*\* (Add|Delete|Update) File: (.+?)\s*$/;

function hunksOf(lines: readonly string[]): readonly PatchHunk[] | undefined {
  const hunks: DraftHunk[] = [];
  const open = (): DraftHunk => {
    const hunk: DraftHunk = { contexts: [], before: [], after: [], atEnd: false };
    hunks.push(hunk);
    return hunk;
  };
  let hunk: DraftHunk | undefined;
  for (const line of lines) {
    if (line.startsWith('@@')) {
      if (hunk === undefined || hunk.before.length > 0 || hunk.after.length > 0) hunk = open();
      const context = line.slice(2).replace(/^ /, '');
      if (context.trim() !== '') hunk.contexts.push(context);
      continue;
    }
    hunk ??= open();
    const text = line.slice(1);
    if (line === '*** End of File') hunk.atEnd = true;
    else if (line.startsWith('+')) hunk.after.push(text);
    else if (line.startsWith('-')) hunk.before.push(text);
    else if (line.startsWith(' ') || line === '') {
      hunk.before.push(text);
      hunk.after.push(text);
    } else return undefined;
  }
  return hunks;
}

/** Parses a patch envelope. Undefined if the text is malformed or not an envelope. */
export function parsePatch(text: string): readonly PatchChange[] | undefined {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const begin = lines.findIndex((line) => line.trim() === '*** Begin Patch');
  if (begin < 0) return undefined;
  const changes: PatchChange[] = [];
  let i = begin + 1;
  while (i < lines.length && lines[i]?.trim() !== '*** End Patch') {
    const header = HEADER.exec(lines[i] ?? '');
    i += 1;
    if (header === null) {
      if ((lines[i - 1] ?? '').trim() === '' || lines[i - 1]?.startsWith('*** Environment ID')) continue;
      return undefined;
    }
    const [, kind, path = ''] = header;
    const move = kind === 'Update' ? /^\*\*\* Move to: (.+?)\s*$/.exec(lines[i] ?? '')?.[1] : undefined;
    if (move !== undefined) i += 1;
    const body: string[] = [];
    for (; i < lines.length && !/^\*\*\* (?:(?:Add|Delete|Update) File: |End Patch)/.test(lines[i] ?? ''); i++)
      body.push(lines[i] ?? '');
    if (kind === 'Delete') changes.push({ kind: 'delete', path });
    else if (kind === 'Add') {
      const added = body.filter((line) => line.startsWith('+')).map((line) => `${line.slice(1)}\n`);
      changes.push({ kind: 'add', path, text: added.join('') });
    } else {
      const hunks = hunksOf(body);
      if (hunks === undefined) return undefined;
      changes.push({ kind: 'update', path, moveTo: move, hunks });
    }
  }
  return changes;
}

const ENVELOPE_LINE = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/;
const DIFF_LINE = /^(?:\+\+\+|---) (?:[ab]\/)?([^\t]+)/;

/**
 * Returns the files that a patch names, each once. The patch is an envelope or a unified diff, and
 * may be malformed.
 */
export function patchedPaths(text: string): readonly string[] {
  const named = text.split('\n').map((line) => (ENVELOPE_LINE.exec(line) ?? DIFF_LINE.exec(line))?.[1]?.trim());
  return [...new Set(named.filter((path) => path !== undefined && path !== '/dev/null'))] as readonly string[];
}

/**
 * The comparisons of lines, in the order in which the tool tries them. Each is less strict than the
 * previous one.
 */
const PASSES: readonly ((line: string) => string)[] = [(line) => line, (line) => line.trimEnd(), (line) => line.trim()];

/** Where to search for lines. With `atEnd`, the end of the file is tried first. */
interface Place {
  readonly from: number;
  readonly atEnd: boolean;
}

function find(lines: readonly string[], wanted: readonly string[], { from, atEnd }: Place): number | undefined {
  if (wanted.length === 0) return from;
  const last = lines.length - wanted.length;
  for (const pass of PASSES) {
    const needle = wanted.map(pass);
    const matches = (at: number): boolean => needle.every((line, i) => pass(lines[at + i] ?? '') === line);
    if (atEnd && last >= from && matches(last)) return last;
    for (let at = from; at <= last; at++) if (matches(at)) return at;
  }
  return undefined;
}

/**
 * Applies the hunks of a patch in order. Each hunk is searched below the previous one and below its
 * contexts. Undefined if a hunk is not found, because the result is then unknown.
 */
export function patched(text: string, hunks: readonly PatchHunk[]): string | undefined {
  const lines = bareLines(text);
  const result: string[] = [];
  let at = 0;
  for (const { contexts, before, after, atEnd } of hunks) {
    let from = at;
    for (const context of contexts) {
      const found = find(lines, [context], { from, atEnd: false });
      if (found === undefined) return undefined;
      from = found + 1;
    }
    const start =
      before.length === 0 ? (contexts.length === 0 ? lines.length : from) : find(lines, before, { from, atEnd });
    if (start === undefined) {
      // If a hunk's last line is empty, it may stand for the end of the file.
      const shorter = before.at(-1) === '' ? find(lines, before.slice(0, -1), { from, atEnd }) : undefined;
      if (shorter === undefined) return undefined;
      result.push(...lines.slice(at, shorter), ...(after.at(-1) === '' ? after.slice(0, -1) : after));
      at = shorter + before.length - 1;
      continue;
    }
    result.push(...lines.slice(at, start), ...after);
    at = start + before.length;
  }
  return `${[...result, ...lines.slice(at)].join('\n')}\n`;
}
