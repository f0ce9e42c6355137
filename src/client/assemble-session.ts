import { type Assembly, assemble } from '../assembly/assemble.js';
import type { AssemblyRecord } from '../assembly/assembly-record.js';
import type { ObjectId, SessionId } from '../objects/ids.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import type { Basis } from '../xtdb/db-snapshot.js';
import { metadataOf } from './metadata-cache.js';
import type { HeldSession } from './open-session.js';
import type { SessionEnvironment } from './session-environment.js';

/** The record of one assembly (decision E7): enough to rebuild it from the database alone. */
export interface SessionAssemblyRecord extends AssemblyRecord {
  readonly session: SessionId;
  readonly turn: number;
  /** The last step that it includes. */
  readonly step: number;
  readonly basis: Basis;
}

/** An assembled context with its record. */
export interface SessionAssembly extends Assembly {
  readonly record: SessionAssemblyRecord;
}

/** Brings the metadata of a session's objects to a snapshot, unless nothing foreign was written since they were learned. */
async function refresh({ cache }: SessionEnvironment, snapshot: StoreSnapshot, index: readonly ObjectId[]): Promise<void> {
  if (cache.isCurrent(snapshot.basis.txId)) return;
  for (const { document, marks } of (await snapshot.heads(index)).values()) cache.learn(document, marks);
}

/** Assembles the context of a session at one basis, resolved once and carried through every read [§4]. */
export async function assembleSession(
  environment: SessionEnvironment,
  { state, prompt }: HeldSession,
  options: { readonly strict?: boolean; readonly shortIds?: boolean },
): Promise<SessionAssembly> {
  const { store, cache, files } = environment;
  const snapshot = await store.now();
  await refresh(environment, snapshot, state.sets.index);
  const found = await snapshot.getMany(state.sets.active);
  const active = state.sets.active.flatMap((id) => {
    const object = found.get(id);
    const metadata = object === undefined ? undefined : metadataOf(object.version, object.marks, files);
    return object === undefined || metadata === undefined ? [] : [{ metadata, content: object.version.content ?? '' }];
  });
  const pool = state.sets.index.flatMap((id) => cache.get(id) ?? []);
  const { strict = environment.strict, shortIds = environment.shortIds } = options;
  const assembly = assemble({ systemPrompt: prompt, pool, turns: state.turns, active, options: { strict, shortIds } });
  const { basis } = snapshot;
  return { ...assembly, record: { ...assembly.record, session: state.id, turn: state.turn, step: state.seq, basis } };
}
