import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { createGzip } from 'node:zlib';
import { stepAt } from '../client/session/fork-at.js';
import { askedSession } from '../history/rebuild/asked-session.js';
import type { FindHiddenTexts } from '../history/rebuild/hidden-texts.js';
import type { Timeline } from '../history/rebuild/timeline.js';
import type { SessionId, Sha256 } from '../objects/ids.js';
import type { DocumentPlace, SessionDocuments } from '../store/session-documents.js';
import { asImported } from '../store/session-line.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import { textParts } from '../store/texts.js';
import { defined } from '../values/defined.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { BundleError } from './bundle-error.js';
import {
  BUNDLE_FORMAT,
  BUNDLE_VERSION,
  type BundleManifest,
  bundleLine,
  redacted,
  WHOLE_VERSION,
} from './bundle-lines.js';
import { type CollectedSession, type CollectedTransaction, collectSession, numberOf } from './collect-session.js';
import { sessionMask } from './export-mask.js';
import type { BundleMask } from './masked-names.js';
import { type NeededText, neededTexts } from './needed-texts.js';
import { mergedCounts, type RedactedSession, redactSession } from './redact-session.js';
import { writeBundleFile } from './write-bundle-file.js';

/** The result of an export. */
export interface WrittenBundle {
  readonly file: string;
  readonly session: SessionId;
  readonly turn: number;
  readonly step: number;
  readonly manifest: BundleManifest;
}

/** Maximum number of versions whose documents are in memory at once. */
const HELD_AT_ONCE = 500;

/**
 * Yields groups of transactions with at most `HELD_AT_ONCE` versions. A larger transaction is a
 * separate group.
 */
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

/**
 * Replaces the transaction number in a context's basis by the number in the bundle. A database's
 * own numbers mean nothing elsewhere.
 */
function portable(document: StoredDocument, collected: CollectedSession): StoredDocument {
  if (document.type !== 'assembly') return document;
  const body = document.body as { readonly basis: { readonly validTime: number; readonly txId: number } | null };
  if (body.basis === null) return document;
  return { ...document, body: { ...body, basis: { ...body.basis, txId: numberOf(collected, body.basis.txId) } } };
}

type DocumentType = keyof (BundleManifest['objects'] & BundleManifest['parts']);

/** Counts and hashes the lines of a bundle as they are written. */
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

  /** Returns a value as a line of the bundle, and counts it under `counted`. */
  line(value: object, counted: 'bundle' | 'text' | 'transaction' | DocumentType): string {
    const line = bundleLine(value);
    this.#digest.update(line);
    this.#bytes += Buffer.byteLength(line);
    if (counted === 'text') this.#texts += 1;
    else if (counted === 'transaction') this.#transactions += 1;
    else if (counted !== 'bundle') this.#counts[counted] += 1;
    return line;
  }

  /** Returns the manifest, which is the content of the last line. */
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

/** A text to write before its transaction. `text` is set if the database does not store it. */
type WrittenText = Omit<NeededText, 'hash'> & { readonly hash: string; readonly text?: string };

/** The source of a bundle's lines. */
interface Source {
  readonly documents: SessionDocuments;
  readonly collected: CollectedSession;
  readonly redaction: RedactedSession | undefined;
  readonly version: number;
}

/** A document in the form in which it is written, with the texts that it needs. */
interface WrittenDocument {
  readonly document: StoredDocument;
  readonly texts: readonly WrittenText[];
  readonly validTime: Date;
}

const byName = (a: WrittenDocument, b: WrittenDocument): number => {
  const [one, other] = [a.document['xt/id'], b.document['xt/id']];
  return one === other ? a.validTime.getTime() - b.validTime.getTime() : one < other ? -1 : 1;
};

async function writtenDocument(
  document: StoredDocument,
  { collected, redaction }: Source,
): Promise<Omit<WrittenDocument, 'validTime'>> {
  const masked = await redaction?.document(document);
  return {
    document: portable(masked?.document ?? document, collected),
    texts: masked?.texts.map((text) => ({ ...text, isRequired: true })) ?? neededTexts(document),
  };
}

/**
 * Yields the lines of a bundle, except the last one. Keeps a few hundred documents and the hashes
 * of the written texts in memory.
 */
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
      // Lines are ordered by id, and masking can change ids.
      if (source.redaction !== undefined) puts.sort(byName);
      const wanted = new Map(puts.flatMap(({ texts }) => texts).map((text) => [text.hash, text]));
      for (const { hash, isRequired, isMessage, text } of [...wanted.values()].sort((a, b) =>
        a.hash < b.hash ? -1 : 1,
      )) {
        // A message's text comes directly before its transaction, even if it was already written
        // for an earlier one.
        if (known.has(hash) && !isMessage) continue;
        known.add(hash);
        const parts = text === undefined ? await documents.textParts(hash as Sha256) : textParts(text, hash as Sha256);
        if (parts.length === 0 && isRequired)
          throw new BundleError(
            'malformed',
            `the database lacks the text ${hash}, though the session has it: palimpsest verify ${session} says more`,
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

/** The session to export, and its redaction. */
export interface WantedBundle {
  readonly session: SessionId;
  /** The last step. Default: the last step of the session. */
  readonly upto?: number | undefined;
  /** The redaction. Default: nothing is masked. */
  readonly mask?: BundleMask | undefined;
}

/**
 * Returns the counts of texts that were masked before a session was imported here. The session's
 * own import takes precedence over imports of its ancestors, which may have come with other
 * bundles.
 */
async function maskedBefore(
  documents: SessionDocuments,
  sessions: readonly SessionId[],
): Promise<BundleManifest['redacted']> {
  for (const session of sessions.toReversed()) {
    const state = await documents.importOf(session);
    if (state?.redacted !== undefined) return redacted.parse(state.redacted);
  }
  return undefined;
}

/**
 * Returns the snapshot to export a session from. If the session was imported with its own line of
 * file versions, the snapshot reads that line.
 *
 * @throws {BundleError} `two-lines` – the session continued with this database's versions of the
 *   same files. A bundle can hold only one line of versions of a file
 */
async function exportedFrom({ present }: Timeline, session: SessionId, last: number): Promise<StoreSnapshot> {
  const imported = asImported(present);
  if (imported === present) return present;
  const brought = (await imported.sessionHead(session))?.marks.upto ?? 0;
  if (last <= brought) return imported;
  throw new BundleError(
    'two-lines',
    `session ${session} was imported up to step ${brought} with file versions that differ from this database. ` +
      `Its later steps use the versions of this database, and a bundle cannot hold both. ` +
      `Export the imported part: --as-of step:${brought}`,
  );
}

/** A bundle that is being made. */
export interface MadeBundle {
  readonly session: SessionId;
  readonly turn: number;
  readonly step: number;
  /** Yields the lines. The writer of the file compresses them. */
  lines(): AsyncGenerator<string>;
  /** The content of the last line. Undefined until that line is made. */
  readonly manifest: BundleManifest | undefined;
}

/**
 * Makes the bundle of a session up to a step (default: the last).
 *
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
 * Writes a session up to a step (default: the last) as one file that any database can import. The
 * same session gives the same bytes. The file appears only when it is complete, and never replaces
 * another file. Only this user can read it.
 *
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

/**
 * Yields the lines of a session's bundle. `reference` may include a moment. The bundle masks texts
 * only if `rules` is given.
 * @throws {BundleError} `redacted` – the session has redaction rules, and neither `rules` nor
 *   `ignoresRules` is set
 * @throws {HistoryError}
 * @throws {StoreError}
 */
export async function bundleOf(
  timeline: Timeline,
  reference: string,
  {
    hiddenTexts,
    ignoresRules = false,
    rules,
  }: {
    readonly hiddenTexts: FindHiddenTexts;
    /** Whether to include the texts that the session's rules hide. */
    readonly ignoresRules?: boolean;
    /** Further rules, as text. Undefined for a bundle without a mask. */
    readonly rules?: string | undefined;
  },
): Promise<AsyncIterable<string>> {
  const { session, when } = await askedSession(timeline, reference, {});
  const isMasked = rules !== undefined;
  const inForce = isMasked || ignoresRules ? 0 : (await hiddenTexts(timeline, session)).inForce;
  if (inForce > 0)
    throw new BundleError(
      'redacted',
      `session ${session} has redaction rules (${inForce}), and a bundle would contain the text that they hide: use ` +
        'redact=true, with_redacted=true, or palimpsest export --redact',
    );
  const upto =
    when.moment === undefined ? undefined : await stepAt(timeline, session, { when, holder: async () => undefined });
  const mask = isMasked
    ? await sessionMask({ timeline, session, hiddenTexts }, { rules, ignoresUnresolved: ignoresRules })
    : undefined;
  return (await makeBundle(timeline, { session, upto, mask })).lines();
}
