import { sourcedIdentityHash } from '../../objects/hashes.js';
import type { CanonicalPath, ObjectId } from '../../objects/ids.js';
import { filesystemSource, type Source } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import type { FoundVersion } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';

/** A call that added many objects to the index. */
export interface ListingCall {
  readonly id: ObjectId;
  readonly added: readonly ObjectId[];
}

/** Number of added objects from which reading the output costs less than reading each source. */
const LEAST_ADDED = 64;
/** Maximum output per added object in UTF-16 units. Longer outputs have more text than names. */
const MOST_UNITS = 512;

/** Returns the calls among some steps that added many objects. */
export function listingCalls(steps: Iterable<Step>): readonly ListingCall[] {
  const calls: ListingCall[] = [];
  for (const { call, changes } of steps)
    if (call !== undefined && changes.index !== undefined && changes.index.length >= LEAST_ADDED)
      calls.push({ id: call.id, added: changes.index });
  return calls;
}

/**
 * Returns the beginning of a path, if the rest of the path is one of the given lines. Undefined if
 * no line fits.
 */
function beginningOf(path: string, lines: ReadonlySet<string>): string | undefined {
  for (let from = 0; from >= 0; from = path.indexOf('/', from) + 1 || -1)
    if (lines.has(path.slice(from))) return path.slice(0, from);
  return undefined;
}

/**
 * Returns the sources of wanted files that the outputs of listings name.
 *
 * The id of a file is the hash of its source. So if a path from any output gives a wanted id, it is
 * the path of that file. One source per listing is read from the database; it shows the folder of
 * the listing's lines. The result lacks files that an output names in another form.
 */
export async function listedSources(
  snapshot: Pick<StoreSnapshot, 'heads' | 'sourcesOf' | 'versionsOf'>,
  calls: readonly ListingCall[],
  wanted: ReadonlySet<ObjectId>,
): Promise<ReadonlyMap<ObjectId, Source>> {
  const listed = new Map<ObjectId, Source>();
  const samples = new Map(
    calls.flatMap(({ id, added }) => {
      const first = added.find((one) => wanted.has(one));
      return first === undefined ? [] : [[id, first] as const];
    }),
  );
  if (samples.size === 0) return listed;
  const [heads, sources] = await Promise.all([
    snapshot.heads([...samples.keys()]),
    snapshot.sourcesOf([...samples.values()]),
  ]);
  const short = calls.flatMap(({ id, added }) => {
    const head = heads.get(id);
    return head === undefined || (head.marks.size ?? 0) > added.length * MOST_UNITS ? [] : [head];
  });
  // If the outputs cannot be read, the caller reads every source.
  const read = await snapshot.versionsOf(short).catch(() => new Map<ObjectId, FoundVersion>());
  for (const [id, { version }] of read) {
    const sample = sources.get(samples.get(id) as ObjectId)?.source;
    const lines = new Set(version.content?.split('\n').map((line) => (line.startsWith('./') ? line.slice(2) : line)));
    const folder = sample === undefined ? undefined : beginningOf(sample.path, lines);
    if (sample === undefined || folder === undefined) continue;
    const { type, filesystemId } = sample;
    for (const line of lines) {
      const path = `${folder}${line}` as CanonicalPath;
      const file = sourcedIdentityHash('file', { type, filesystemId, path }) as string as ObjectId;
      if (wanted.has(file)) listed.set(file, filesystemSource(filesystemId, path));
    }
  }
  return listed;
}
