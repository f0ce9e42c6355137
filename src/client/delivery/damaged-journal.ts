import { type JournalDamage, type JournalLoss, placesText, type Range } from '../../journal/errors.js';
import { readableRecords } from '../../journal/journals.js';
import { decodePayload } from '../../journal/payload.js';
import type { SessionId } from '../../objects/ids.js';
import { errorOf } from '../../values/thrown.js';
import type { SessionWrite } from './session-write.js';
import { decodeWrite } from './write-record.js';

/** The readable and lost parts of a damaged journal. */
export interface DamagedJournal {
  readonly owner: string;
  readonly damage: readonly JournalDamage[];
  readonly loss: JournalLoss;
  /** Every readable write in order, including those that the database has. */
  readonly writes: readonly SessionWrite[];
}

/** Returns the write of a record, or an error if the record holds none. */
export function readWrite(payload: Uint8Array): SessionWrite | Error {
  try {
    return decodeWrite(decodePayload(payload));
  } catch (error) {
    return errorOf(error);
  }
}

/**
 * Reads the readable part of a damaged journal. Changes nothing.
 * @throws {JournalError} `newer-format`, `io`
 */
export async function readDamaged(
  dataDir: string,
  { owner, damage, loss }: Pick<DamagedJournal, 'owner' | 'damage' | 'loss'>,
): Promise<DamagedJournal> {
  const writes: SessionWrite[] = [];
  for await (const { payload } of readableRecords(dataDir, owner)) {
    const write = readWrite(payload);
    if (!(write instanceof Error)) writes.push(write);
  }
  return { owner, damage, loss, writes };
}

const rangeText = ([first, last]: Range): string => (first === last ? `${first}` : `${first} to ${last}`);

/** The losses that the readable steps of a session reveal. */
interface SessionLoss {
  readonly session: SessionId;
  /** Ranges of missing step numbers between readable steps. */
  readonly steps: readonly Range[];
  /** The first and last readable step, or 0. Steps outside this range may be lost too. */
  readonly first: number;
  readonly last: number;
}

/** Returns the sessions in a damaged journal with their missing steps. */
function sessionLosses({ writes }: Pick<DamagedJournal, 'writes'>): readonly SessionLoss[] {
  const sessions = new Map<SessionId, { readonly steps: Range[]; first: number; last: number | undefined }>();
  for (const { session, step } of writes) {
    const known = sessions.get(session) ?? { steps: [], first: 0, last: undefined };
    sessions.set(session, known);
    if (step === undefined) continue;
    if (known.last !== undefined && step.seq > known.last + 1) known.steps.push([known.last + 1, step.seq - 1]);
    if (known.last === undefined) known.first = step.seq;
    known.last = step.seq;
  }
  return [...sessions].map(([session, { steps, first, last = 0 }]) => ({ session, steps, first, last }));
}

/** Describes the possible losses outside the readable range of a session. */
function perhapsLost({ session, first, last }: SessionLoss): string {
  return `steps of session ${session}${first > 1 ? ` before step ${first}, or` : ''} after step ${last}`;
}

/** Describes the damage in one sentence: file, bytes, records, steps and affected sessions. */
export function lossText(journal: DamagedJournal): string {
  const { owner, damage, loss } = journal;
  const sessions = sessionLosses(journal);
  const certain = sessions.flatMap(({ session, steps }) =>
    steps.length === 0 ? [] : [`step ${steps.map(rangeText).join(', ')} of session ${session}`],
  );
  const lost = loss.records.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const found = sessions.flatMap(({ steps }) => steps).reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const records = loss.records.length === 0 ? [] : [`records ${loss.records.map(rangeText).join(', ')} of it are lost`];
  const near = [...sessions.map(perhapsLost), 'a session that only these records contained'].join('; ');
  const further = loss.isUncounted ? [`further records may be lost at the damaged place: ${near}`] : [];
  const untold = !loss.isUncounted && lost > found ? [`${lost - found} of these may have been ${near}`] : [];
  const what = [...records, ...certain, ...further, ...untold];
  const missing = what.length === 0 ? 'no acknowledged record is missing' : what.join('; ');
  return `the journal ${owner} is damaged: ${placesText(damage)}; ${missing}`;
}
