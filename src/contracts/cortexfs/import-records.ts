import { canonicalJson, type Json } from '../../objects/canonical-json.js';
import { type ContextRecord, contextRecord } from '../../objects/context-record.js';
import { DocumentError } from '../../objects/errors.js';
import { hashText } from '../../objects/hashes.js';
import type { SessionId } from '../../objects/ids.js';
import { recordId } from '../../store/context-records.js';
import { CortexfsError } from './errors.js';
import type { ImportPlan } from './plan-import.js';

/** Maximum length of a pending call's arguments. Longer ones are replaced by their length. */
const LONGEST_ARGUMENTS = 400_000;

/** Returns a record's key within its session. The key is the same in every database. */
export const recordKey = ({ kind, seq, at, body }: ContextRecord): string =>
  hashText(canonicalJson([kind, seq, at, body] as unknown as Json)).slice(0, 16);

/**
 * Returns the planned records that the session lacks. Skips a note that equals the session's last
 * note of that name.
 */
export function missingRecords(
  planned: readonly ContextRecord[],
  there: readonly ContextRecord[],
): readonly ContextRecord[] {
  const known = new Set(there.map(recordId));
  const said = new Map(
    there.flatMap(({ kind, body }) => (kind === 'note' ? [[body.name, `${body.note} ${body.text}`] as const] : [])),
  );
  return planned.filter((record) => {
    if (known.has(recordId(record))) return false;
    return record.kind !== 'note' || said.get(record.body.name) !== `${record.body.note} ${record.body.text}`;
  });
}

/** Maps planned steps to steps and turns of the session. */
export interface RecordPlaces {
  readonly seqs: readonly number[];
  readonly turnOf: (seq: number) => number;
}

/** Returns the time for records without one, in milliseconds since 1970. */
function beginningOf({ derived }: ImportPlan): number {
  const created = Date.parse((derived.get('created_at') ?? '').trim());
  return Number.isNaN(created) || created < 0 ? 1 : created;
}

/**
 * Returns the records to import: the unchanged records of our own export, and approvals, notes and
 * pending calls from the files. Equal directories give equal records, so a repeated import writes
 * none twice.
 * @throws {CortexfsError} `invalid-file` if a record of our own export is invalid
 */
export function plannedRecords(
  session: SessionId,
  plan: ImportPlan,
  { seqs, turnOf }: RecordPlaces,
): readonly ContextRecord[] {
  const owner = { session };
  const since = beginningOf(plan);
  const lineSeq = new Map(plan.steps.flatMap(({ lines }, i) => lines.map((line) => [line, seqs[i] ?? 0] as const)));
  const last = seqs.at(-1) ?? 0;
  const seqBehind = (place: number): number => (place === 0 ? 0 : (seqs[place - 1] ?? last));
  const common = (seq: number, at: number) => ({ owner, turn: turnOf(seq), seq, at, basis: null });
  const own = plan.records.map((record) => ({ ...record, owner }) as unknown as ContextRecord);
  const approvals = plan.approvals.map(({ behind, at, body }, i): ContextRecord => {
    const seq = seqBehind(behind);
    return { kind: 'approval', ...common(seq, at ?? since + i), body };
  });
  const notes = plan.notes.map(({ line, body }, i): ContextRecord => {
    const seq = line === undefined ? last : (lineSeq.get(line) ?? last);
    return { kind: 'note', ...common(seq, since + i), body };
  });
  const open = plan.open.map(({ id, tool, args, behind = 0 }): ContextRecord => {
    const { length } = canonicalJson(args);
    const seq = seqBehind(behind);
    const kept = length <= LONGEST_ARGUMENTS ? args : { omitted: length };
    return {
      kind: 'call',
      ...common(seq, since),
      body: { native: id, tool, args: kept, by: seq },
    } as unknown as ContextRecord;
  });
  const records = [...own, ...approvals, ...notes, ...open];
  const late = records.find(({ at }) => at > Date.now());
  if (late !== undefined)
    throw new CortexfsError(
      'invalid-file',
      `the directory cannot be imported: its ${late.kind} of ${new Date(late.at).toISOString()} ` +
        'is in the future: correct the clock of this machine, or import it after that time',
    );
  try {
    return records.map(contextRecord);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new CortexfsError('invalid-file', `the directory cannot be imported: ${error.message}`, { cause: error });
  }
}
