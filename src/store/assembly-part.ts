import type { AssemblyProof } from '../objects/assembly-proof.js';
import { canonicalJson } from '../objects/canonical-json.js';
import { hashText } from '../objects/hashes.js';
import { type SessionId, sessionId, sessionObjectId } from '../objects/ids.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';

/**
 * The id of an assembly's part: from its session, its step and what was handed out. Moment, basis and what it was ahead of it are left out, so that the
 * same context handed out twice at one step is one part; whether there was a basis is not, since a context that can be read again proves more than one that cannot.
 */
export function assemblyId(proof: AssemblyProof): string {
  const { session, step, at, basis, ahead, ...what } = proof;
  return `assembly:${session}:${step}:${hashText(canonicalJson({ ...what, based: basis !== null || ahead !== undefined }))}`;
}

/** An assembly's record as the database holds it (decisions E7, G6). */
export function toAssemblyPart(proof: AssemblyProof): StoredDocument {
  const { session, step, ...body } = proof;
  const part = { 'xt/id': assemblyId(proof), type: 'assembly', assembly_ref: sessionObjectId(session), seq: step, body };
  return part as unknown as StoredDocument;
}

/** Reads an assembly's record back. Throws StoreError `corrupt-part` for one that does not carry the id of its own content. */
export function fromAssemblyPart(part: StoredDocument): AssemblyProof {
  const session: SessionId = sessionId(String(part.assembly_ref).slice('session:'.length));
  const proof = { session, step: Number(part.seq), ...(part.body as unknown as Omit<AssemblyProof, 'session' | 'step'>) };
  if (assemblyId(proof) !== part['xt/id']) {
    throw new StoreError('corrupt-part', `the record ${JSON.stringify(part['xt/id'])} does not hold what its id says`);
  }
  return proof;
}
