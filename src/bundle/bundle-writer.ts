import type { SessionId, Sha256 } from '../objects/ids.js';
import { toTransactionPart } from '../store/import-parts.js';
import { toLinePart } from '../store/lineage.js';
import { ALWAYS, type ObjectStore } from '../store/object-store.js';
import { textParts } from '../store/texts.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { TxOp } from '../xtdb/transactions.js';
import { BundleError } from './bundle-error.js';
import type { CheckedPut } from './check-bundle.js';
import type { HeldVersions } from './find-conflicts.js';
import type { StagedBlock } from './staged-import.js';

/** Writes the transactions of one bundle in order, each as one transaction of this database. */
export class BundleWriter {
  readonly #store: ObjectStore;
  readonly #session: SessionId;
  readonly #held: HeldVersions;
  /** Files whose versions are private to the bundle's sessions (decision F10). */
  readonly #line: ReadonlySet<string>;
  /** Texts of private versions that are already written. */
  readonly #texts = new Set<string>();
  /** For each transaction of the bundle, its number in this database. */
  readonly #here: number[];
  /** Ids that this import has written. Any other writer of such an id is a conflict. */
  readonly #put = new Set<string>();

  constructor(
    store: ObjectStore,
    session: SessionId,
    {
      held,
      here,
      line,
    }: { readonly held: HeldVersions; readonly here: readonly number[]; readonly line: readonly string[] },
  ) {
    this.#store = store;
    this.#session = session;
    this.#held = held;
    this.#here = [...here];
    this.#line = new Set(line);
  }

  async write({ transaction, documents }: StagedBlock): Promise<void> {
    const { number, tx, time, puts } = transaction;
    if (number <= this.#here.length) return;
    const placed = documents.flatMap((document, i): readonly TxOp[] => {
      const put = puts[i];
      if (put === undefined) return [];
      if (put.type === 'file' && this.#line.has(put.id)) return this.#kept(document, put);
      if (this.#held.isThere(put)) return [];
      const isFree = this.#held.isKnown(put.id) || this.#put.has(put.id);
      this.#put.add(put.id);
      const guard = isFree ? [] : [this.#store.guardOp(put.id, null)];
      return [...guard, { op: 'put', doc: this.#based(document), validTime: new Date(put.validTime) }];
    });
    const origin = {
      tx,
      time: Date.parse(time),
      puts: puts.map(({ id, validTime }) => [id, validTime] as [string, number]),
    };
    const said = toTransactionPart(this.#session, number, origin);
    this.#here.push(await this.#commit(said, [...placed, { op: 'put', doc: said, validTime: ALWAYS }]));
  }

  /**
   * Returns the operations that write a version that is private to the import's sessions. The
   * version refers to its text by hash.
   */
  #kept(document: StoredDocument, { validTime }: CheckedPut): readonly TxOp[] {
    const { content, content_hash } = document;
    const texts =
      typeof content === 'string' && !this.#texts.has(content) ? textParts(content, content_hash as Sha256) : [];
    if (typeof content === 'string') this.#texts.add(content);
    return [
      ...this.#store.textOps(texts),
      { op: 'put', doc: toLinePart(this.#session, document), validTime: new Date(validTime) },
    ];
  }

  /**
   * Commits a transaction together with the document that records the transaction as imported. If
   * the response is lost, checks whether the commit succeeded.
   */
  async #commit(said: StoredDocument, ops: readonly TxOp[]): Promise<number> {
    const id = said['xt/id'];
    const guard = this.#store.guardOp(id, null);
    const { txId } = await this.#store.writes.write('.import', async (attempt) => {
      const there = attempt > 1 ? (await (await this.#store.latest()).documents.newest([id])).get(id) : undefined;
      const isWritten = there !== undefined && there.text === said.text;
      if (there !== undefined && !isWritten)
        throw new BundleError(
          'conflict',
          `another process imports session ${this.#session} at the same time, from another bundle`,
        );
      return { ops: isWritten ? [] : [guard, ...ops], result: undefined };
    });
    if (txId !== undefined) return txId;
    const [place] = await (await this.#store.latest()).documents.places([id]);
    return place?.txId ?? 0;
  }

  /** Returns a context record whose basis names a transaction of this database. */
  #based(document: StoredDocument): StoredDocument {
    if (document.type !== 'assembly') return document;
    const body = document.body as { readonly basis: { readonly validTime: number; readonly txId: number } | null };
    if (body.basis === null) return document;
    const { txId: number } = body.basis;
    const txId = number === 0 ? Math.max(0, (this.#here[0] ?? 1) - 1) : this.#here[number - 1];
    if (txId === undefined) throw new Error('BUG: a basis that is not written yet');
    return { ...document, body: { ...body, basis: { ...body.basis, txId } } };
  }
}
