import { hashText } from '../objects/hashes.js';
import { type ObjectId, type PartId, type SessionId, type Sha256, sessionId, sessionObjectId } from '../objects/ids.js';
import type { Message } from '../objects/object-type.js';
import type { SessionSets, SetChanges } from '../objects/sets.js';
import type { Step } from '../objects/step.js';
import { defined } from '../values/defined.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import { partId } from './part-id.js';
import { chunkId, INLINE_UNITS, textParts } from './texts.js';

/** Number of steps between two snapshots of a session's sets (decision G3). */
export const SNAPSHOT_EVERY = 100;

type StoredMessage = Omit<Message, 'text'> & { readonly text?: string; readonly text_hash?: Sha256 };

interface StepBody {
  readonly turn: number;
  readonly at: number;
  readonly opens?: NonNullable<Step['opens']>;
  readonly message?: StoredMessage;
  readonly call?: NonNullable<Step['call']>;
  readonly changes: SetChanges;
  readonly fresh?: readonly ObjectId[];
  readonly native?: string;
  readonly usage?: NonNullable<Step['usage']>;
  readonly event?: NonNullable<Step['event']>;
  readonly notes?: NonNullable<Step['notes']>;
  readonly by?: NonNullable<Step['by']>;
  readonly undoes?: number;
  readonly erased?: true;
}

/** Returns the id of a step's part (decision G3). */
export const stepId = (session: SessionId, seq: number): PartId => partId('step', session, seq);

/** Returns the stored form of a step, with the text parts of a long message. */
export function toStepParts(step: Step): { readonly part: StoredDocument; readonly texts: readonly StoredDocument[] } {
  const { session, seq, message, ...rest } = step;
  let texts: readonly StoredDocument[] = [];
  let stored: StoredMessage | undefined = message;
  if (message !== undefined && message.text.length > INLINE_UNITS) {
    const { text, ...others } = message;
    const text_hash = hashText(text);
    texts = textParts(text, text_hash);
    stored = { ...others, text_hash };
  }
  const body = { ...rest, ...defined({ message: stored }) };
  const part = { 'xt/id': stepId(session, seq), type: 'step', session_ref: sessionObjectId(session), seq, body };
  return { part: part as unknown as StoredDocument, texts };
}

/**
 * Returns the hash of the parts that hold a step's message text. Undefined if the step's own part
 * holds the text.
 */
export function messagePartHash(part: StoredDocument): Sha256 | undefined {
  return (part.body as unknown as StepBody).message?.text_hash;
}

/** Parses a stored step. `text` is the text of the parts that `messagePartHash` names. */
export function fromStepPart(part: StoredDocument, text?: string): Step {
  const { message, ...rest } = part.body as unknown as StepBody;
  const session = sessionId(String(part.session_ref).slice('session:'.length));
  const step = { session, seq: Number(part.seq), ...rest };
  if (message === undefined) return step;
  const { text_hash, ...others } = message;
  if (text_hash === undefined) return { ...step, message: others as Message };
  if (text === undefined)
    throw new StoreError(
      'missing-part',
      `the message of ${String(part['xt/id'])} is stored in ${chunkId(text_hash)}, which the database does not hold`,
    );
  return { ...step, message: { ...others, text } };
}

/**
 * A snapshot of the sets after a step. It holds only the index ids added since the previous
 * snapshot, so all snapshots together hold each id once.
 */
export interface SetsSnapshot {
  readonly seq: number;
  readonly indexed: readonly ObjectId[];
  readonly active: readonly ObjectId[];
  readonly pinned: readonly ObjectId[];
}

/** The input of a snapshot. `indexedBefore` counts the index ids in earlier snapshots. */
export interface SnapshotInput {
  readonly session: SessionId;
  readonly seq: number;
  readonly sets: SessionSets;
  readonly indexedBefore: number;
}

/** Returns the part of a snapshot, as one nested value with one index key (decision G3). */
export function toSnapshotPart({ session, seq, sets, indexedBefore }: SnapshotInput): StoredDocument {
  const body = { seq, indexed: sets.index.slice(indexedBefore), active: sets.active, pinned: sets.pinned };
  return { 'xt/id': partId('snapshot', session, seq), type: 'snapshot', snapshot_ref: sessionObjectId(session), body };
}

/** Parses a stored snapshot. */
export function fromSnapshotPart(part: StoredDocument): SetsSnapshot {
  return part.body as unknown as SetsSnapshot;
}
