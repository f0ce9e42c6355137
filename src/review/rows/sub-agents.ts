import pLimit from 'p-limit';
import { type SessionId, sessionId, sessionObjectId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { readStarter, type Starter } from './import-records.js';
import { startedBy } from './started-by.js';

/** A sub-agent's session, with the session and the call that started it. */
export interface SubAgent extends Starter {
  readonly id: SessionId;
}

/** The sessions that a session started. They have separate recordings. */
export type RecordedParents = ReadonlyMap<string, { readonly subagentOf?: string | undefined }>;

/** Number of sessions of a recording that one query looks for. */
const PROBED = 40;
const AT_ONCE = 4;

/** Returns the first session of a recording that has several: `ID` for `ID.2`. */
export const recordingOf = (id: string): string | undefined => /^(.+)\.\d+$/.exec(id)?.[1];

/** Returns the later sessions of a recording. An import numbers them from 2. */
async function partsOf(snapshot: StoreSnapshot, recording: string): Promise<readonly SessionId[]> {
  const found: SessionId[] = [];
  let last = 0;
  for (let first = 2; first === 2 || last > 0; first += PROBED) {
    const ids = Array.from({ length: PROBED }, (_, i) => sessionId(`${recording}.${first + i}`));
    const heads = await snapshot.heads(ids.map(sessionObjectId));
    last = heads.size;
    found.push(...ids.filter((id) => heads.has(sessionObjectId(id))));
  }
  return found;
}

/**
 * Returns the sub-agents of a session, and the sub-agents that these started. `recorded` has the
 * sessions that were imported from separate recordings.
 */
export async function subAgentsOf(
  snapshot: StoreSnapshot,
  session: SessionId,
  recorded: RecordedParents = new Map(),
): Promise<readonly SubAgent[]> {
  const others = [...recorded].map(([id, { subagentOf }]) => ({ id: sessionId(id), subagentOf }));
  const own = startedBy(session, others, ({ subagentOf }) => subagentOf).map(({ id }) => id);
  const parts = await partsOf(snapshot, recordingOf(session) ?? session);
  const read = await pLimit(AT_ONCE).map([...new Set([...parts, ...own])], async (id) => ({
    id,
    starter: await readStarter(snapshot, id),
  }));
  const started = read.flatMap(({ id, starter }) => (starter === undefined ? [] : [{ ...starter, id }]));
  return startedBy(session, started, (one) => one.session);
}
