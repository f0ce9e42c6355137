import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { SourceReading, UnreachableReason } from '../../filesystem/access/read-source.js';
import type { ObjectId } from '../../objects/ids.js';
import type { FilesystemSource } from '../../objects/source.js';
import type { Resolution } from '../../session/resolve-reference.js';
import type { SessionState } from '../../session/session-state.js';
import { type Verb, verbOutcome } from '../../session/verb-outcome.js';
import type { ReportedReading } from './reported-files.js';

/** Why a verb did nothing for one object (decisions D3, D5). */
export type VerbFailure =
  | 'unknown'
  | 'ambiguous'
  | 'infrastructure'
  | 'not-active'
  | 'not-pinned'
  | 'deleted'
  | 'not-text'
  | 'inaccessible'
  | 'outside-roots';

/** What a verb will do for one reference of the agent. */
export type VerbEntry =
  | {
      readonly reference: string;
      readonly ok: true;
      readonly id: ObjectId;
      /** False when the object already was as asked; activating it again still makes it fresh (decision D4). */
      readonly changes: boolean;
      /** For activate: what the agent now has in context; the text as stored. */
      readonly text?: string;
      /** What the object is from this step on; a stub that was just read is no stub any more. */
      readonly metadata: ObjectMetadata;
    }
  | {
      readonly reference: string;
      readonly ok: false;
      readonly failure: VerbFailure;
      readonly id?: ObjectId;
      readonly candidates?: readonly ObjectId[];
    };

/** One verb over several references, decided but not written: it becomes one step when its call is recorded (decision D7). */
export interface VerbPlan {
  readonly verb: Verb;
  readonly entries: readonly VerbEntry[];
  /** Files that were read on the way: stubs before their activation, and whatever turned out changed or deleted [§3.3]. */
  readonly readings: readonly ReportedReading[];
}

/** The ids that a plan's verb applies to, each once, in the order given. */
export function appliedIds(plan: VerbPlan): readonly ObjectId[] {
  return [...new Set(plan.entries.flatMap((entry) => (entry.ok ? [entry.id] : [])))];
}

const FAILED_RESOLUTION: Readonly<Record<Exclude<Resolution['kind'], 'found'>, VerbFailure>> = {
  unknown: 'unknown',
  ambiguous: 'ambiguous',
  infrastructure: 'infrastructure',
};

/** The entry of a reference that names no one object. */
export function unresolved(reference: string, resolution: Exclude<Resolution, { kind: 'found' }>): VerbEntry {
  const failure = FAILED_RESOLUTION[resolution.kind];
  return { reference, ok: false, failure, ...(resolution.kind === 'ambiguous' ? { candidates: resolution.candidates } : {}) };
}

/** The entry of a verb that needs no content, for an object of the session (decisions D1 to D3). */
export function simpleEntry(verb: Verb, state: SessionState, reference: string, metadata: ObjectMetadata): VerbEntry {
  const { id } = metadata;
  const outcome = verbOutcome(state, verb, id);
  if (outcome === 'not-active' || outcome === 'not-pinned') return { reference, ok: false, failure: outcome, id };
  return { reference, ok: true, id, changes: outcome === 'done', metadata };
}

const UNREACHABLE: Readonly<Record<UnreachableReason, VerbFailure>> = {
  'no-permission': 'inaccessible',
  io: 'inaccessible',
  'mount-absent': 'inaccessible',
  'foreign-filesystem': 'inaccessible',
  'outside-roots': 'outside-roots',
  loop: 'inaccessible',
  'invalid-path': 'inaccessible',
};

/** What reading a file's source means for activating it (decision D5); null when its last version has to serve, as an orphan's does [§5.9]. */
export function activationFailure(reading: SourceReading, known: boolean): VerbFailure | null | undefined {
  if (reading.kind === 'missing') return 'deleted';
  if (reading.kind === 'binary') return 'not-text';
  if (reading.kind === 'text' || reading.kind === 'large-text') return undefined;
  if (known) return null;
  return reading.kind === 'unreachable' ? UNREACHABLE[reading.reason] : 'inaccessible';
}

/** The reading of a file together with what it belongs to. */
export const asReading = (source: FilesystemSource, reading: SourceReading): ReportedReading => ({ source, reading, activate: false });
