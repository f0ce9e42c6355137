import type { ObjectId } from '../../objects/ids.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { TxOp } from '../../xtdb/transactions.js';
import type { CurrentFile } from '../decide-file.js';
import { fileObjectId } from '../file-access.js';
import { planAssembly } from './plan-assembly.js';
import { decide, leaseOps, type PlanOptions, withoutRepeatedTexts } from './plan-write.js';
import type { SessionWrite, WriteResult } from './session-write.js';

/**
 * The joint plan of several writes of a session: the operations, and the results of the writes that
 * it includes. The plan may leave out the last writes.
 */
interface PlannedTogether {
  readonly ops: readonly TxOp[];
  readonly results: readonly WriteResult[];
}

/**
 * Returns whether a write may share a transaction. It must be a step inside a turn. It must have no
 * large texts, because those are written ahead of it.
 */
export function mayShare({ step, lost, heads, lease, files }: SessionWrite): boolean {
  const isAhead = files.some((file) => file.kind === 'read' && file.reading.kind === 'large-text');
  return (
    step !== undefined && lost === undefined && heads.length === 0 && lease !== undefined && lease !== null && !isAhead
  );
}

/** Plans the record of a context whose files the database has. */
async function recordOf(store: ObjectStore, write: SessionWrite): Promise<WriteResult> {
  const { ops, result } = await planAssembly(store, write, { seen: false })(1);
  return { ...result, ops };
}

/** Returns whether a write adds a version to a file that already had one. */
const changesKnown = ({ outcomes }: WriteResult): boolean => [...outcomes.values()].includes('updated');

/**
 * Plans consecutive writes of one session and one lease as one transaction. Each write is decided
 * against the state after the earlier ones. The plan ends before a write that changes a known file.
 * So after the transaction, every file has the version that each included step or record saw. `own`
 * holds the file states that a sole writer knows without a query.
 */
export async function planTogether(
  store: ObjectStore,
  writes: readonly SessionWrite[],
  { own, findAuthor }: Pick<PlanOptions, 'own' | 'findAuthor'> = {},
): Promise<PlannedTogether> {
  const [first] = writes;
  if (first === undefined) return { ops: [], results: [] };
  const ids = new Set(writes.flatMap(({ files }) => files.map(({ source }) => fileObjectId(source))));
  const asked = [...ids].filter((id) => own?.get(id) === undefined);
  const snapshot = asked.length > 0 ? await store.latest() : undefined;
  const heads = new Map(await snapshot?.heads(asked));
  const left = new Map<ObjectId, CurrentFile>();
  const known = (id: ObjectId): CurrentFile | undefined => left.get(id) ?? own?.get(id);
  const results: WriteResult[] = [];
  for (const write of writes) {
    const decided =
      write.assembly === undefined
        ? await decide(store, write, { snapshot, heads, known, isSole: own !== undefined, findAuthor })
        : await recordOf(store, write);
    if (results.length > 0 && changesKnown(decided)) break;
    results.push(decided);
    for (const { version, marks, validTime } of decided.files) {
      heads.delete(version['xt/id']);
      left.set(version['xt/id'], { fileHash: version.file_hash, gone: marks.gone === true, validTime });
    }
  }
  return { ops: withoutRepeatedTexts([...leaseOps(store, first), ...results.flatMap(({ ops }) => ops)]), results };
}
