import type { AssemblyProof } from '../objects/assembly-proof.js';
import { canonicalJson } from '../objects/canonical-json.js';
import { hashText } from '../objects/hashes.js';
import { type PartId, type SessionId, sessionId, sessionObjectId } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import type { Lineage, StepRange } from './lineage.js';
import { formerId, partId } from './part-id.js';
import { partsAtSteps } from './queries.js';

/**
 * The id of an assembly's part: from its session, its step and what was handed out. Moment, basis and what it was ahead of it are left out, so that the
 * same context handed out twice at one step is one part; whether there was a basis is not, since a context that can be read again proves more than one that cannot.
 */
export function assemblyId(proof: AssemblyProof): PartId {
  const { session, step, at, basis, ahead, ...what } = proof;
  return partId('assembly', session, step, hashText(canonicalJson({ ...what, based: basis !== null || ahead !== undefined })));
}

/** An assembly's record as the database holds it (decisions E7, G6). */
export function toAssemblyPart(proof: AssemblyProof): StoredDocument {
  const { session, step, ...body } = proof;
  const part = { 'xt/id': assemblyId(proof), type: 'assembly', assembly_ref: sessionObjectId(session), seq: step, body };
  return part as unknown as StoredDocument;
}

/** Reads an assembly's record back. @throws {StoreError} `corrupt-part` – it does not carry the id of its own content */
function fromAssemblyPart(part: StoredDocument): AssemblyProof {
  const session: SessionId = sessionId(String(part.assembly_ref).slice('session:'.length));
  const proof = { session, step: Number(part.seq), ...(part.body as unknown as Omit<AssemblyProof, 'session' | 'step'>) };
  const id = assemblyId(proof);
  if (part['xt/id'] !== id && part['xt/id'] !== formerId(id)) {
    throw new StoreError('corrupt-part', `the record ${JSON.stringify(part['xt/id'])} does not hold what its id says`);
  }
  return proof;
}

const inOrder = (a: AssemblyProof, b: AssemblyProof): number => a.step - b.step || a.at - b.at || (a.sha256 < b.sha256 ? -1 : 1);

/** Which records of a session are wanted, and who is notified of those that are damaged. */
export interface WantedRecords extends StepRange {
  /** Called for each record that does not carry the id of its own content, which is then left out; without it such a record is thrown as an error. */
  readonly onDamaged?: (error: StoreError) => void;
  /** Only those with which an epoch begins (divergence E9). */
  readonly beginEpochs?: boolean;
}

/**
 * The records of what was handed out of a session, by step and moment; for a fork first those of its ancestors up to where it left them. Each names
 * the session that it was made of (decision F2).
 *
 * @throws {StoreError} `corrupt-part` – a record is damaged and there is no `onDamaged`
 */
export async function readAssemblies(db: DbSnapshot, { segments }: Lineage, wanted: WantedRecords): Promise<readonly AssemblyProof[]> {
  const { first = 0, last = Number.MAX_SAFE_INTEGER, onDamaged, beginEpochs = false } = wanted;
  const restore = (part: StoredDocument): AssemblyProof | readonly AssemblyProof[] => {
    try {
      return fromAssemblyPart(part);
    } catch (error) {
      if (onDamaged === undefined || !(error instanceof StoreError)) throw error;
      onDamaged(error);
      return [];
    }
  };
  const found = segments.map(async (segment) => {
    const range = { first, last: Math.min(last, segment.last) };
    if (range.last < first) return [];
    const parts = await partsAtSteps(db, { kind: beginEpochs ? 'epochs' : 'assemblies', session: segment.session, ...range });
    return parts.flatMap(restore).sort(inOrder);
  });
  return (await Promise.all(found)).flat();
}
