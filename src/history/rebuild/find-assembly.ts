import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { SessionId } from '../../objects/ids.js';
import type { ObjectStore } from '../../store/object-store.js';
import { ofSession, storeOf } from '../../store/session-line.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { HistoryError } from './history-error.js';
import { AssemblyRebuilder } from './rebuild-assembly.js';
import type { RebuiltAssembly } from './rebuilt-assembly.js';

/** Which of the contexts of a place is wanted. */
export interface WantedAssembly {
  readonly turn: number;
  /** The session's own number of the step; the last one of the turn that a context was handed out at where absent. */
  readonly step?: number;
  /** The first and last step of the turn, where they are known: then the records of other turns are not read. */
  readonly first?: number;
  readonly last?: number;
}

/** The records of the contexts that were handed out at a place of a session, in their order; empty where none was. */
async function assembliesAt(
  snapshot: StoreSnapshot,
  session: SessionId,
  { turn, step, first = step, last = step }: WantedAssembly,
): Promise<readonly AssemblyProof[]> {
  const all = (await snapshot.assemblies(session, defined({ first, last }))).filter((proof) => proof.turn === turn);
  const latest = all.at(-1)?.step;
  return all.filter((proof) => proof.step === (step ?? latest));
}

/**
 * The context that was handed out in a turn of a session, at a step or as its last one, made again from the database (decision E7).
 * @throws {HistoryError} `beyond-end` where none was handed out there, and what `AssemblyRebuilder.rebuild` throws
 */
export async function rebuildAssembly(
  store: ObjectStore,
  session: SessionId,
  wanted: WantedAssembly,
): Promise<RebuiltAssembly> {
  const present = await ofSession(await store.latest(), session);
  const proof = (await assembliesAt(present, session, wanted)).at(-1);
  if (proof === undefined) {
    const step = wanted.step === undefined ? '' : `, step ${wanted.step}`;
    throw new HistoryError(
      'beyond-end',
      `no context of session ${session} was handed out in turn ${wanted.turn}${step}`,
    );
  }
  return new AssemblyRebuilder(storeOf(store, present)).rebuild(proof);
}
