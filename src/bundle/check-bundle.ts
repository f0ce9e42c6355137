import { isDeepStrictEqual } from 'node:util';
import type { RecordMask } from '../client/record-mask.js';
import { hashText } from '../objects/hashes.js';
import { chatObjectId, sessionId, sessionObjectId, systemPromptObjectId } from '../objects/ids.js';
import { isObjectType } from '../objects/object-type.js';
import type { Step } from '../objects/step.js';
import { marksOf, sessionOfFolded } from '../store/head.js';
import { fromStepPart, messagePartHash } from '../store/step-part.js';
import { messageOf } from '../values/thrown.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { BundleError } from './bundle-error.js';
import type { BundleHeader, BundleLine, BundleManifest, BundleTransaction } from './bundle-lines.js';
import { checkDocument, type DocumentScope, requirePast, SecretCheck, TextCheck } from './check-document.js';
import { checkSessions } from './check-sessions.js';
import { neededTexts } from './needed-texts.js';
import { type BundleLimits, type ReadLine, readBundle } from './read-bundle.js';

/** One version of a bundle, without its document. */
export interface CheckedPut {
  readonly id: string;
  readonly type: string;
  readonly validTime: number;
  /** SHA-256 of the version's line. Equal versions have equal hashes. */
  readonly sha256: string;
}

/** One transaction of a bundle, without its documents. */
export interface CheckedTransaction extends BundleTransaction {
  readonly puts: readonly CheckedPut[];
  /**
   * Hash of all lines up to the last line of the transaction. A second read of the file must give
   * the same hash.
   */
  readonly chain: string;
}

/** A bundle after its check. */
export interface CheckedBundle {
  readonly header: BundleHeader;
  readonly manifest: BundleManifest;
  readonly transactions: readonly CheckedTransaction[];
  /** For each session of the bundle, the `epoch` (the lease's term) of its newest head. */
  readonly epochs: ReadonlyMap<string, number>;
}

/** Extends the hash of all previous lines by a further line. */
export const chained = (before: string, { sha256 }: Pick<ReadLine, 'sha256'>): string => hashText(`${before}${sha256}`);

const altered = (why: string): BundleError => new BundleError('altered', `the bundle was altered or damaged: ${why}`);

/** Checks the lines of a bundle in order. Rejects times later than the start of the check. */
class BundleCheck {
  readonly #secrets: SecretCheck;
  #header: BundleHeader | undefined;
  readonly #now = Date.now();
  #scope: DocumentScope = { sessions: new Set(), transactions: 0, step: 0, now: this.#now };
  readonly #texts = new TextCheck();
  readonly #transactions: { readonly transaction: BundleTransaction; readonly puts: CheckedPut[]; chain: string }[] =
    [];
  readonly #steps = new Map<number, Step>();
  /** The heads of sessions and chats. */
  readonly #heads: StoredDocument[] = [];
  readonly #snapshots: StoredDocument[] = [];
  /** The ids of files and calls. */
  readonly #objects = new Set<string>();
  readonly #ids = new Set<string>();
  readonly #counts = new Map<string, number>();
  /** Texts since the last transaction. A message's text precedes its transaction directly. */
  #recent = new Map<string, string>();
  #isBehindPut = false;
  #textCount = 0;
  #documents = 0;
  #chain = '';

  constructor(mask: RecordMask | undefined) {
    this.#secrets = new SecretCheck(mask);
  }

  take(read: ReadLine): void {
    const { line, number } = read;
    if (line.kind !== 'manifest') this.#chain = chained(this.#chain, read);
    if ((line.kind === 'bundle') !== (number === 1))
      throw new BundleError(
        'malformed',
        `line ${number} of the bundle is out of place: the first line, and no other, must be the header`,
      );
    if (line.kind !== 'text') this.#texts.end();
    this.#take(line, read);
    const last = this.#transactions.at(-1);
    if (last !== undefined && line.kind !== 'manifest' && line.kind !== 'text') last.chain = this.#chain;
  }

  end(manifest: BundleManifest, { sha256, bytes }: NonNullable<ReadLine['before']>): CheckedBundle {
    const header = this.#header as BundleHeader;
    if (this.#transactions.at(-1)?.puts.length === 0)
      throw new BundleError('malformed', 'the last transaction of the bundle wrote nothing');
    if (manifest.sha256 !== sha256 || manifest.bytes !== bytes) throw altered('its hash does not match its lines');
    const { objects, parts } = manifest;
    for (const [type, count] of Object.entries({ ...objects, ...parts }))
      if (count !== (this.#counts.get(type) ?? 0))
        throw altered(
          `it has ${this.#counts.get(type) ?? 0} documents of type ${type}, but its manifest says ${count}`,
        );
    const said = [manifest.texts, manifest.documents, manifest.transactions, header.documents, header.transactions];
    const found = [
      this.#textCount,
      this.#documents,
      this.#transactions.length,
      this.#documents,
      this.#transactions.length,
    ];
    if (!isDeepStrictEqual(said, found)) throw altered('its counts differ from its manifest');
    const steps = Array.from({ length: header.step }, (_, i) => this.#steps.get(i + 1));
    const missing = steps.indexOf(undefined);
    if (missing >= 0) throw altered(`step ${missing + 1} of ${header.step} is missing`);
    this.#checkWhole(header, steps as readonly Step[]);
    this.#secrets.end();
    const transactions = this.#transactions.map(({ transaction, puts, chain }) => ({ ...transaction, puts, chain }));
    return { header, manifest, transactions, epochs: this.#epochs() };
  }

  #take(line: BundleLine, { sha256, number }: ReadLine): void {
    if (line.kind === 'bundle') this.#begin(line.header);
    if (line.kind === 'text') this.#text(line.document);
    if (line.kind === 'transaction') this.#transaction(line.transaction, number);
    if (line.kind === 'put') this.#put(line, sha256, number);
  }

  #begin(header: BundleHeader): void {
    this.#header = header;
    const sessions = header.sessions.map((name) => {
      try {
        return sessionId(name);
      } catch (error) {
        throw new BundleError('malformed', `the bundle has an invalid session name: ${messageOf(error)}`);
      }
    });
    this.#scope = { sessions: new Set(sessions), transactions: header.transactions, step: header.step, now: this.#now };
    if (this.#scope.sessions.size !== sessions.length || sessions.at(-1) !== header.session)
      throw new BundleError(
        'malformed',
        `the bundle names ${JSON.stringify(header.session)}, which is not the last of its sessions`,
      );
  }

  #text(part: StoredDocument): void {
    if (this.#isBehindPut) this.#recent = new Map();
    this.#isBehindPut = false;
    this.#textCount += 1;
    const whole = this.#texts.take(part);
    if (whole === undefined) return;
    this.#recent.set(whole.hash, whole.text);
    this.#secrets.text(whole.text, whole.hash);
  }

  #transaction(transaction: BundleTransaction, number: number): void {
    if (this.#isBehindPut) this.#recent = new Map();
    this.#isBehindPut = false;
    if (this.#transactions.at(-1)?.puts.length === 0)
      throw new BundleError('malformed', `transaction ${transaction.number - 1} of the bundle wrote nothing`);
    if (transaction.number !== this.#transactions.length + 1)
      throw new BundleError(
        'malformed',
        `line ${number} of the bundle is transaction ${transaction.number}, but ${this.#transactions.length} ` +
          'precede it',
      );
    if (transaction.number > this.#scope.transactions)
      throw new BundleError(
        'too-large',
        `the bundle has more transactions than the ${this.#scope.transactions} in its header`,
      );
    requirePast(Date.parse(transaction.time), `transaction ${transaction.number} of the bundle`, this.#now);
    this.#transactions.push({ transaction, puts: [], chain: '' });
  }

  #put({ document, validTime }: Extract<BundleLine, { readonly kind: 'put' }>, sha256: string, number: number): void {
    this.#isBehindPut = true;
    this.#documents += 1;
    if (this.#documents > (this.#header?.documents ?? 0))
      throw new BundleError(
        'too-large',
        `the bundle has more documents than the ${this.#header?.documents ?? 0} in its header`,
      );
    const last = this.#transactions.at(-1);
    if (last === undefined)
      throw new BundleError('malformed', `line ${number} of the bundle precedes its first transaction`);
    checkDocument(document, this.#scope);
    this.#secrets.document(document);
    requirePast(validTime.getTime(), `a version of ${JSON.stringify(document['xt/id'])}`, this.#now);
    const absent = neededTexts(document).find(({ hash, isRequired }) => isRequired && !this.#texts.has(hash));
    if (absent !== undefined)
      throw altered(`${JSON.stringify(document['xt/id'])} needs the text ${absent.hash}, which is missing`);
    const id = document['xt/id'];
    const type = String(document.type);
    if (!isObjectType(type) && this.#ids.has(id)) throw altered(`${JSON.stringify(id)} is there twice`);
    this.#ids.add(id);
    this.#counts.set(type, (this.#counts.get(type) ?? 0) + 1);
    last.puts.push({ id, type, validTime: validTime.getTime(), sha256 });
    if (type === 'step') this.#step(document);
    if (type === 'session' || type === 'chat') this.#heads.push(document);
    if (type === 'snapshot') this.#snapshots.push(document);
    if (type === 'file' || type === 'toolcall') this.#objects.add(id);
    if (type === 'assembly') this.#context(document);
  }

  #step(part: StoredDocument): void {
    const hash = messagePartHash(part);
    const text = hash === undefined ? undefined : this.#recent.get(hash);
    if (hash !== undefined && text === undefined)
      throw altered(`the text of the message of ${part['xt/id']} does not precede it`);
    const step = fromStepPart(part, text);
    if (this.#steps.has(step.seq)) throw altered(`step ${step.seq} is there twice`);
    this.#steps.set(step.seq, step);
  }

  #context({ seq, body }: StoredDocument): void {
    const { basis } = body as { readonly basis: { readonly txId: number } | null };
    if (basis !== null && basis.txId >= this.#transactions.length)
      throw altered(`a context of step ${String(seq)} was read at transaction ${basis.txId}, which came after it`);
  }

  #epochs(): ReadonlyMap<string, number> {
    const epochs = new Map<string, number>();
    for (const head of this.#heads) {
      const session = sessionOfFolded(head);
      epochs.set(session, Math.max(epochs.get(session) ?? 0, marksOf(head).epoch ?? 0));
    }
    return epochs;
  }

  /** Checks that all objects of the session are present, and that heads result from the steps. */
  #checkWhole({ sessions }: BundleHeader, steps: readonly Step[]): void {
    const named = steps.flatMap(({ changes, call }) => [
      ...(changes.index ?? []),
      ...(call === undefined ? [] : [call.id]),
    ]);
    const absent = named.find((id) => !this.#ids.has(id));
    if (absent !== undefined) throw altered(`the session has ${JSON.stringify(absent)}, which is missing`);
    const own = sessions.map((name) => sessionId(name));
    for (const session of own) {
      const objects = [sessionObjectId(session), chatObjectId(session), systemPromptObjectId(session)];
      const lost = objects.find((id) => !this.#ids.has(id));
      if (lost !== undefined) throw altered(`${JSON.stringify(lost)} is missing`);
    }
    checkSessions({ sessions: own, steps, heads: this.#heads, snapshots: this.#snapshots, objects: this.#objects });
  }
}

/**
 * Reads and checks a whole bundle. With a mask, rejects secrets in its texts. Recomputes the
 * hashes. Checks that every referenced object is present, and that the heads of its sessions result
 * from their steps. Writes nothing. Memory grows with the session's chat and the number of its
 * versions, not with its texts.
 *
 * @throws {BundleError} every code except `conflict`
 */
export async function checkBundle(file: string, limits: BundleLimits = {}, mask?: RecordMask): Promise<CheckedBundle> {
  const check = new BundleCheck(mask);
  let whole: CheckedBundle | undefined;
  for await (const read of readBundle(file, limits)) {
    check.take(read);
    if (read.line.kind === 'manifest' && read.before !== undefined) whole = check.end(read.line.manifest, read.before);
  }
  if (whole === undefined) throw altered('its last line is missing');
  return whole;
}
