import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { builtFront } from './front-process.js';

/**
 * Writes keys and values of every table of RocksDB in a folder, decompressed. Fails if a table has
 * an entry that an iterator does not show, such as a deleted one.
 */
const DUMP = `
(import '(org.rocksdb Options ReadOptions RocksDB SstFileReader))
(RocksDB/loadLibrary)
(let [out (java.io.BufferedOutputStream. System/out)]
  (doseq [file (file-seq (java.io.File. (System/getProperty "dumped")))
          :when (.endsWith (.getName file) ".sst")]
    (with-open [options (Options.) reads (ReadOptions.) reader (SstFileReader. options)]
      (.open reader (.getPath file))
      (let [properties (.getTableProperties reader)
            seen (volatile! 0)]
        (with-open [at (.newIterator reader reads)]
          (.seekToFirst at)
          (while (.isValid at)
            (.write out (.key at)) (.write out 10) (.write out (.value at)) (.write out 10)
            (vswap! seen inc)
            (.next at)))
        (when-not (= @seen (.getNumEntries properties))
          (throw (ex-info (str file " hides " (- (.getNumEntries properties) @seen) " entries") {}))))))
  (.flush out))
`;

/** Returns everything in the tables of the databases of a folder. */
async function tables(dataDir: string): Promise<Buffer> {
  const { java, installation } = await builtFront();
  // The library unpacks itself there.
  const scratch = mkdtempSync(join(tmpdir(), 'front-tmp-'));
  try {
    const { stdout } = await promisify(execFile)(
      java.command,
      [
        '-XX:TieredStopAtLevel=1',
        `-Ddumped=${dataDir}`,
        `-Djava.io.tmpdir=${scratch}`,
        '-cp',
        installation.jars.join(delimiter),
        'clojure.main',
        '-e',
        DUMP,
      ],
      { encoding: 'buffer', maxBuffer: 1_073_741_824 },
    );
    return stdout;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** A gzipped block in base64, as a page file holds its answers. */
const BASE64_GZIP = /H4sI[\w+/]{20,}={0,2}/g;

/** Returns bytes followed by everything that is compressed in them. */
function unpacked(bytes: Buffer): Buffer {
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return Buffer.concat([bytes, gunzipSync(bytes)]);
  const blocks = bytes.subarray(0, 15).toString() === '<!doctype html>' ? bytes.toString().match(BASE64_GZIP) : null;
  return Buffer.concat([bytes, ...(blocks ?? []).map((block) => gunzipSync(Buffer.from(block, 'base64')))]);
}

/** Bytes with the name of their place. */
export type Place = readonly [name: string, bytes: Buffer];

/** Returns the files below a folder, each with what is compressed in it. */
export function filesBelow(folder: string): readonly Place[] {
  return readdirSync(folder, { recursive: true }).flatMap((name) => {
    const path = join(folder, String(name));
    const found = statSync(path, { throwIfNoEntry: false });
    return found?.isFile() === true ? [[String(name), unpacked(readFileSync(path))] as const] : [];
  });
}

/** Returns all bytes of a data folder: its files, and the tables of RocksDB, decompressed. */
export const everyPlace = async (dataDir: string): Promise<readonly Place[]> => [
  ...filesBelow(dataDir),
  ['the tables', await tables(dataDir)] as const,
];

/** XTDB's index keys hold each byte of a short text with two added. */
const shifted = (text: string): Buffer => Buffer.from(Buffer.from(text).map((byte) => (byte + 2) & 0xff));

/**
 * Returns which of some texts the bytes hold, in one pass. Looks for the text, its form in JSON,
 * and its form in index keys.
 */
export function textsIn(bytes: Buffer, texts: Iterable<string>): ReadonlySet<string> {
  const byStart = new Map<number, { readonly text: string; readonly form: Buffer }[]>();
  const starts = new Uint8Array(65_536);
  for (const text of new Set(texts))
    for (const form of [Buffer.from(text), Buffer.from(JSON.stringify(text).slice(1, -1)), shifted(text)]) {
      const start = form.readUInt16LE(0);
      starts[start] = 1;
      byStart.set(start, [...(byStart.get(start) ?? []), { text, form }]);
    }
  const found = new Set<string>();
  for (let at = 0; at + 1 < bytes.length; at += 1) {
    const start = (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
    if (starts[start] === 0) continue;
    for (const { text, form } of byStart.get(start) ?? [])
      if (!found.has(text) && bytes.subarray(at, at + form.length).equals(form)) found.add(text);
  }
  return found;
}

/**
 * Returns which of some texts a data folder holds, each with the place. The node must be stopped.
 */
export async function foundIn(dataDir: string, texts: readonly string[]): Promise<readonly string[]> {
  const places = await everyPlace(dataDir);
  return places.flatMap(([name, bytes]) => [...textsIn(bytes, texts)].map((text) => `${text} in ${name}`));
}
