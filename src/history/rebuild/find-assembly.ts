import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { SessionId } from '../../objects/ids.js';
import type { ObjectStore } from '../../store/object-store.js';
import { ofSession, storeOf } from '../../store/session-line.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { HistoryError } from './history-error.js';
import { AssemblyRebuilder } from './rebuild-assembly.js';
import type { RebuiltAssembly } from './rebuilt-assembly.js';

/** Selects one of the contexts of a session. */
export interface WantedAssembly {
  readonly turn: number;
  /** The step number within the session; default: the turn's last step with a context. */
  readonly step?: number;
  /**
   * The first and last step of the turn, if known. With them, the records of other turns are not
   * read.
   */
  readonly first?: number;
  readonly last?: number;
}

/** Returns the records of the contexts at a place of a session, in order. */
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
 * Rebuilds the context of a turn from the database: that of `step`, or the turn's last one
 * (decision E7).
 *
 * @throws {HistoryError} `beyond-end` if there was no context; also the errors of
 * `AssemblyRebuilder.rebuild`
 *
 * @example
 * ```ts
 * const { equal, rendered } = await rebuildAssembly(store, sessionId('fix-cart'), { turn: 7 });
 * ```
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
      `no context of session ${session} was handed out in turn ${wanted.turn}${step}; palimpsest report list ` +
        `${session} lists its contexts`,
    );
  }
  return new AssemblyRebuilder(storeOf(store, present)).rebuild(proof);
}
