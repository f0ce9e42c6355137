import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { BUCKETS } from './grams.js';
import { IndexClosed, IndexDamage } from './index-damage.js';
import { PackedLines, packLines, packsOf } from './packed-lines.js';
import { checksum, decodeGroup, GROUP } from './postings.js';

/** The content of a new segment. */
export interface SegmentParts {
  /** UTF-16 units of all its texts. */
  readonly units: number;
  /** Each entry's JSON. */
  readonly lines: Iterable<string>;
  readonly ats: Float64Array;
  readonly kinds: Uint8Array;
  /** Number of the text of each entry. */
  readonly texts: Uint32Array;
  /** Number of the text of each block. */
  readonly owners: Uint32Array;
  /** Encoded groups of buckets, in order. */
  readonly groups: Iterable<Buffer>;
}

const MAGIC = 0x50_58_49_31;
const GROUPS = BUCKETS / GROUP;
const FOOTER = 40;
const PIECE = 1_048_576;

const bytesOf = (array: Float64Array | Uint32Array | Uint8Array): Buffer =>
  Buffer.from(array.buffer, array.byteOffset, array.byteLength);

/**
 * Writes a segment and returns its size. Yields between pieces, so that a server stays responsive.
 */
export async function writeSegment(
  path: string,
  { units, lines, ats, kinds, texts, owners, groups }: SegmentParts,
): Promise<number> {
  const file = openSync(path, 'wx', 0o600);
  let [written, waiting, pieces]: [number, number, Uint8Array[]] = [0, 0, []];
  const flush = (): void => {
    if (waiting > 0) writeSync(file, Buffer.concat(pieces, waiting));
    [waiting, pieces] = [0, []];
  };
  const add = async (bytes: Uint8Array): Promise<void> => {
    pieces.push(bytes);
    waiting += bytes.length;
    written += bytes.length;
    if (waiting < PIECE) return;
    flush();
    await new Promise((done) => setImmediate(done));
  };
  try {
    const packEnds = new Uint32Array(packsOf(ats.length));
    let pack = 0;
    for (const bytes of packLines(lines)) {
      await add(bytes);
      packEnds[pack] = written;
      pack += 1;
    }
    const groupEnds = new Uint32Array(GROUPS);
    const groupsAt = written;
    let group = 0;
    for (const bytes of groups) {
      if (bytes.length > 0) await add(bytes);
      groupEnds[group] = written - groupsAt;
      group += 1;
    }
    const meta = Buffer.concat([packEnds, ats, groupEnds, texts, owners, kinds].map(bytesOf));
    const footer = Buffer.alloc(FOOTER);
    footer.writeUInt32LE(MAGIC, 0);
    footer.writeUInt32LE(ats.length, 4);
    footer.writeUInt32LE(owners.length, 8);
    footer.writeUInt32LE(checksum(meta), 12);
    footer.writeDoubleLE(units, 16);
    footer.writeDoubleLE(written, 24);
    footer.writeUInt32LE(checksum(footer.subarray(0, 32)), 32);
    await add(meta);
    await add(footer);
    flush();
    return written;
  } finally {
    closeSync(file);
  }
}

/** A segment that is open for reading. Its file never changes. */
export class Segment {
  readonly #file: number;
  readonly #packEnds: Uint32Array;
  readonly #groupEnds: Uint32Array;
  readonly ats: Float64Array;
  readonly kinds: Uint8Array;
  readonly texts: Uint32Array;
  readonly owners: Uint32Array;
  readonly #lines = new PackedLines((pack) => this.#piece(0, this.#packEnds, pack));
  #byText: EntriesByText | undefined;
  #isClosed = false;

  private constructor(
    file: number,
    meta: Buffer,
    { entries, blocks }: { readonly entries: number; readonly blocks: number },
  ) {
    this.#file = file;
    let at = 0;
    const take = (bytes: number): ArrayBuffer => {
      at += bytes;
      return Uint8Array.prototype.slice.call(meta, at - bytes, at).buffer as ArrayBuffer;
    };
    this.#packEnds = new Uint32Array(take(packsOf(entries) * 4));
    this.ats = new Float64Array(take(entries * 8));
    this.#groupEnds = new Uint32Array(take(GROUPS * 4));
    this.texts = new Uint32Array(take(entries * 4));
    this.owners = new Uint32Array(take(blocks * 4));
    this.kinds = new Uint8Array(take(entries));
  }

  /** Opens a segment for reading. Throws IndexDamage and system errors. */
  static open(path: string, size: number): Segment {
    const file = openSync(path, 'r');
    try {
      const footer = readAt(file, size - FOOTER, FOOTER);
      const [magic, entries, blocks, sum] = [0, 4, 8, 12].map((at) => footer.readUInt32LE(at)) as [
        number,
        number,
        number,
        number,
      ];
      const isFooter = magic === MAGIC && footer.readUInt32LE(32) === checksum(footer.subarray(0, 32));
      const metaAt = footer.readDoubleLE(24);
      const bytes = entries * 13 + packsOf(entries) * 4 + GROUPS * 4 + blocks * 4;
      if (!isFooter || metaAt + bytes + FOOTER !== size) throw new IndexDamage(path);
      const meta = readAt(file, metaAt, bytes);
      if (checksum(meta) !== sum) throw new IndexDamage(path);
      return new Segment(file, meta, { entries, blocks });
    } catch (error) {
      closeSync(file);
      throw error;
    }
  }

  get entries(): number {
    return this.ats.length;
  }

  /** Yields the JSON of each entry. @throws {IndexDamage} */
  lines(): Generator<string> {
    return PackedLines.of(this.#pieces(0, this.#packEnds));
  }

  /** Yields the bytes of each group of buckets. */
  groups(): Generator<Buffer> {
    return this.#pieces(this.#packEnds.at(-1) ?? 0, this.#groupEnds);
  }

  /** Returns the line of an entry. @throws {IndexDamage} */
  line(entry: number): unknown {
    return JSON.parse(this.#lines.line(entry));
  }

  /** Returns the bytes of a group of buckets. */
  group(number: number): Buffer {
    return this.#piece(this.#packEnds.at(-1) ?? 0, this.#groupEnds, number);
  }

  /** Returns the blocks of one bucket, ascending. @throws {IndexDamage} */
  blocks(bucket: number): Uint32Array {
    const wanted = bucket % GROUP;
    const [found] = decodeGroup(this.group(Math.floor(bucket / GROUP)), wanted);
    return found?.blocks ?? new Uint32Array();
  }

  /** Returns the entries of the texts of some blocks, ascending. */
  entriesOf(blocks: Uint32Array): Uint32Array {
    this.#byText ??= grouped(this.texts);
    const { starts, entries } = this.#byText;
    const found: number[] = [];
    let before = -1;
    // Most blocks of one text follow one another.
    for (const block of blocks) {
      const text = this.owners[block] ?? 0;
      if (text !== before)
        for (let i = starts[text] ?? 0; i < (starts[text + 1] ?? 0); i += 1) found.push(entries[i] ?? 0);
      before = text;
    }
    return Uint32Array.from(new Set(found)).sort();
  }

  close(): void {
    if (!this.#isClosed) closeSync(this.#file);
    this.#isClosed = true;
  }

  /** Yields consecutive pieces of the file. Reads many of them at a time. */
  *#pieces(base: number, ends: Uint32Array): Generator<Buffer> {
    let window: Buffer = Buffer.alloc(0);
    let [from, at] = [0, 0];
    const all = ends.at(-1) ?? 0;
    for (const end of ends) {
      if (end > from + window.length) {
        from = at;
        window = this.#read(base + from, Math.max(end - from, Math.min(PIECE, all - from)));
      }
      yield window.subarray(at - from, end - from);
      at = end;
    }
  }

  #piece(base: number, ends: Uint32Array, number: number): Buffer {
    const from = number === 0 ? 0 : (ends[number - 1] ?? 0);
    return this.#read(base + from, (ends[number] ?? 0) - from);
  }

  #read(at: number, length: number): Buffer {
    // The system may have reused the file descriptor for another file.
    if (this.#isClosed) throw new IndexClosed();
    if (length === 0) return Buffer.alloc(0);
    return readAt(this.#file, at, length);
  }
}

/** The entries of each text, and the offset at which those of a text begin. */
interface EntriesByText {
  readonly starts: Uint32Array;
  readonly entries: Uint32Array;
}

function grouped(texts: Uint32Array): EntriesByText {
  const last = texts.reduce((most, text) => Math.max(most, text), -1);
  const starts = new Uint32Array(last + 2);
  for (const text of texts) starts[text + 1] = (starts[text + 1] ?? 0) + 1;
  for (let text = 1; text < starts.length; text += 1) starts[text] = (starts[text] ?? 0) + (starts[text - 1] ?? 0);
  const next = starts.slice();
  const entries = new Uint32Array(texts.length);
  for (const [entry, text] of texts.entries()) {
    entries[next[text] ?? 0] = entry;
    next[text] = (next[text] ?? 0) + 1;
  }
  return { starts, entries };
}

function readAt(file: number, at: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(Math.max(0, length));
  if (at < 0 || readSync(file, bytes, 0, bytes.length, at) !== bytes.length) throw new IndexDamage('a file');
  return bytes;
}
