import { canonicalJson } from '../objects/canonical-json.js';
import {
  type ContextRecord,
  contextRecord,
  isRecordKind,
  type RecordKind,
  type RecordOwner,
} from '../objects/context-record.js';
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

const ownerName = (owner: RecordOwner): string =>
  'session' in owner ? sessionObjectId(owner.session) : `agent:${owner.agent}`;

/** Number of digits of a step number in a key: as many as the largest safe integer has. */
const SEQ_DIGITS = 16;
/**
 * Number of digits of an owner's hash in a key. Keys contain a hash because the database sorts only
 * texts of at most 224 bytes, and a session name can be nearly that long.
 */
const OWNER_DIGITS = 32;

/** Returns the lookup key of a record: its kind, owner and step, in sort order. */
const refOf = (kind: RecordKind, owner: RecordOwner, seq: number): string =>
  `${kind} ${hashText(ownerName(owner)).slice(0, OWNER_DIGITS)} ${String(seq).padStart(SEQ_DIGITS, '0')}`;

/** Returns whether later records replace earlier ones of the same name. */
const isVersioned = (record: ContextRecord): record is ContextRecord<'memory'> => record.kind === 'memory';

/**
 * Returns the part id of a record. It is derived from the full content, so a record written twice
 * is one part. The id of a memory item is derived from its name.
 */
export function recordId(record: ContextRecord): PartId {
  const { kind, owner } = record;
  const what = isVersioned(record)
    ? hashText(canonicalJson(['item', record.body.name]))
    : hashText(canonicalJson(record));
  return partId('record', kind, ownerName(owner), what);
}

/**
 * Returns the stored form of a record: its canonical JSON as one text, with a key of kind, owner
 * and step.
 */
export function toRecordPart(record: ContextRecord): StoredDocument {
  const { kind, owner, seq } = record;
  return {
    'xt/id': recordId(record),
    type: 'record',
    record_ref: refOf(kind, owner, seq),
    seq,
    text: canonicalJson(record),
  };
}

/**
 * Parses a stored record.
 *
 * @throws {StoreError} `corrupt-part` if it is not a record, or its id does not match its content
 */
function fromRecordPart(part: StoredDocument): ContextRecord {
  const damaged = (why: string, cause?: unknown): StoreError =>
    new StoreError(
      'corrupt-part',
      `the content of the record ${JSON.stringify(part['xt/id'])} does not match its id: ${why}`,
      { cause },
    );
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

/**
 * Returns the key ranges of an owner's records of some kinds between two steps, both included: a
 * pair of first and last key per kind.
 */
export function recordRanges(
  kinds: readonly RecordKind[],
  owner: RecordOwner,
  { first = 0, last = Number.MAX_SAFE_INTEGER }: StepRange,
): readonly (readonly [first: string, last: string])[] {
  const end = Math.min(last, Number.MAX_SAFE_INTEGER);
  return [...new Set(kinds)].filter(isRecordKind).map((kind) => [refOf(kind, owner, first), refOf(kind, owner, end)]);
}

/** Returns the hashes of the texts that a record's part refers to. */
export function recordTexts({ text }: StoredDocument): readonly Sha256[] {
  return contextRecord(JSON.parse(String(text))).texts ?? [];
}

const inOrder = (a: ContextRecord, b: ContextRecord): number => a.seq - b.seq || a.at - b.at;

/** Selects context records. */
export interface WantedContextRecords<Kind extends RecordKind> extends StepRange {
  readonly kinds: readonly Kind[];
  /**
   * Called for each damaged record, which is left out. Without the callback, the read throws the
   * error.
   */
  readonly onDamaged?: (error: StoreError) => void;
}

/** Returns the records of one owner between two steps. */
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

/**
 * Returns the records of an agent, or of a session, ordered by step and time. For a fork, records
 * of its ancestors up to the fork point come first, each with its own owner.
 */
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

/** Returns the sessions that some records belong to. */
export function recordedSessions(records: readonly ContextRecord[]): ReadonlySet<SessionId> {
  return new Set(records.flatMap(({ owner }) => ('session' in owner ? [owner.session] : [])));
}
