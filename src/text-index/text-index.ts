import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import * as z from 'zod';
import { LockError, withNamedLock } from '../process/lock.js';
import { parseJson } from '../process/owned-file.js';
import { systemCode } from '../process/system-error.js';
import { keyBucket, LONGEST_LITERAL, literalBuckets } from './grams.js';
import { IndexDamage } from './index-damage.js';
import { mergedParts } from './merge-segments.js';
import type { SegmentDraft } from './segment-draft.js';
import { Segment, writeSegment } from './segment-file.js';

const VERSION = 4;
/** Maximum time that a removal waits for a writer, in milliseconds. */
const REMOVAL_MS = 60_000;
/** Time that a replaced segment stays open, in milliseconds. */
const REPLACED_MS = 60_000;
/** Number of segments of one size class that are merged into one segment of the next class. */
const MERGED_AT_ONCE = 8;
/** Maximum bytes of a merged segment. */
const MOST_MERGED = 512 * 1_048_576;

const count = z.int().nonnegative();
const schema = z.strictObject({
  version: z.literal(VERSION),
  /** The last transaction that the index covers, with its time. */
  position: z.strictObject({ txId: z.int(), txTime: z.int() }),
  /** The number that names the next segment. */
  next: count,
  segments: z.array(z.strictObject({ name: z.string(), bytes: count, entries: count, units: count })),
});

type Manifest = z.output<typeof schema>;
/** The last transaction that an index covers. */
export type IndexPosition = Manifest['position'];

/** An entry whose text may match a search. */
export interface Candidate {
  readonly segment: Segment;
  readonly entry: number;
}

const NONE: Manifest = { version: VERSION, position: { txId: -1, txTime: 0 }, next: 0, segments: [] };
const MANIFEST = 'manifest.json';

/** Returns the numbers in both lists. Both ascend. */
function intersect(a: Uint32Array, b: Uint32Array): Uint32Array {
  const found = new Uint32Array(Math.min(a.length, b.length));
  let [i, j, size] = [0, 0, 0];
  while (i < a.length && j < b.length) {
    const [x = 0, y = 0] = [a[i], b[j]];
    if (x === y) found[size++] = x;
    if (x <= y) i += 1;
    if (y <= x) j += 1;
  }
  return found.subarray(0, size);
}

/** Look-ups of one literal in a segment. More would hardly leave out another text. */
const MOST_LOOKUPS = 16;
/** Blocks that are compared rather than left out by another look-up. */
const FEW_BLOCKS = 2;

/** Returns the blocks in all of some buckets, or a few more. */
function blocksWith(segment: Segment, buckets: readonly number[]): Uint32Array {
  let found: Uint32Array | undefined;
  for (const bucket of buckets.slice(0, MOST_LOOKUPS)) {
    const blocks = segment.blocks(bucket);
    found = found === undefined ? blocks : intersect(found, blocks);
    if (found.length <= FEW_BLOCKS) break;
  }
  return found ?? new Uint32Array();
}

/**
 * An index of texts in a folder. Only the folder's owner can read it. It has hashes of consecutive
 * characters and no text. Writers use a lock. Readers need no lock, because a segment never changes
 * and the manifest names the current segments.
 */
export class TextIndex {
  readonly #folder: string;
  #manifest: Manifest = NONE;
  #open = new Map<string, Segment>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Opens the index of a folder, which need not exist. @throws {IndexDamage} */
  static async open(folder: string): Promise<TextIndex> {
    const index = new TextIndex(folder);
    await index.reload();
    return index;
  }

  /** The last transaction that it covers; before the first one for an empty index. */
  get position(): IndexPosition {
    return this.#manifest.position;
  }

  /** Bytes on disk, UTF-16 units of the indexed texts, and number of entries. */
  get size(): { readonly bytes: number; readonly units: number; readonly entries: number } {
    const sum = (of: 'bytes' | 'units' | 'entries'): number =>
      this.#manifest.segments.reduce((n, one) => n + one[of], 0);
    return { bytes: sum('bytes'), units: sum('units'), entries: sum('entries') };
  }

  /** Loads the segments that other processes have written. @throws {IndexDamage} */
  async reload(): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      const manifest = await this.#read();
      try {
        const known = manifest.segments.map(({ name, bytes }) => {
          const segment = this.#open.get(name) ?? Segment.open(join(this.#folder, name), bytes);
          this.#open.set(name, segment);
          return name;
        });
        this.#forget(new Set(known));
        this.#manifest = manifest;
        return;
      } catch (error) {
        // Another process merged segments after the manifest was read.
        if (systemCode(error) === 'ENOENT' && attempt < 3) continue;
        throw error instanceof IndexDamage ? error : new IndexDamage(this.#folder, { cause: error });
      }
    }
  }

  async #read(): Promise<Manifest> {
    let text: string;
    try {
      text = await readFile(join(this.#folder, MANIFEST), 'utf8');
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return NONE;
      throw error;
    }
    const manifest = parseJson(text, schema);
    if (manifest === undefined) throw new IndexDamage(MANIFEST);
    return manifest;
  }

  /**
   * Runs `write` while no other process writes to this index.
   *
   * @throws {LockError} `held`
   */
  async writing<T>(limitMs: number, write: () => Promise<T>): Promise<T> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    return withNamedLock(join(this.#folder, 'lock'), { limitMs }, async () => {
      await this.reload();
      await this.#removeStrays();
      return write();
    });
  }

  /** Removes files that the manifest does not name, such as those of a killed process. */
  async #removeStrays(): Promise<void> {
    const known = new Set(this.#manifest.segments.map(({ name }) => name));
    for (const name of await readdir(this.#folder))
      if (name.endsWith('.segment') && !known.has(name)) await rm(join(this.#folder, name), { force: true });
  }

  /** Adds a draft as a segment and sets the position. Call it within `writing`. */
  async add(draft: SegmentDraft, position: IndexPosition): Promise<void> {
    const { next, segments } = this.#manifest;
    if (draft.entries === 0) return this.#save({ ...this.#manifest, position });
    const name = `${next}.segment`;
    const parts = draft.parts();
    const bytes = await writeSegment(join(this.#folder, name), parts);
    const added = { name, bytes, entries: parts.ats.length, units: parts.units };
    await this.#save({ ...this.#manifest, position, next: next + 1, segments: [...segments, added] });
    await this.#merge();
  }

  /**
   * Merges the newest segments once `MERGED_AT_ONCE` of them are in one size class or smaller ones.
   */
  async #merge(): Promise<void> {
    const { next, segments } = this.#manifest;
    const level = ({ bytes }: Manifest['segments'][number]): number => Math.floor(Math.log2(bytes) / 3);
    const merged = [...new Set(segments.map(level))]
      .sort((a, b) => a - b)
      .map((most) => segments.slice(segments.findLastIndex((one) => level(one) > most) + 1))
      .find((tail) => tail.length >= MERGED_AT_ONCE);
    if (merged === undefined || merged.reduce((sum, { bytes }) => sum + bytes, 0) > MOST_MERGED) return;
    const opened = merged.map(({ name }) => this.#open.get(name)).filter((one) => one !== undefined);
    const units = merged.reduce((sum, one) => sum + one.units, 0);
    const name = `${next}.segment`;
    const bytes = await writeSegment(join(this.#folder, name), mergedParts(opened, units));
    const entries = merged.reduce((sum, one) => sum + one.entries, 0);
    await this.#save({
      ...this.#manifest,
      next: next + 1,
      segments: [...segments.slice(0, -merged.length), { name, bytes, entries, units }],
    });
    await this.#removeStrays();
    await this.#merge();
  }

  async #save(manifest: Manifest): Promise<void> {
    await writeFileAtomic(join(this.#folder, MANIFEST), JSON.stringify(manifest), { mode: 0o600 });
    await this.reload();
  }

  /** Removes the whole index. Call it within `writing`. The next writer starts from nothing. */
  async clear(): Promise<void> {
    await rm(join(this.#folder, MANIFEST), { force: true });
    this.#manifest = NONE;
    this.#forget(new Set());
    await this.#removeStrays();
  }

  /** Removes the index of a folder, which may be damaged. */
  static async remove(folder: string): Promise<void> {
    const index = new TextIndex(folder);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await withNamedLock(join(folder, 'lock'), { limitMs: REMOVAL_MS }, () => index.clear());
  }

  /** Removes the index unless another process writes to it. */
  async discard(): Promise<void> {
    await this.writing(0, () => this.clear()).catch((error: unknown) => {
      if (!(error instanceof LockError || error instanceof IndexDamage)) throw error;
    });
  }

  /**
   * Returns the entries that may contain all of some literals. Undefined if all are too short to
   * look up. @throws {IndexDamage}
   */
  withLiterals(literals: readonly string[]): readonly Candidate[] | undefined {
    const wanted = literals.map((one) => literalBuckets(one.slice(0, LONGEST_LITERAL))).filter((one) => one.length > 0);
    if (wanted.length === 0) return undefined;
    return this.#segments().flatMap((segment) => {
      let entries: Uint32Array | undefined;
      for (const buckets of wanted) {
        const found = segment.entriesOf(blocksWith(segment, buckets));
        entries = entries === undefined ? found : intersect(entries, found);
        if (entries.length === 0) break;
      }
      return Array.from(entries ?? [], (entry) => ({ segment, entry }));
    });
  }

  /** Returns the entries that may have a key. @throws {IndexDamage} */
  withKey(key: string): readonly Candidate[] {
    const bucket = keyBucket(key);
    return this.#segments().flatMap((segment) =>
      Array.from(segment.entriesOf(segment.blocks(bucket)), (entry) => ({ segment, entry })),
    );
  }

  #segments(): readonly Segment[] {
    return this.#manifest.segments.flatMap(({ name }) => this.#open.get(name) ?? []);
  }

  #forget(kept: ReadonlySet<string>): void {
    for (const [name, segment] of this.#open) {
      if (kept.has(name)) continue;
      this.#open.delete(name);
      // A search in this process may still read the segment.
      setTimeout(() => segment.close(), REPLACED_MS).unref();
    }
  }

  close(): void {
    for (const segment of this.#open.values()) segment.close();
    this.#open.clear();
    this.#manifest = NONE;
  }
}
