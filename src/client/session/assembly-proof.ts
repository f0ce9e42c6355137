import type { MountMapping } from '../../filesystem/access/mounts.js';
import type { AssemblyProof, Delivery, HandedList } from '../../objects/assembly-proof.js';
import { defined } from '../../values/defined.js';
import type { SessionAssemblyRecord } from './assemble-session.js';

/** How a context was handed out. */
export interface HandedOut {
  readonly delivered: Delivery;
  /** The whole list that it was handed over in, where the harness mixed it with messages of its own. */
  readonly handed?: HandedList;
}

/** What the database keeps of an assembly that is handed out at a moment (decision E7). */
export function proofOf(
  record: SessionAssemblyRecord,
  { delivered, handed }: HandedOut,
  mappings: readonly MountMapping[],
  at: number,
): AssemblyProof {
  const { basis, blocks, delivered: _delivered, handed: _handed, sections, ...others } = record;
  const mounts = mappings.map(({ agentPrefix, canonicalPrefix, filesystemId }) => ({ agentPrefix, canonicalPrefix, filesystemId }));
  return {
    ...others,
    sections: sections.map(({ name, chars, sha256 }) => ({ name, chars, sha256 })),
    blocks: blocks.length,
    basis: basis?.txId === undefined ? null : { validTime: basis.validTime.getTime(), txId: basis.txId },
    ...(mounts.length === 0 ? {} : { mounts }),
    delivered,
    ...defined({ handed }),
    at,
  };
}
