import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { systemCode } from '../process/system-error.js';
import { isDeeperThan } from '../values/json-object.js';
import { codeOf, messageOf } from '../values/thrown.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { BundleError } from './bundle-error.js';
import { BUNDLE_FORMAT, BUNDLE_VERSION, type BundleLine, LINES, type LineKind } from './bundle-lines.js';

/** Size limits for reading a bundle. */
export interface BundleLimits {
  /** Maximum bytes of all lines together. Default: 8 GiB. */
  readonly mostBytes?: number;
  /**
   * Maximum bytes of one transaction's lines and the texts before it. They are in memory together.
   * Default: 512 MiB.
   */
  readonly mostAtOnce?: number;
}

const MIB = 1_048_576;
const MOST_BYTES = 8 * 1024 * MIB;
const MOST_AT_ONCE = 512 * MIB;
/**
 * Maximum bytes of a line. A record or text chunk of maximum size fits even if JSON escapes each
 * character with six bytes.
 */
const MOST_LINE_BYTES = 16 * MIB;
/**
 * Maximum ratio of unpacked to packed bytes. It applies beyond a fixed allowance and stops zip
 * bombs.
 */
const MOST_TIMES = 200;
const ALWAYS_BYTES = 64 * MIB;
/** Maximum nesting of documents: 200 levels of arguments, and the levels around them. */
const DEEPEST = 260;
const NEWLINE = 10;

/** A line and its place in the file. */
export interface ReadLine {
  readonly line: BundleLine;
  /** Counts from 1. */
  readonly number: number;
  /** SHA-256 and length of everything before this line. Present on the last line only. */
  readonly before?: { readonly sha256: string; readonly bytes: number };
  /** SHA-256 of the line. */
  readonly sha256: string;
}

const malformed = (number: number, why: string, cause?: unknown): BundleError =>
  new BundleError('malformed', `line ${number} of the bundle is invalid: ${why}`, { cause });

/** Rejects a first line whose format version this program cannot read. */
function checkFormat(value: unknown): void {
  const head = typeof value === 'object' && value !== null && 'bundle' in value ? value.bundle : undefined;
  const { format, version } =
    typeof head === 'object' && head !== null ? (head as Readonly<Record<string, unknown>>) : {};
  if (format !== BUNDLE_FORMAT || typeof version !== 'number')
    throw new BundleError(
      'not-a-bundle',
      'the file is not a Palimpsest bundle: its first line differs. palimpsest export SESSION FILE --format ' +
        'bundle writes bundles',
    );
  if (version > BUNDLE_VERSION)
    throw new BundleError(
      'newer-version',
      `the bundle has version ${version} of its format, but this version of Palimpsest reads up to ` +
        `${BUNDLE_VERSION}: use a later version`,
    );
}

type Readers = { readonly [Kind in LineKind]: (value: never) => Extract<BundleLine, { readonly kind: Kind }> };

const READERS = {
  bundle: (value: { bundle: Extract<BundleLine, { kind: 'bundle' }>['header'] }) => ({
    kind: 'bundle',
    header: value.bundle,
  }),
  text: (value: { text: StoredDocument }) => ({ kind: 'text', document: value.text }),
  transaction: (value: { transaction: Extract<BundleLine, { kind: 'transaction' }>['transaction'] }) => ({
    kind: 'transaction',
    transaction: value.transaction,
  }),
  put: (value: { put: StoredDocument; valid: string }) => ({
    kind: 'put',
    document: value.put,
    validTime: new Date(value.valid),
  }),
  manifest: (value: { manifest: Extract<BundleLine, { kind: 'manifest' }>['manifest'] }) => ({
    kind: 'manifest',
    manifest: value.manifest,
  }),
} as const satisfies Readers;

const KINDS = Object.keys(LINES) as readonly LineKind[];

function lineOf(bytes: Uint8Array, number: number): BundleLine {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (error) {
    if (number === 1) checkFormat(undefined);
    throw malformed(number, messageOf(error), error);
  }
  if (number === 1) checkFormat(value);
  if (isDeeperThan(value, DEEPEST)) throw malformed(number, `it nests deeper than ${DEEPEST} levels`);
  const kind = KINDS.find((one) => typeof value === 'object' && value !== null && Object.hasOwn(value, one));
  if (kind === undefined) throw malformed(number, 'it is not a line of a bundle');
  const read = LINES[kind].safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw malformed(number, `${issue?.path.map(String).join('.') ?? kind}: ${issue?.message ?? 'unknown'}`);
  }
  return (READERS[kind] as (value: unknown) => BundleLine)(read.data);
}

/** Converts an error of decompression to a `BundleError`. */
function compressionError(error: unknown, number: number): unknown {
  const code = codeOf(error);
  if (code === 'Z_BUF_ERROR')
    return new BundleError('cut-short', `the bundle is cut short: it ends within line ${number + 1}`, { cause: error });
  if (typeof code !== 'string' || !code.startsWith('Z_')) return error;
  if (number === 0)
    return new BundleError('not-a-bundle', 'the file is not a Palimpsest bundle: it is not gzip-compressed', {
      cause: error,
    });
  return new BundleError('altered', `the bundle was altered or damaged after line ${number}: ${messageOf(error)}`, {
    cause: error,
  });
}

async function openBundle(path: string) {
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await handle.stat();
    if (stats.isFile()) return { handle, size: stats.size };
    await handle.close();
  } catch (cause) {
    if (systemCode(cause) === undefined) throw cause;
    throw new BundleError('unusable-file', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
  throw new BundleError('unusable-file', `${path} is not a file: a bundle is one file, as palimpsest export writes it`);
}

/**
 * Reads the lines of a bundle. Checks each line against its schema, but not the bundle as a whole.
 * Holds one line in memory. `mostAtOnce` limits the lines that a caller holds for one transaction.
 * Ends after the last line, which is always `manifest`.
 *
 * @throws {BundleError} `unusable-file`, `not-a-bundle`, `newer-version`, `cut-short`, `altered`,
 *   `malformed`, `too-large`
 */
export async function* readBundle(
  path: string,
  { mostBytes = MOST_BYTES, mostAtOnce = MOST_AT_ONCE }: BundleLimits = {},
): AsyncGenerator<ReadLine> {
  const { handle, size } = await openBundle(path);
  const most = Math.min(mostBytes, ALWAYS_BYTES + MOST_TIMES * size);
  const source = handle.createReadStream({ autoClose: false });
  const plain = source.pipe(createGunzip());
  source.on('error', (error) => plain.destroy(error));
  const digest = createHash('sha256');
  let [number, bytes, isOver] = [0, 0, false];
  let rest: Buffer[] = [];
  let restBytes = 0;
  let [atOnce, isBehindPut] = [0, false];
  const take = (piece: Buffer): ReadLine => {
    if (isOver) throw malformed(number + 1, 'data follows the last line');
    const whole = rest.length === 0 ? piece : Buffer.concat([...rest, piece]);
    [rest, restBytes] = [[], 0];
    number += 1;
    const line = lineOf(whole.subarray(0, -1), number);
    isOver = line.kind === 'manifest';
    if (isBehindPut && line.kind !== 'put') atOnce = 0;
    isBehindPut = line.kind === 'put';
    atOnce += whole.length;
    if (atOnce > mostAtOnce)
      throw new BundleError(
        'too-large',
        `line ${number} of the bundle belongs to a transaction of more than ${mostAtOnce} bytes with its texts`,
      );
    const before = isOver ? { before: { sha256: digest.copy().digest('hex'), bytes } } : {};
    digest.update(whole);
    bytes += whole.length;
    return { line, number, ...before, sha256: createHash('sha256').update(whole).digest('hex') };
  };
  try {
    for await (const chunk of plain as AsyncIterable<Buffer>) {
      let from = 0;
      for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
        if (restBytes + end - from > MOST_LINE_BYTES) break;
        yield take(chunk.subarray(from, end + 1));
        from = end + 1;
      }
      if (from < chunk.length) rest.push(Buffer.from(chunk.subarray(from)));
      restBytes += chunk.length - from;
      if (restBytes > MOST_LINE_BYTES)
        throw new BundleError('too-large', `line ${number + 1} of the bundle is longer than ${MOST_LINE_BYTES} bytes`);
      if (bytes + restBytes > most)
        throw new BundleError(
          'too-large',
          `the bundle of ${size} bytes exceeds ${most} bytes when unpacked, more than an import accepts. Check ` +
            'that it is a bundle of Palimpsest',
        );
    }
  } catch (error) {
    throw compressionError(error, number);
  } finally {
    source.destroy();
    plain.destroy();
    await handle.close();
  }
  if (!isOver)
    throw new BundleError('cut-short', `the bundle is cut short: it ends after line ${number}, without its last line`);
}
