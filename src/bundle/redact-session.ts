import { isDeepStrictEqual } from 'node:util';
import type { Timeline } from '../history/rebuild/timeline.js';
import { isInfrastructureId, isPartId, type SessionId } from '../objects/ids.js';
import { isObjectType } from '../objects/object-type.js';
import { type FilesystemSource, parseSource } from '../objects/source.js';
import type { Step } from '../objects/step.js';
import type { ValueMask } from '../redaction/mark.js';
import { assemblyId, toAssemblyPart } from '../store/assemblies.js';
import { formerId } from '../store/part-id.js';
import type { DocumentPlace, SessionDocuments } from '../store/session-documents.js';
import { fromSnapshotPart } from '../store/step-part.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { BundleError } from './bundle-error.js';
import type { CollectedSession } from './collect-session.js';
import { MaskedContexts } from './masked-contexts.js';
import { type MaskedDocument, MaskedDocuments } from './masked-documents.js';
import { type BundleMask, MaskedNames } from './masked-names.js';
import { MaskedRecords } from './masked-records.js';

/** Counts of masked content. They do not reveal the content. */
export interface RedactedCounts {
  readonly rules: BundleMask['rules'];
  readonly versions: number;
  readonly steps: number;
  readonly contexts: number;
  readonly records: number;
  readonly names: number;
}

const DONE = ['versions', 'steps', 'contexts', 'records', 'names'] as const;

/**
 * Adds the counts of content that was masked before the session was imported to the counts of this
 * export. Undefined if no masking was requested. If this export masked nothing, returns the earlier
 * counts.
 */
export function mergedCounts(
  before: RedactedCounts | undefined,
  now: RedactedCounts | undefined,
): RedactedCounts | undefined {
  if (before === undefined || now === undefined) return before ?? now;
  if (DONE.every((name) => now[name] === 0)) return before;
  const sum = (name: (typeof DONE)[number]): number => before[name] + now[name];
  const rules = {
    session: before.rules.session + now.rules.session,
    texts: before.rules.texts + now.rules.texts,
    patterns: before.rules.patterns + now.rules.patterns,
  };
  return {
    rules,
    versions: sum('versions'),
    steps: sum('steps'),
    contexts: sum('contexts'),
    records: sum('records'),
    names: sum('names'),
  };
}

/** A session without its hidden content. */
export interface RedactedSession {
  /**
   * The session's documents, without pieces of imports and without records that masking made equal
   * to another record.
   */
  readonly collected: CollectedSession;
  readonly counts: RedactedCounts;
  /**
   * Returns a masked document. Call this for heads of sessions and chats in the order of their
   * steps.
   */
  document(document: StoredDocument): Promise<MaskedDocument>;
}

const READ_AT_ONCE = 250;

async function* documentsOf(
  documents: SessionDocuments,
  places: readonly DocumentPlace[],
): AsyncGenerator<StoredDocument> {
  for (let i = 0; i < places.length; i += READ_AT_ONCE) yield* await documents.at(places.slice(i, i + READ_AT_ONCE));
}

function requirePlain(mask: ValueMask, session: string): void {
  const shown = mask.masked(session);
  if (shown === session) return;
  throw new BundleError(
    'redacted',
    `the session name ${shown} contains text to hide, but the ids of its documents contain that name. ` +
      'Remove the rule for that text',
  );
}

async function namesOf(
  mask: BundleMask,
  {
    session,
    documents,
    steps,
    files,
  }: {
    readonly session: SessionId;
    readonly documents: SessionDocuments;
    readonly steps: readonly Step[];
    readonly files: readonly string[];
  },
): Promise<MaskedNames> {
  const names = new MaskedNames(mask, session);
  const newest = await documents.newest(files);
  for (const id of files) {
    const source = parseSource(newest.get(id)?.source);
    if (source !== null) names.addFile(id, source as FilesystemSource);
  }
  for (const { call } of steps) if (call !== undefined) names.addCall(call.id);
  return names;
}

/**
 * Masks a session for a bundle. Rebuilds changed versions, steps, heads and records, and renders
 * contexts from the masked content. Writes nothing.
 *
 * @throws {BundleError} `redacted` if hidden text occurs in a name that cannot be changed;
 *   `malformed`
 * @throws {StoreError}
 * @throws {XtdbError}
 */
export async function redactSession(
  { present }: Pick<Timeline, 'present'>,
  {
    collected,
    steps,
    mask,
  }: { readonly collected: CollectedSession; readonly steps: readonly Step[]; readonly mask: BundleMask },
): Promise<RedactedSession> {
  const { session, sessions, transactions } = collected;
  for (const name of sessions) requirePlain(mask, name);
  const { documents } = present;
  const places = transactions.flatMap((transaction) =>
    [...transaction.places].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)),
  );
  const own = places.filter(({ id }) => !isPartId(id) && (!isInfrastructureId(id) || id.startsWith('system_prompt:')));
  const files = [...new Set(own.map(({ id }) => id))].filter((id) => /^[0-9a-f]{64}$/.test(id));
  const names = await namesOf(mask, { session, documents, steps, files });
  const masked = new MaskedDocuments({ session, documents, names, steps });
  for await (const document of documentsOf(documents, own))
    if (isObjectType(document.type)) await masked.learn(document);
  const changedSteps = masked.learnSteps();

  const contexts = new MaskedContexts(present, { names, documents: masked });
  const made = new Map<string, MaskedDocument>();
  const counts = { contexts: 0, records: 0 };
  const wanted = new Set(places.map(({ id }) => id));
  for (const proof of await present.assemblies(session, { last: collected.step })) {
    if (proof.rescuedFrom !== undefined) requirePlain(mask, proof.rescuedFrom);
    // The agent built this request's body, which cannot be rendered from masked content. The bundle
    // leaves the context out.
    if (proof.sent !== undefined) {
      counts.contexts += 1;
      continue;
    }
    const left = await contexts.masked(proof);
    if (left.sha256 !== proof.sha256) counts.contexts += 1;
    const [id, document] = [assemblyId(proof), toAssemblyPart(left)];
    masked.replace(id, document['xt/id']);
    if (wanted.has(id) || wanted.has(formerId(id))) made.set(id, { document, texts: [] });
  }
  const records = new MaskedRecords(names, masked);
  const recorded = places.filter(({ id }) => isPartId(id) && id.startsWith('record:'));
  for await (const document of documentsOf(documents, recorded)) {
    const left = await records.masked(document);
    if (left !== undefined) made.set(document['xt/id'], left);
    if (left !== undefined && !isDeepStrictEqual(left.document, document)) counts.records += 1;
  }

  // If masking made several documents equal, only the first of them is written.
  const taken = new Set<string>();
  const isWritten = ({ id }: DocumentPlace): boolean => {
    const known = made.get(id) ?? made.get(`${id}~`);
    if (known === undefined) return !(isPartId(id) && (id.startsWith('record:') || id.startsWith('assembly:')));
    const name = known.document['xt/id'];
    if (taken.has(name)) return false;
    taken.add(name);
    return true;
  };
  const kept = transactions.map((transaction) => ({ ...transaction, places: transaction.places.filter(isWritten) }));
  const isFull = ({ places: left }: (typeof kept)[number]): boolean => left.length > 0;
  return {
    collected: {
      ...collected,
      transactions: kept.filter(isFull),
      imported: kept.slice(0, collected.imported).filter(isFull).length,
    },
    counts: { rules: mask.rules, versions: masked.versions, steps: changedSteps, names: names.count, ...counts },
    document: async (document) => {
      const known = made.get(document['xt/id']);
      if (known !== undefined) return known;
      const { type } = document;
      if (type === 'step') return masked.step(document);
      if (type === 'session' || type === 'chat') return masked.folded(document);
      if (isObjectType(type)) return masked.version(document);
      return { document: { ...document, body: names.ids(fromSnapshotPart(document)) as never }, texts: [] };
    },
  };
}
