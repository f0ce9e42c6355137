import { type JournalDamage, type JournalLoss, placesText, type Range } from '../../journal/errors.js';
import { readableRecords } from '../../journal/journals.js';
import { decodePayload } from '../../journal/payload.js';
import type { SessionId } from '../../objects/ids.js';
import { errorOf } from '../../values/thrown.js';
import type { SessionWrite } from './session-write.js';
import { decodeWrite } from './write-record.js';

/** A damaged journal: what can be read of it, and what cannot. */
export interface DamagedJournal {
  readonly owner: string;
  readonly damage: readonly JournalDamage[];
  readonly loss: JournalLoss;
  /** Every write that can be read, also those that the database has, in order. */
  readonly writes: readonly SessionWrite[];
}

/** The write that a record holds; the error for one that holds none. */
export function readWrite(payload: Uint8Array): SessionWrite | Error {
  try {
    return decodeWrite(decodePayload(payload));
  } catch (error) {
    return errorOf(error);
  }
}

/** Reads what can be read of a damaged journal. Changes nothing; throws JournalError `newer-format`, `io`. */
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

/** What the readable steps of a session show of those that cannot be read. */
interface SessionLoss {
  readonly session: SessionId;
  /** Numbers of steps that are missing between readable ones. */
  readonly steps: readonly Range[];
  /** The first and the last readable step, 0 where none is: steps before and after these may be lost too. */
  readonly first: number;
  readonly last: number;
}

/** The sessions that a damaged journal shows, with the steps that are missing in it. */
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

/** Where steps of a session may be lost besides those that are missing between readable ones. */
function perhapsLost({ session, first, last }: SessionLoss): string {
  return `steps of session ${session}${first > 1 ? ` before step ${first}, or` : ''} after step ${last}`;
}

/** In one sentence: which file, which bytes, which records, which steps, and which sessions may be concerned. */
export function lossText(journal: DamagedJournal): string {
  const { owner, damage, loss } = journal;
  const sessions = sessionLosses(journal);
  const certain = sessions.flatMap(({ session, steps }) =>
    steps.length === 0 ? [] : [`step ${steps.map(rangeText).join(', ')} of session ${session}`],
  );
  const lost = loss.records.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const found = sessions.flatMap(({ steps }) => steps).reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const records = loss.records.length === 0 ? [] : [`records ${loss.records.map(rangeText).join(', ')} of it are lost`];
  const near = [...sessions.map(perhapsLost), 'a session that only they knew'].join('; ');
  const further = loss.isUncounted ? [`perhaps further records at the place of the damage: ${near}`] : [];
  const untold = !loss.isUncounted && lost > found ? [`${lost - found} of these were perhaps ${near}`] : [];
  const what = [...records, ...certain, ...further, ...untold];
  return `the journal ${owner} is damaged: ${placesText(damage)}; ${what.length === 0 ? 'nothing that was acknowledged is missing' : what.join('; ')}`;
}
