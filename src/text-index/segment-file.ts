import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { BUCKETS } from './grams.js';
import { IndexClosed, IndexDamage } from './index-damage.js';
import { checksum, decodeGroup, GROUP } from './postings.js';

/** The content of a segment that is written. */
export interface SegmentParts {
  /** UTF-16 units of all its texts. */
  readonly units: number;
  /** Each entry's checksum and JSON. */
  readonly lines: Iterable<Uint8Array>;
  readonly ats: Float64Array;
  readonly kinds: Uint8Array;
  /** The text of each entry. */
  readonly texts: Uint32Array;
  /** The text of each block. */
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

/** Writes a segment, and returns its size. Yields between pieces, so that a server can answer. */
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
    const lineEnds = new Uint32Array(ats.length);
    let entry = 0;
    for (const line of lines) {
      await add(line);
      lineEnds[entry] = written;
      entry += 1;
    }
    const groupEnds = new Uint32Array(GROUPS);
    const groupsAt = written;
    let group = 0;
    for (const bytes of groups) {
      if (bytes.length > 0) await add(bytes);
      groupEnds[group] = written - groupsAt;
      group += 1;
    }
    const meta = Buffer.concat([lineEnds, ats, groupEnds, texts, owners, kinds].map(bytesOf));
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
  readonly #lineEnds: Uint32Array;
  readonly #groupEnds: Uint32Array;
  readonly ats: Float64Array;
  readonly kinds: Uint8Array;
  readonly texts: Uint32Array;
  readonly owners: Uint32Array;
  #byText: ReadonlyMap<number, readonly number[]> | undefined;
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
    this.#lineEnds = new Uint32Array(take(entries * 4));
    this.ats = new Float64Array(take(entries * 8));
    this.#groupEnds = new Uint32Array(take(GROUPS * 4));
    this.texts = new Uint32Array(take(entries * 4));
    this.owners = new Uint32Array(take(blocks * 4));
    this.kinds = new Uint8Array(take(entries));
  }

  /** @throws {IndexDamage} Throws system errors. */
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
      const bytes = entries * 17 + GROUPS * 4 + blocks * 4;
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

  /** Returns the bytes of an entry's line, with its checksum. */
  lineBytes(entry: number): Buffer {
    const from = entry === 0 ? 0 : (this.#lineEnds[entry - 1] ?? 0);
    return this.#read(from, (this.#lineEnds[entry] ?? 0) - from);
  }

  /** Returns the line of an entry. @throws {IndexDamage} */
  line(entry: number): unknown {
    const bytes = this.lineBytes(entry);
    const json = bytes.subarray(4);
    if (bytes.length < 5 || bytes.readUInt32LE(0) !== checksum(json)) throw new IndexDamage('an entry');
    return JSON.parse(json.toString('utf8'));
  }

  /** Returns the bytes of a group of buckets. */
  group(number: number): Buffer {
    const lines = this.#lineEnds.at(-1) ?? 0;
    const from = number === 0 ? 0 : (this.#groupEnds[number - 1] ?? 0);
    return this.#read(lines + from, (this.#groupEnds[number] ?? 0) - from);
  }

  /** Returns the blocks of one bucket, ascending. @throws {IndexDamage} */
  blocks(bucket: number): Uint32Array {
    const wanted = bucket % GROUP;
    for (const found of decodeGroup(this.group(Math.floor(bucket / GROUP)), this.owners.length))
      if (found.bucket === wanted) return found.blocks;
    return new Uint32Array();
  }

  /** Returns the entries of the texts of some blocks, ascending. */
  entriesOf(blocks: Uint32Array): Uint32Array {
    this.#byText ??= grouped(this.texts);
    const byText = this.#byText;
    const texts = new Set<number>();
    for (const block of blocks) texts.add(this.owners[block] ?? 0);
    return Uint32Array.from([...texts].flatMap((text) => byText.get(text) ?? [])).sort();
  }

  close(): void {
    if (!this.#isClosed) closeSync(this.#file);
    this.#isClosed = true;
  }

  #read(at: number, length: number): Buffer {
    // The system may have given its number to another file.
    if (this.#isClosed) throw new IndexClosed();
    if (length === 0) return Buffer.alloc(0);
    return readAt(this.#file, at, length);
  }
}

function grouped(texts: Uint32Array): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, number[]>();
  for (const [entry, text] of texts.entries()) {
    const entries = found.get(text);
    if (entries === undefined) found.set(text, [entry]);
    else entries.push(entry);
  }
  return found;
}

function readAt(file: number, at: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(Math.max(0, length));
  if (at < 0 || readSync(file, bytes, 0, bytes.length, at) !== bytes.length) throw new IndexDamage('a file');
  return bytes;
}
