import type { ContextRecord } from '../../objects/context-record.js';
import { ownMember } from '../../values/own-member.js';
import type { Projection } from '../projection/project-session.js';
import { linesOf } from './check-file.js';
import { fileOf } from './context-files.js';
import { recordKey } from './import-records.js';
import { type KeptImport, keptFiles } from './kept-import.js';
import type { Fields } from './read-messages.js';

/**
 * Line files that keep their imported lines. `name` is the field that identifies a line; `newer`
 * says which line wins if the session generates one with the same name.
 */
const MERGED: Readonly<Record<string, { readonly name: string; readonly newer: 'kept' | 'made' }>> = {
  'context/facts.jsonl': { name: 'id', newer: 'kept' },
  'context/decisions.jsonl': { name: 'id', newer: 'kept' },
  'context/refs.jsonl': { name: 'id', newer: 'made' },
  'context/swap/index.jsonl': { name: 'id', newer: 'made' },
  'context/dedup/index.jsonl': { name: 'hash', newer: 'made' },
};
/** Files that the session replaces only if it has content for them. */
const IF_EMPTY: ReadonlySet<string> = new Set(['context/summary.md', 'cwd', 'latest.md']);

function merged(
  kept: string,
  made: string,
  { name, newer }: { readonly name: string; readonly newer: 'kept' | 'made' },
): string {
  const named = (text: string) =>
    linesOf(text).map((line) => [String((JSON.parse(line) as Fields)[name]), line] as const);
  const own = new Map(named(made));
  const before = named(kept);
  const names = new Set(before.map(([id]) => id));
  return fileOf([
    ...before.map(([id, line]) => (newer === 'made' ? (own.get(id) ?? line) : line)),
    ...[...own].flatMap(([id, line]) => (names.has(id) ? [] : [line])),
  ]);
}

function mergedMeta(kept: string, made: string): string {
  const both = { ...(JSON.parse(kept) as Fields), ...(JSON.parse(made) as Fields) };
  const { client } = JSON.parse(kept) as Fields;
  return `${JSON.stringify(client === undefined ? both : { ...both, client }, null, 2)}\n`;
}

/**
 * Returns the files of a session that continued after an import: the generated files, and the
 * imported ones that are still valid. Imported pinned files have become objects of the session, and
 * the pack is generated anew.
 */
export function overKept(
  made: ReadonlyMap<string, string>,
  kept: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const files = new Map(made);
  for (const [path, before] of kept) {
    const now = made.get(path);
    const how = ownMember(MERGED, path);
    if (path.startsWith('context/pinned/')) continue;
    if (now === undefined || (now === '' && IF_EMPTY.has(path)) || path === 'created_at') files.set(path, before);
    else if (path === 'meta.json') files.set(path, mergedMeta(before, now));
    else if (how !== undefined) files.set(path, merged(before, now, how));
  }
  return files;
}

/** Returns the imported files that may be packed: the context area without an earlier pack. */
export function keptSources(imports: readonly KeptImport[]): ReadonlyMap<string, string> {
  const isSource = (path: string): boolean =>
    path.startsWith('context/') && !/^context\/(?:pack\.(?:json|md)|budget)$/.test(path);
  return new Map([...keptFiles(imports)].filter(([path]) => isSource(path)));
}

/** Returns true if no step and no record came after the last import. */
export function isAsImported(
  { seq }: Projection,
  records: readonly ContextRecord[],
  imports: readonly KeptImport[],
): boolean {
  const last = imports.at(-1);
  if (last === undefined || last.upto !== seq || last.isCut === true) return false;
  const known = new Set(last.records);
  return records.every((record) => known.has(recordKey(record)));
}
