import { sym } from '../edn/values.js';
import type { AssemblyProof } from '../objects/assembly-proof.js';
import { type SessionId, sessionObjectId } from '../objects/ids.js';
import { type DatalogQuery, predicate, pull, triple } from '../xtdb/datalog.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { type StoredDocument, toDocument } from '../xtdb/documents.js';
import { fromAssemblyPart } from './assembly-part.js';
import { StoreError } from './errors.js';
import type { ForkPoint } from './head.js';
import { lineage, type StepRange, type Stretch } from './lineage.js';

const e = sym('?e');
const ref = sym('?ref');
const seq = sym('?seq');
const from = sym('?from');
const to = sym('?to');

const ASSEMBLIES: DatalogQuery = {
  find: [e, pull(e)],
  in: [ref, from, to],
  where: [triple(e, 'assembly_ref', ref), triple(e, 'seq', seq), predicate('>=', seq, from), predicate('<=', seq, to)],
};

const inOrder = (a: AssemblyProof, b: AssemblyProof): number => a.step - b.step || a.at - b.at || (a.sha256 < b.sha256 ? -1 : 1);

function readRecord(part: StoredDocument, onDamaged: ((error: StoreError) => void) | undefined): AssemblyProof | readonly AssemblyProof[] {
  try {
    return fromAssemblyPart(part);
  } catch (error) {
    if (onDamaged === undefined || !(error instanceof StoreError)) throw error;
    onDamaged(error);
    return [];
  }
}

/**
 * The records of what was handed out of a session, by step and moment; for a fork first those of its ancestors up to where it left them. Each names
 * the session that it was made of (decision F2).
 */
export async function readAssemblies(
  db: DbSnapshot,
  session: SessionId,
  parent: ForkPoint | undefined,
  { first = 0, last = Number.MAX_SAFE_INTEGER }: StepRange,
  onDamaged?: (error: StoreError) => void,
): Promise<readonly AssemblyProof[]> {
  const read = async (holder: Stretch): Promise<readonly AssemblyProof[]> => {
    const upto = Math.min(last, holder.last);
    if (upto < first) return [];
    const rows = await db.query(ASSEMBLIES, [sessionObjectId(holder.session), first, upto]);
    return rows.flatMap(([, document]) => readRecord(toDocument(document ?? null), onDamaged));
  };
  const found = await Promise.all((await lineage(db, session, parent)).map(read));
  return found.flatMap((records) => records.toSorted(inOrder));
}
