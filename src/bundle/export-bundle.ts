import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { createGzip } from 'node:zlib';
import type { Timeline } from '../history/rebuild/timeline.js';
import type { SessionId, Sha256 } from '../objects/ids.js';
import type { DocumentPlace, SessionDocuments } from '../store/session-documents.js';
import { asImported } from '../store/session-line.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import { textParts } from '../store/texts.js';
import { defined } from '../values/defined.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { BundleError } from './bundle-error.js';
import { BUNDLE_FORMAT, BUNDLE_VERSION, type BundleManifest, bundleLine, redacted, WHOLE_VERSION } from './bundle-lines.js';
import { type CollectedSession, type CollectedTransaction, collectSession, numberOf } from './collect-session.js';
import type { BundleMask } from './masked-names.js';
import { type NeededText, neededTexts } from './needed-texts.js';
import { mergedCounts, type RedactedSession, redactSession } from './redact-session.js';
import { writeBundleFile } from './write-bundle-file.js';

/** What was written. */
export interface WrittenBundle {
  readonly file: string;
  readonly session: SessionId;
  readonly turn: number;
  readonly step: number;
  readonly manifest: BundleManifest;
}

/** Versions whose documents are held at once. */
const HELD_AT_ONCE = 500;

/** Transactions in groups of at most so many versions, or of one. */
function* groups(transactions: readonly CollectedTransaction[]): Generator<readonly CollectedTransaction[]> {
  let group: CollectedTransaction[] = [];
  let held = 0;
  for (const transaction of transactions) {
    if (held > 0 && held + transaction.places.length > HELD_AT_ONCE) {
      yield group;
      [group, held] = [[], 0];
    }
    group.push(transaction);
    held += transaction.places.length;
  }
  if (group.length > 0) yield group;
}

/** A context names the bundle's own transactions as its basis: those of a database say nothing to another one. */
function portable(document: StoredDocument, collected: CollectedSession): StoredDocument {
  if (document.type !== 'assembly') return document;
  const body = document.body as { readonly basis: { readonly validTime: number; readonly txId: number } | null };
  if (body.basis === null) return document;
  return { ...document, body: { ...body, basis: { ...body.basis, txId: numberOf(collected, body.basis.txId) } } };
}

type DocumentType = keyof (BundleManifest['objects'] & BundleManifest['parts']);

/** Counts lines as they are written. */
class Written {
  readonly #digest = createHash('sha256');
  #bytes = 0;
  #texts = 0;
  #transactions = 0;
  readonly #counts: Record<DocumentType, number> = {
    file: 0,
    toolcall: 0,
    chat: 0,
    system_prompt: 0,
    session: 0,
    step: 0,
    snapshot: 0,
    assembly: 0,
    record: 0,
  };

  /** A line of a kind that is counted: of a version or part, its type. */
  line(value: object, counted: 'bundle' | 'text' | 'transaction' | DocumentType): string {
    const line = bundleLine(value);
    this.#digest.update(line);
    this.#bytes += Buffer.byteLength(line);
    if (counted === 'text') this.#texts += 1;
    else if (counted === 'transaction') this.#transactions += 1;
    else if (counted !== 'bundle') this.#counts[counted] += 1;
    return line;
  }

  /** What the last line says. */
  manifest(redacted: BundleManifest['redacted']): BundleManifest {
    const { step, snapshot, assembly, record, ...objects } = this.#counts;
    const documents = Object.values(this.#counts).reduce((sum, count) => sum + count, 0);
    return {
      texts: this.#texts,
      documents,
      transactions: this.#transactions,
      objects,
      parts: { step, snapshot, assembly, record },
      ...defined({ redacted }),
      bytes: this.#bytes,
      sha256: this.#digest.digest('hex'),
    };
  }
}

const byPlace = (a: DocumentPlace, b: DocumentPlace): number =>
  a.id === b.id ? a.validTime.getTime() - b.validTime.getTime() || a.txId - b.txId : a.id < b.id ? -1 : 1;

/** A text that stands before its transaction; with what it says where the database does not hold it. */
type WrittenText = Omit<NeededText, 'hash'> & { readonly hash: string; readonly text?: string };

/** What is written of a session. */
interface Source {
  readonly documents: SessionDocuments;
  readonly collected: CollectedSession;
  readonly redaction: RedactedSession | undefined;
  readonly version: number;
}

/** A document as it is written, and the texts that it needs. */
interface WrittenDocument {
  readonly document: StoredDocument;
  readonly texts: readonly WrittenText[];
  readonly validTime: Date;
}

const byName = (a: WrittenDocument, b: WrittenDocument): number => {
  const [one, other] = [a.document['xt/id'], b.document['xt/id']];
  return one === other ? a.validTime.getTime() - b.validTime.getTime() : one < other ? -1 : 1;
};

async function writtenDocument(document: StoredDocument, { collected, redaction }: Source): Promise<Omit<WrittenDocument, 'validTime'>> {
  const masked = await redaction?.document(document);
  return {
    document: portable(masked?.document ?? document, collected),
    texts: masked?.texts.map((text) => ({ ...text, isRequired: true })) ?? neededTexts(document),
  };
}

/** The lines of a bundle, without the last one. Holds a few hundred documents at once, and the hashes of the texts that were written. */
async function* linesOf(source: Source, written: Written): AsyncGenerator<string> {
  const { documents, collected, version } = source;
  const { session, turn, step, sessions, transactions } = collected;
  const count = transactions.reduce((sum, { places }) => sum + places.length, 0);
  const head = {
    format: BUNDLE_FORMAT,
    version,
    session,
    turn,
    step,
    sessions,
    transactions: transactions.length,
    documents: count,
  };
  yield written.line({ bundle: head }, 'bundle');
  const known = new Set<string>();
  let number = 0;
  for (const group of groups(transactions)) {
    const places = group.flatMap((transaction) => [...transaction.places].sort(byPlace));
    const found = await documents.at(places);
    let at = 0;
    for (const { tx, time, places: own } of group) {
      const puts: WrittenDocument[] = [];
      for (const [i, document] of found.slice(at, at + own.length).entries()) {
        const { validTime } = places[at + i] as DocumentPlace;
        puts.push({ ...(await writtenDocument(document, source)), validTime });
      }
      // What is masked may be called otherwise.
      if (source.redaction !== undefined) puts.sort(byName);
      const wanted = new Map(puts.flatMap(({ texts }) => texts).map((text) => [text.hash, text]));
      for (const { hash, isRequired, isMessage, text } of [...wanted.values()].sort((a, b) => (a.hash < b.hash ? -1 : 1))) {
        // A message is checked with its text at hand.
        if (known.has(hash) && !isMessage) continue;
        known.add(hash);
        const parts = text === undefined ? await documents.textParts(hash as Sha256) : textParts(text, hash as Sha256);
        if (parts.length === 0 && isRequired)
          throw new BundleError(
            'malformed',
            `the text ${hash} is not in the database, though the session has it: palimpsest verify ${session} says more`,
          );
        for (const part of parts) yield written.line({ text: part }, 'text');
      }
      number += 1;
      yield written.line({ transaction: { number, tx, time: time.toISOString() } }, 'transaction');
      for (const { document, validTime } of puts) {
        const valid = validTime.toISOString();
        yield written.line({ put: document, valid }, document.type as DocumentType);
      }
      at += own.length;
    }
  }
}

/** What is written of which session. */
export interface WantedBundle {
  readonly session: SessionId;
  /** The last step; that of the session if left out. */
  readonly upto?: number | undefined;
  /** What is hidden in it; nothing if left out. */
  readonly mask?: BundleMask | undefined;
}

/** What was masked before a session came into this database. */
async function maskedBefore(documents: SessionDocuments, sessions: readonly SessionId[]): Promise<BundleManifest['redacted']> {
  for (const session of sessions) {
    const state = await documents.importOf(session);
    if (state?.redacted !== undefined) return redacted.parse(state.redacted);
  }
  return undefined;
}

/**
 * The objects that a session is exported from. One that was imported beside other versions of its files and goes on here saw two lines of versions, and a bundle has one for each file.
 * @throws {BundleError} `two-lines`
 */
async function exportedFrom({ present }: Timeline, session: SessionId, last: number): Promise<StoreSnapshot> {
  const imported = asImported(present);
  if (imported === present) return present;
  const brought = (await imported.sessionHead(session))?.marks.upto ?? 0;
  if (last <= brought) return imported;
  throw new BundleError(
    'two-lines',
    `session ${session} was imported up to step ${brought} with versions of files that this database has others of, and went on with those: a bundle holds one line of versions for each file. Export what was imported: --as-of step:${brought}`,
  );
}

/** A bundle that is being made. */
export interface MadeBundle {
  readonly session: SessionId;
  readonly turn: number;
  readonly step: number;
  /** Its lines, which are compressed where they are written to. */
  lines(): AsyncGenerator<string>;
  /** What its last line says, once that was made. */
  readonly manifest: BundleManifest | undefined;
}

/**
 * Makes the bundle of a session up to a step, the last one if left out.
 * @throws {BundleError} `redacted`
 * @throws {HistoryError} `not-yet`
 * @throws {StoreError} `missing-part`, `corrupt-part`
 * @throws {XtdbError}
 */
export async function makeBundle(asked: Timeline, { session, upto, mask }: WantedBundle): Promise<MadeBundle> {
  const timeline = await asked.of(session);
  const steps = (await timeline.steps(session)).slice(0, upto);
  const present = await exportedFrom(timeline, session, steps.length);
  const whole = await collectSession({ present, steps }, session);
  const before = await maskedBefore(present.documents, whole.sessions);
  const redaction = mask === undefined ? undefined : await redactSession(timeline, { collected: whole, steps, mask });
  const counts = mergedCounts(before, redaction?.counts);
  const collected = redaction?.collected ?? whole;
  const { turn, step } = collected;
  let manifest: BundleManifest | undefined;
  async function* lines(): AsyncGenerator<string> {
    const written = new Written();
    const version = counts === undefined ? WHOLE_VERSION : BUNDLE_VERSION;
    yield* linesOf({ documents: present.documents, collected, redaction, version }, written);
    manifest = written.manifest(counts);
    yield bundleLine({ manifest });
  }
  return {
    session,
    turn,
    step,
    lines,
    get manifest() {
      return manifest;
    },
  };
}

/**
 * Writes a session as one file that any database can take in: everything up to a step, the last one if left out. The same session gives the same bytes. The file appears whole, for its user alone, and never over
 * another one.
 * @throws {BundleError} `file-exists`, `unusable-file`, `redacted`
 * @throws {HistoryError} `not-yet`
 * @throws {StoreError} `missing-part`, `corrupt-part`
 * @throws {XtdbError}
 */
export async function exportBundle(
  timeline: Timeline,
  { file, ...wanted }: WantedBundle & { readonly file: string },
): Promise<WrittenBundle> {
  const path = resolve(file);
  const bundle = await makeBundle(timeline, wanted);
  await writeBundleFile(path, bundle.lines(), [createGzip({ level: 6 })]);
  const { session, turn, step, manifest } = bundle;
  return { file: path, session, turn, step, manifest: manifest as BundleManifest };
}
