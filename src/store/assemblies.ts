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
 * Returns the part id of an assembly, derived from its session, its step and its content. The id
 * ignores time, basis and newer versions (`ahead`), so the same context handed out twice at a step
 * is one part. It depends on whether the record has a basis or `ahead`, because the context can
 * then be read again.
 */
export function assemblyId(proof: AssemblyProof): PartId {
  const { session, step, at, basis, ahead, ...what } = proof;
  return partId(
    'assembly',
    session,
    step,
    hashText(canonicalJson({ ...what, based: basis !== null || ahead !== undefined })),
  );
}

/** Returns the stored form of an assembly's record (decisions E7, G6). */
export function toAssemblyPart(proof: AssemblyProof): StoredDocument {
  const { session, step, ...body } = proof;
  const part = {
    'xt/id': assemblyId(proof),
    type: 'assembly',
    assembly_ref: sessionObjectId(session),
    seq: step,
    body,
  };
  return part as unknown as StoredDocument;
}

/**
 * Parses a stored assembly record.
 *
 * @throws {StoreError} `corrupt-part` if the id does not match the content
 */
function fromAssemblyPart(part: StoredDocument): AssemblyProof {
  const session: SessionId = sessionId(String(part.assembly_ref).slice('session:'.length));
  const proof = {
    session,
    step: Number(part.seq),
    ...(part.body as unknown as Omit<AssemblyProof, 'session' | 'step'>),
  };
  const id = assemblyId(proof);
  if (part['xt/id'] !== id && part['xt/id'] !== formerId(id)) {
    throw new StoreError(
      'corrupt-part',
      `the content of the record ${JSON.stringify(part['xt/id'])} does not match its id`,
    );
  }
  return proof;
}

const inOrder = (a: AssemblyProof, b: AssemblyProof): number =>
  a.step - b.step || a.at - b.at || (a.sha256 < b.sha256 ? -1 : 1);

/** Selects assembly records of a session, and has a callback for damaged ones. */
export interface WantedRecords extends StepRange {
  /**
   * Called for each record whose id does not match its content. That record is left out. Without
   * the callback, the read throws the error.
   */
  readonly onDamaged?: (error: StoreError) => void;
  /** Selects only records that begin an epoch (divergence E9). */
  readonly beginEpochs?: boolean;
}

/**
 * Returns the assembly records of a session's handed-out contexts, ordered by step and time. For a
 * fork, records of its ancestors up to the fork point come first. Each record names its own session
 * (decision F2).
 *
 * @throws {StoreError} `corrupt-part` if a record is damaged and there is no `onDamaged`
 */
export async function readAssemblies(
  db: DbSnapshot,
  { segments }: Lineage,
  wanted: WantedRecords,
): Promise<readonly AssemblyProof[]> {
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
    const parts = await partsAtSteps(db, {
      kind: beginEpochs ? 'epochs' : 'assemblies',
      session: segment.session,
      ...range,
    });
    return parts.flatMap(restore).sort(inOrder);
  });
  return (await Promise.all(found)).flat();
}
