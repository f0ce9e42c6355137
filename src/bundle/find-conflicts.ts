import { hashText } from '../objects/hashes.js';
import { type SessionId, sessionObjectId, sessionOfStepCall } from '../objects/ids.js';
import type { SessionDocuments } from '../store/session-documents.js';
import { BundleError } from './bundle-error.js';
import { bundleLine } from './bundle-lines.js';
import type { CheckedBundle, CheckedPut } from './check-bundle.js';

/** Which versions of a bundle a database holds already. */
export interface HeldVersions {
  isThere(put: CheckedPut): boolean;
  /** Whether it holds anything under an id. */
  isKnown(id: string): boolean;
  /** Whether it holds all of them. */
  readonly isAll: boolean;
  /** The sessions that it does not hold. */
  readonly newSessions: readonly string[];
}

const keyOf = (id: string, validTime: number): string => `${id}\0${validTime}`;

/** Whether something belongs to a session alone. */
function belongsTo(id: string, session: string): boolean {
  const own = [`session:${session}`, `chat:${session}`, `system_prompt:${session}`];
  const parts = [`step:${session}:`, `snapshot:${session}:`, `assembly:${session}:`];
  return (
    own.includes(id) || parts.some((prefix) => id.startsWith(prefix)) || (id.startsWith('record:') && id.includes(`:session:${session}:`))
  );
}

const conflict = (why: string): BundleError => new BundleError('conflict', `${why}; nothing was changed`);

/** The versions that a database holds of some objects: their valid times, and the line that a bundle would have of each. */
async function versionsHere(
  documents: SessionDocuments,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<number, string>>> {
  const places = await documents.places(ids);
  const found = await documents.at(places);
  const here = new Map<string, Map<number, string>>();
  for (const [i, { id, validTime }] of places.entries()) {
    const versions = here.get(id) ?? new Map<number, string>();
    here.set(id, versions);
    versions.set(validTime.getTime(), hashText(bundleLine({ put: found[i], valid: validTime.toISOString() })));
  }
  return here;
}

const latest = (times: Iterable<number>, upto: number): number => {
  let found = Number.NEGATIVE_INFINITY;
  for (const time of times) if (time <= upto && time > found) found = time;
  return found;
};

/** Refuses files of which the database knows versions that would stand in contexts of the bundle, which did not have them. */
function checkFiles({ transactions, contexts, knownFrom }: CheckedBundle, elsewhere: ReadonlyMap<string, readonly number[]>): void {
  const brought = new Map<string, { readonly number: number; readonly validTime: number }[]>();
  for (const { number, puts } of transactions)
    for (const { id, validTime } of puts) if (elsewhere.has(id)) brought.set(id, [...(brought.get(id) ?? []), { number, validTime }]);
  for (const [id, others] of elsewhere) {
    const from = knownFrom.get(id) ?? Number.POSITIVE_INFINITY;
    for (const { step, validTime, number } of contexts) {
      if (step < from) continue;
      const own = (brought.get(id) ?? []).filter((one) => one.number <= number).map((one) => one.validTime);
      if (latest(own, validTime) >= latest(others, validTime)) continue;
      throw conflict(`the database knows a version of the file ${id} that the context of step ${step} did not have, and would have here`);
    }
  }
}

/** Refuses ids that another session here gives its next calls: a bundle would take them from it. */
async function checkStepCalls(puts: readonly CheckedPut[], sessions: readonly string[], documents: SessionDocuments): Promise<void> {
  const named = new Map<SessionId, string>();
  for (const { id, type } of puts) {
    const owner = type === 'toolcall' ? sessionOfStepCall(id) : undefined;
    if (owner !== undefined && !sessions.includes(owner)) named.set(owner, id);
  }
  const here = await documents.newest([...named.keys()].map(sessionObjectId));
  for (const [owner, id] of named)
    if (here.has(sessionObjectId(owner)))
      throw conflict(`the bundle has the call ${JSON.stringify(id)}, and such an id is that of a call of session ${owner}, which is here`);
}

/** Which of some versions a database holds, whatever else it holds. */
export async function heldVersions(
  puts: readonly CheckedPut[],
  { documents, sessions }: { readonly documents: SessionDocuments; readonly sessions: readonly string[] },
) {
  const ids = [...new Set(puts.map(({ id }) => id))];
  const known = new Set((await documents.newest(ids)).keys());
  const types = new Map(puts.map(({ id, type }) => [id, type]));
  // A context's record is called by what it says, but for its basis, which is another one in each database.
  const compared = ids.filter((id) => known.has(id) && types.get(id) !== 'assembly');
  const here = await versionsHere(documents, compared);
  const isThere = ({ id, type, validTime, sha256 }: CheckedPut): boolean =>
    type === 'assembly' ? known.has(id) : here.get(id)?.get(validTime) === sha256;
  const missing = puts.filter((put) => !isThere(put));
  const newSessions = sessions.filter((session) => !known.has(sessionObjectId(session as never)));
  const held: HeldVersions = { isThere, isKnown: (id) => known.has(id), isAll: missing.length === 0, newSessions };
  return { held, missing, here, types };
}

/**
 * Compares a checked bundle with what a database holds. What it holds in the same form counts as there.
 * @throws {BundleError} `conflict`
 */
export async function compareWithDatabase(
  bundle: CheckedBundle,
  documents: SessionDocuments,
  ofThisImport: ReadonlySet<string>,
): Promise<HeldVersions> {
  const { sessions } = bundle.header;
  const puts = bundle.transactions.flatMap((transaction) => transaction.puts);
  const { held, missing, here, types } = await heldVersions(puts, { documents, sessions });
  await checkStepCalls(missing, sessions, documents);
  const other = missing.find(({ id, type, validTime }) => here.get(id)?.has(validTime) === true || (here.has(id) && type === 'toolcall'));
  if (other !== undefined) throw conflict(`the database holds another ${other.type} ${JSON.stringify(other.id)} than the bundle`);
  const isResumed = ofThisImport.size > 0;
  for (const session of sessions) {
    const lacking = isResumed || held.newSessions.includes(session) ? undefined : missing.find(({ id }) => belongsTo(id, session));
    if (lacking !== undefined)
      throw conflict(
        `the database holds session ${session} already, and not as the bundle has it: ${JSON.stringify(lacking.id)} is another one or missing`,
      );
  }
  const elsewhere = new Map<string, readonly number[]>();
  for (const [id, versions] of here) {
    const times = [...versions.keys()].filter((validTime) => !ofThisImport.has(keyOf(id, validTime)));
    if (types.get(id) === 'file' && times.length > 0) elsewhere.set(id, times);
  }
  if (missing.length > 0) checkFiles(bundle, elsewhere);
  return held;
}

/** How versions of an import are told from others. */
export const importedKey = keyOf;
