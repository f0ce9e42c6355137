import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { hashText } from '../objects/hashes.js';
import type { Sha256 } from '../objects/ids.js';
import { StoreError } from '../store/errors.js';
import { ALWAYS, type ObjectStore } from '../store/object-store.js';
import { textParts } from '../store/texts.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { TxOp } from '../xtdb/transactions.js';
import { BundleError } from './bundle-error.js';
import { type BundleHeader, type BundleTransaction, bundleLine } from './bundle-lines.js';
import { type CheckedBundle, type CheckedPut, chained } from './check-bundle.js';
import { TextCheck } from './check-document.js';
import { type BundleLimits, readBundle } from './read-bundle.js';

/** The writes of one transaction of a bundle. */
export interface StagedBlock {
  readonly transaction: BundleTransaction & { readonly puts: readonly CheckedPut[] };
  readonly documents: readonly StoredDocument[];
}

/** Maximum characters of the texts in one transaction. */
const TEXTS_AT_ONCE = 4 * 1_048_576;
/** Maximum characters of lines staged together. */
const LINES_AT_ONCE = 1_048_576;

const packed = promisify(gzip);
const unpacked = promisify(gunzip);

const unitsOf = ({ text }: StoredDocument): number => (typeof text === 'string' ? text.length : 0);

/**
 * Writes the texts that a database does not hold. Readers do not see a text until a document names
 * it.
 */
class TextWriter {
  readonly #store: ObjectStore;
  #parts = new Map<string, StoredDocument>();
  #units = 0;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async add(part: StoredDocument): Promise<void> {
    if (this.#units > 0 && this.#units + unitsOf(part) > TEXTS_AT_ONCE) await this.write();
    if (this.#parts.has(part['xt/id'])) return;
    this.#parts.set(part['xt/id'], part);
    this.#units += unitsOf(part);
  }

  async write(): Promise<void> {
    const parts = this.#parts;
    [this.#parts, this.#units] = [new Map(), 0];
    if (parts.size === 0) return;
    const there = new Set(await (await this.#store.latest()).existing([...parts.keys()]));
    const ops = [...parts].flatMap(([id, doc]): readonly TxOp[] =>
      there.has(id) ? [] : [{ op: 'put', doc, validTime: ALWAYS }],
    );
    await this.#store.writes.write('.import', async () => ({ ops, result: undefined }));
  }
}

/**
 * Stages a checked bundle in the database, invisible to readers. Texts are stored under their
 * hashes; all other lines are joined to texts. Returns the hashes of the joined texts. After
 * staging, the import does not need the file. An interrupted staging leaves nothing visible.
 *
 * @throws {BundleError} `altered` if the file has changed
 * @throws {XtdbError}
 */
export async function stageBundle(
  store: ObjectStore,
  file: string,
  { bundle, limits }: { readonly bundle: CheckedBundle; readonly limits: BundleLimits },
): Promise<readonly Sha256[]> {
  const { header, transactions } = bundle;
  const texts = new TextWriter(store);
  const check = new TextCheck();
  const staged: Sha256[] = [];
  let lines = [bundleLine({ bundle: header })];
  let units = 0;
  const putAway = async (): Promise<void> => {
    const text = (await packed(lines.join(''))).toString('base64');
    [lines, units] = [[], 0];
    const hash = hashText(text);
    for (const part of textParts(text, hash)) await texts.add(part);
    staged.push(hash);
  };
  const add = async (line: string): Promise<void> => {
    lines.push(line);
    units += line.length;
    if (units >= LINES_AT_ONCE) await putAway();
  };
  let [chain, at, isOpen] = ['', -1, false];
  for await (const read of readBundle(file, limits)) {
    const { line } = read;
    if (isOpen && line.kind !== 'put') {
      if (transactions[at]?.chain !== chain)
        throw new BundleError('altered', 'the bundle changed during the import; import it again once it is complete');
      isOpen = false;
    }
    if (line.kind !== 'manifest') chain = chained(chain, read);
    if (line.kind === 'transaction') {
      at += 1;
      await add(bundleLine({ transaction: line.transaction }));
    }
    if (line.kind === 'put') {
      isOpen = true;
      await add(bundleLine({ put: line.document, valid: line.validTime.toISOString() }));
    }
    if (line.kind === 'text') {
      check.take(line.document);
      await texts.add(line.document);
    }
  }
  if (lines.length > 0) await putAway();
  await texts.write();
  return staged;
}

async function* stagedLines(store: ObjectStore, staged: readonly Sha256[]): AsyncGenerator<string> {
  for (const hash of staged) {
    const text = (await (await store.latest()).texts([hash])).get(hash);
    if (text === undefined)
      throw new StoreError('missing-part', `the stored lines ${hash} of an unfinished import are not in the database`);
    yield* (await unpacked(Buffer.from(text, 'base64'))).toString().trimEnd().split('\n');
  }
}

type StagedLine =
  | { readonly bundle: BundleHeader }
  | { readonly transaction: BundleTransaction }
  | { readonly put: StoredDocument; readonly valid: string };

/** Yields the staged transactions in order. */
export async function* stagedBlocks(store: ObjectStore, staged: readonly Sha256[]): AsyncGenerator<StagedBlock> {
  let transaction: BundleTransaction | undefined;
  let [documents, puts]: [StoredDocument[], CheckedPut[]] = [[], []];
  for await (const text of stagedLines(store, staged)) {
    const line = JSON.parse(text) as StagedLine;
    if ('put' in line) {
      const { put, valid } = line;
      documents.push(put);
      puts.push({
        id: put['xt/id'],
        type: String(put.type),
        validTime: Date.parse(valid),
        sha256: hashText(`${text}\n`),
      });
    } else if ('transaction' in line) {
      if (transaction !== undefined) yield { transaction: { ...transaction, puts }, documents };
      [transaction, documents, puts] = [line.transaction, [], []];
    }
  }
  if (transaction !== undefined) yield { transaction: { ...transaction, puts }, documents };
}

/** Reads the content of a bundle's first line from the staged lines. */
export async function stagedHeader(store: ObjectStore, staged: readonly Sha256[]): Promise<BundleHeader> {
  for await (const text of stagedLines(store, staged)) {
    const line = JSON.parse(text) as StagedLine;
    if ('bundle' in line) return line.bundle;
  }
  throw new StoreError('corrupt-part', 'the stored lines of an unfinished import do not begin with a header');
}
