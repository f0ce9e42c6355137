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

function plainFiles(dataDir: string): readonly (readonly [name: string, bytes: Buffer])[] {
  return readdirSync(dataDir, { recursive: true }).flatMap((name) => {
    const path = join(dataDir, String(name));
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.isFile() !== true) return [];
    const bytes = readFileSync(path);
    const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
    return [[String(name), isPacked ? Buffer.concat([bytes, gunzipSync(bytes)]) : bytes] as const];
  });
}

/** XTDB's index keys hold each byte of a short text with two added. */
const shifted = (text: string): Buffer => Buffer.from(Buffer.from(text).map((byte) => (byte + 2) & 0xff));

/**
 * Returns which of some texts a data folder holds, each with the place. A place is a file as it
 * lies there, or the tables of RocksDB, decompressed. Looks for the text, its form in JSON, and its
 * form in index keys. The node must be stopped.
 */
export async function foundIn(dataDir: string, texts: readonly string[]): Promise<readonly string[]> {
  const places = [...plainFiles(dataDir), ['the tables', await tables(dataDir)] as const];
  return texts.flatMap((text) => {
    const forms = [Buffer.from(text), Buffer.from(JSON.stringify(text).slice(1, -1)), shifted(text)];
    return places.flatMap(([name, bytes]) =>
      forms.some((form) => bytes.includes(form)) ? [`${text} in ${name}`] : [],
    );
  });
}
