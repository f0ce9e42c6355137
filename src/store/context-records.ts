import { canonicalJson } from '../objects/canonical-json.js';
import { type ContextRecord, contextRecord, isRecordKind, type RecordKind, type RecordOwner } from '../objects/context-record.js';
import { DocumentError } from '../objects/errors.js';
import { hashText } from '../objects/hashes.js';
import { type PartId, type SessionId, type Sha256, sessionObjectId } from '../objects/ids.js';
import { messageOf } from '../values/thrown.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import type { Lineage, StepRange } from './lineage.js';
import { partId } from './part-id.js';
import { recordParts } from './queries.js';

const ownerName = (owner: RecordOwner): string => ('session' in owner ? sessionObjectId(owner.session) : `agent:${owner.agent}`);

/** As many digits as the last step that there can be has. */
const SEQ_DIGITS = 16;
/** Of an owner's hash: the database sorts texts of at most 224 bytes, and the names of sessions alone can be nearly as long. */
const OWNER_DIGITS = 32;

/** By what a record is found: its kind, its owner and its step, in the order in which they are sorted. */
const refOf = (kind: RecordKind, owner: RecordOwner, seq: number): string =>
  `${kind} ${hashText(ownerName(owner)).slice(0, OWNER_DIGITS)} ${String(seq).padStart(SEQ_DIGITS, '0')}`;

/** Whether later records stand over earlier ones of the same name. */
const isVersioned = (record: ContextRecord): record is ContextRecord<'memory'> => record.kind === 'memory';

/** The id of a record's part: from all that it says, so that one written twice is one; of a memory item from its name. */
export function recordId(record: ContextRecord): PartId {
  const { kind, owner } = record;
  const what = isVersioned(record) ? hashText(canonicalJson(['item', record.body.name])) : hashText(canonicalJson(record));
  return partId('record', kind, ownerName(owner), what);
}

/** A record as the database holds it: its own canonical JSON as one text, found by kind, owner and step. */
export function toRecordPart(record: ContextRecord): StoredDocument {
  const { kind, owner, seq } = record;
  return { 'xt/id': recordId(record), type: 'record', record_ref: refOf(kind, owner, seq), seq, text: canonicalJson(record) };
}

/** Reads a record back. @throws {StoreError} `corrupt-part` – it is no record, or does not carry the id of its own content */
function fromRecordPart(part: StoredDocument): ContextRecord {
  const damaged = (why: string, cause?: unknown): StoreError =>
    new StoreError('corrupt-part', `the record ${JSON.stringify(part['xt/id'])} does not hold what its id says: ${why}`, { cause });
  let record: ContextRecord;
  try {
    record = contextRecord(JSON.parse(String(part.text)));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof DocumentError) throw damaged(messageOf(error), error);
    throw error;
  }
  if (recordId(record) !== part['xt/id'] || refOf(record.kind, record.owner, record.seq) !== part.record_ref)
    throw damaged('it was changed');
  return record;
}

/** Where the records of some kinds and an owner stand that are between two steps, both included: pairs of the first and the last reference of each kind. */
export function recordRanges(
  kinds: readonly RecordKind[],
  owner: RecordOwner,
  { first = 0, last = Number.MAX_SAFE_INTEGER }: StepRange,
): readonly (readonly [first: string, last: string])[] {
  const end = Math.min(last, Number.MAX_SAFE_INTEGER);
  return [...new Set(kinds)].filter(isRecordKind).map((kind) => [refOf(kind, owner, first), refOf(kind, owner, end)]);
}

/** The hashes of the texts that the part of a record names. */
export function recordTexts({ text }: StoredDocument): readonly Sha256[] {
  return contextRecord(JSON.parse(String(text))).texts ?? [];
}

const inOrder = (a: ContextRecord, b: ContextRecord): number => a.seq - b.seq || a.at - b.at;

/** Which records are wanted. */
export interface WantedContextRecords<Kind extends RecordKind> extends StepRange {
  readonly kinds: readonly Kind[];
  /** Called for each record that is damaged, which is then left out; without it such a record is thrown as an error. */
  readonly onDamaged?: (error: StoreError) => void;
}

/** The records of one owner that stand between two steps. */
async function ownRecords<Kind extends RecordKind>(
  db: DbSnapshot,
  owner: RecordOwner,
  { kinds, first = 0, last = Number.MAX_SAFE_INTEGER, onDamaged }: WantedContextRecords<Kind>,
): Promise<readonly ContextRecord<Kind>[]> {
  if (kinds.length === 0 || last < first) return [];
  const parts = await recordParts(db, recordRanges(kinds, owner, { first, last }));
  const found = parts.flatMap((part): readonly ContextRecord[] => {
    try {
      return [fromRecordPart(part)];
    } catch (error) {
      if (onDamaged === undefined || !(error instanceof StoreError)) throw error;
      onDamaged(error);
      return [];
    }
  });
  return found.sort(inOrder) as unknown as readonly ContextRecord<Kind>[];
}

/** The records of an agent, or of a session, by step and moment; for a fork first those of its ancestors up to where it left them, each with its own owner. */
export async function readRecords<Kind extends RecordKind>(
  db: DbSnapshot,
  of: Lineage | { readonly agent: string },
  wanted: WantedContextRecords<Kind>,
): Promise<readonly ContextRecord<Kind>[]> {
  if ('agent' in of) return ownRecords(db, of, wanted);
  const { last = Number.MAX_SAFE_INTEGER } = wanted;
  const found = of.segments.map((segment) =>
    ownRecords(db, { session: segment.session }, { ...wanted, last: Math.min(last, segment.last) }),
  );
  return (await Promise.all(found)).flat();
}

/** The sessions that some records belong to. */
export function recordedSessions(records: readonly ContextRecord[]): ReadonlySet<SessionId> {
  return new Set(records.flatMap(({ owner }) => ('session' in owner ? [owner.session] : [])));
}
