import { hashText } from '../../objects/hashes.js';
import { isJsonObject } from '../../values/json-object.js';
import { ownMember } from '../../values/own-member.js';
import { linesOf } from './check-file.js';
import { CortexfsError } from './errors.js';
import type { Fields } from './read-messages.js';
import { strictJson } from './strict-json.js';

/** The rules of `context/gc.policy` for removing derived files. */
export interface GcPolicy {
  /** The time that packs and `swap` chunks stay after their last write, in milliseconds. */
  readonly packTtl: number;
  readonly swapTtl: number;
  /** A blob with at least this number of references in the index is kept. */
  readonly dedupMinRefs: number;
}

/** A file of a removable kind, and why it is removed or kept. */
export interface GcFinding {
  readonly path: string;
  readonly reason: string;
}

/** The plan of a collection. */
export interface GcPlan {
  readonly collected: readonly (GcFinding & { readonly bytes: number; readonly sha256: string })[];
  readonly kept: readonly GcFinding[];
}

/** The files of a directory with their write times. */
export interface DatedFiles {
  readonly files: ReadonlyMap<string, string>;
  readonly writtenAt: (path: string) => number;
}

const POLICY_FILE = 'context/gc.policy';
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const wrong = (line: number, message: string): CortexfsError =>
  new CortexfsError('invalid-policy', `${POLICY_FILE}, line ${line}: ${message}; nothing was changed`);

function duration(line: number, key: string, value: string): number {
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(value) ?? [];
  const ms = value === '0' ? 0 : Number(count) * (ownMember(UNITS, unit) ?? Number.NaN);
  if (Number.isSafeInteger(ms)) return ms;
  throw wrong(line, `${key} must be a number with the unit s, m, h or d, not ${JSON.stringify(value)}`);
}

/**
 * Parses a policy: `key=value` lines, with empty lines and # comments between them. If a rule is
 * missing, files of its kind may be removed at once.
 * @throws {CortexfsError} `invalid-policy`, with the line; also if the policy would remove raw
 *   files, because history is never deleted (SSOT §2.6)
 */
export function readPolicy(text: string): GcPolicy {
  let policy: GcPolicy = { packTtl: 0, swapTtl: 0, dedupMinRefs: 1 };
  const seen = new Set<string>();
  for (const [i, own] of text.split('\n').entries()) {
    const said = own.trim();
    if (said === '' || said.startsWith('#')) continue;
    const [, key = '', value = ''] = /^([a-z_]+)\s*=\s*(\S+)$/.exec(said) ?? [];
    const line = i + 1;
    if (seen.has(key)) throw wrong(line, `${key} appears twice`);
    seen.add(key);
    if (key === 'pack_ttl') policy = { ...policy, packTtl: duration(line, key, value) };
    else if (key === 'swap_ttl') policy = { ...policy, swapTtl: duration(line, key, value) };
    else if (key === 'dedup_min_refs' || key === 'keep_messages' || key === 'keep_events') {
      if (!/^\d{1,9}$/.test(value)) throw wrong(line, `${key} must be a whole number, not ${JSON.stringify(value)}`);
      if (key === 'dedup_min_refs') policy = { ...policy, dedupMinRefs: Number(value) };
      else if (Number(value) === 0)
        throw wrong(
          line,
          `${key}=0 would remove raw history, which is append-only (SSOT §2.6): ` +
            `copy it with palimpsest export, and set ${key}=1`,
        );
    } else
      throw wrong(
        line,
        `${JSON.stringify(said)} is not a rule: ` +
          'use pack_ttl, swap_ttl, dedup_min_refs, keep_messages or keep_events',
      );
  }
  return policy;
}

const fieldsOf = (text: string | undefined): readonly Fields[] =>
  linesOf(text ?? '').map((line) => JSON.parse(line) as Fields);

/** Returns every path that other files refer to: sources of the pack, and paths of references. */
function namedPaths(files: ReadonlyMap<string, string>): ReadonlySet<string> {
  const pack = JSON.parse(files.get('context/pack.json') ?? '{}') as { readonly items?: readonly Fields[] };
  return new Set([
    ...(pack.items ?? []).map(({ source }) => String(source)),
    ...fieldsOf(files.get('context/refs.jsonl')).map(({ path }) => String(path)),
  ]);
}

const isRaw = (source: unknown): source is string => source === 'messages.jsonl' || source === 'events.jsonl';

/** Returns a range of lines of a raw file; undefined if the file lacks some of them. */
function rawLines(
  files: ReadonlyMap<string, string>,
  source: string,
  [first, last]: readonly [number, number],
): string | undefined {
  const lines = linesOf(files.get(source) ?? '');
  if (!(first >= 1 && first <= last && last <= lines.length)) return undefined;
  return lines
    .slice(first - 1, last)
    .map((line) => `${line}\n`)
    .join('');
}

/**
 * The fields of a chunk that only refers to raw lines: by line numbers, or by the ids of the first
 * and last event.
 */
const REFERENCE: ReadonlySet<string> = new Set(['source', 'start', 'end', 'start_event', 'end_event', 'hash']);

/** Returns true if a chunk only refers to raw lines and its hash matches them. */
function isReference(text: string, files: ReadonlyMap<string, string>): boolean {
  const read = strictJson(text);
  if (!read.ok || !isJsonObject(read.value) || Object.keys(read.value).some((key) => !REFERENCE.has(key))) return false;
  const { source, start, end, start_event: from, end_event: to, hash } = read.value;
  if (!isRaw(source) || typeof hash !== 'string') return false;
  const ids = from === undefined && to === undefined ? [] : fieldsOf(files.get(source)).map(({ id }) => id);
  const range =
    ids.length === 0
      ? ([Number(start), Number(end)] as const)
      : ([ids.indexOf(from) + 1, ids.indexOf(to) + 1] as const);
  const lines = rawLines(files, source, range);
  return lines !== undefined && hashText(lines) === hash.replace(/^sha256[:-]/, '');
}

/**
 * Returns true if the raw files can rebuild a chunk byte for byte. The chunk must hold the lines
 * that the index claims, or refer to lines. A claim without lines cannot be verified.
 */
function isRebuildable(name: string, text: string, files: ReadonlyMap<string, string>): boolean {
  if (isReference(text, files)) return true;
  return fieldsOf(files.get('context/swap/index.jsonl')).some(({ id, source, range }) => {
    const [, first, last] = /^(\d+)-(\d+)$/.exec(String(range)) ?? [];
    return id === name && isRaw(source) && rawLines(files, source, [Number(first), Number(last)]) === text;
  });
}

const age = (ms: number): string => `${Math.floor(ms / 1_000)} s`;

/**
 * Plans which derived files are removed: packs, chunks that the raw files can rebuild, and blobs
 * without references. Raw files, child agents' files and other kinds always stay. Pure.
 */
export function planCollection({ files, writtenAt }: DatedFiles, policy: GcPolicy, now: number): GcPlan {
  const collected: GcPlan['collected'][number][] = [];
  const kept: GcFinding[] = [];
  const named = namedPaths(files);
  const refs = new Map(
    fieldsOf(files.get('context/dedup/index.jsonl')).map(({ hash, refs: own }) => [
      String(hash),
      (own as readonly string[]).length,
    ]),
  );
  const decide = (path: string, reason: string, stays: string | undefined): void => {
    const text = files.get(path) ?? '';
    if (stays === undefined) collected.push({ path, reason, bytes: Buffer.byteLength(text), sha256: hashText(text) });
    else kept.push({ path, reason: stays });
  };
  const young = (path: string, key: string, ttl: number): string | undefined => {
    const old = Math.max(0, now - writtenAt(path));
    return old < ttl ? `written ${age(old)} ago, ${key} is ${age(ttl)}` : undefined;
  };
  for (const [path, text] of files) {
    const chunk = /^context\/swap\/chunk\/([^/]+)$/.exec(path)?.[1];
    const blob = /^context\/dedup\/blob\/([^/]+)$/.exec(path)?.[1];
    if (/^context\/pack\.(?:json|md)$/.test(path))
      decide(path, 'palimpsest pack can make the pack again', young(path, 'pack_ttl', policy.packTtl));
    if (chunk !== undefined) {
      const isLost = !isRebuildable(chunk, text, files);
      decide(
        path,
        'it can be rebuilt from the raw files',
        isLost ? 'it cannot be rebuilt from the raw files' : young(path, 'swap_ttl', policy.swapTtl),
      );
    }
    if (blob !== undefined) {
      const count = refs.get(blob) ?? 0;
      const isNamed = named.has(path) || named.has(`context/dedup/${blob}`);
      const stays = isNamed
        ? 'a pack or reference names it'
        : count >= policy.dedupMinRefs
          ? `its index has ${count} references`
          : undefined;
      decide(path, `its index has ${count} references, dedup_min_refs is ${policy.dedupMinRefs}`, stays);
    }
  }
  return { collected, kept };
}
