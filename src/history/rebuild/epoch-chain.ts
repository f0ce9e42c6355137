import { LRUCache } from 'lru-cache';
import {
  beginEpoch,
  type EpochInput,
  type EpochState,
  noteInputOf,
  shownBy,
  withNote,
} from '../../assembly/epoch/epoch-state.js';
import type { AssemblyProof, EpochProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { SessionSets } from '../../objects/sets.js';
import type { SessionState } from '../../session/session-state.js';
import { StoreError } from '../../store/errors.js';
import type { ContextSnapshot } from './context-snapshot.js';

/** A record of a request in an epoch. */
export interface EpochRecord extends AssemblyProof {
  readonly epoch: EpochProof;
}

/** Returns whether a record belongs to a request in an epoch (divergence E9). */
export const isOfEpoch = (proof: AssemblyProof): proof is EpochRecord => proof.epoch !== undefined;

/**
 * Returns the first record of each epoch, oldest first. A request that is handed out again has a
 * second record, for example because its system prompt was not the expected one. The last record
 * counts.
 */
export function bordersOf(records: readonly AssemblyProof[]): readonly EpochRecord[] {
  const found = new Map<string, EpochRecord>();
  for (const record of records) {
    if (isOfEpoch(record) && record.epoch.previous === undefined)
      found.set(`${record.epoch.number} ${record.epoch.border}`, record);
  }
  return [...found.values()];
}

/**
 * Returns the texts that an epoch has shown after one of its requests. `before` is undefined for
 * the epoch's first request.
 */
export function stateAfter(
  { epoch, tail }: EpochRecord,
  before: EpochState | undefined,
  input: EpochInput,
): EpochState {
  const state = before ?? beginEpoch(input, tail?.turn ?? Number.MAX_SAFE_INTEGER);
  return epoch.note === undefined ? state : withNote(state, epoch.note, noteInputOf(input));
}

/**
 * Returns the objects that a note is rendered from, by the ids that the agent saw. `notedCalls`
 * returns the calls of its chat.
 */
export function noteObjects({ epoch: { note } }: EpochRecord): Pick<SessionSets, 'index' | 'active'> {
  if (note === undefined) return { index: [], active: [] };
  const active = [...new Set([...shownBy(note), ...(note.reads ?? []).map(({ file }) => file)])];
  return { index: [...new Set([...(note.lines ?? []), ...active])], active };
}

/** Returns the stored ids of the calls that a note's chat shows as lines. */
export function notedCalls({ epoch: { note } }: EpochRecord, state: SessionState): readonly ObjectId[] {
  return note?.chat === undefined ? [] : state.marksAfter(note.chat).flatMap(({ call }) => call ?? []);
}

/** Number of cached epoch states. Most readers finish one epoch before the next. */
const KEPT = 8;

const keyOf = ({ step, sha256 }: Pick<AssemblyProof, 'step' | 'sha256'>): string => `${step} ${sha256}`;

/**
 * The chains of epoch records. Each record names the previous record that added text: the epoch's
 * first record, or one with a note.
 */
export class EpochChains {
  readonly #records = new Map<SessionId, ReadonlyMap<string, EpochRecord>>();
  readonly #states = new LRUCache<string, EpochState>({ max: KEPT });

  /** Caches the state of an epoch after a request that added text. */
  keep(proof: EpochRecord, state: EpochState): void {
    const { session, epoch } = proof;
    if (epoch.previous === undefined || epoch.note !== undefined) this.#states.set(`${session} ${keyOf(proof)}`, state);
  }

  /**
   * Returns the newest cached state of an epoch before a request, if any. Also returns the records
   * since then that added text, oldest first.
   *
   * @throws {StoreError} `missing-part` if a record of the chain is missing
   */
  async before(proof: EpochRecord, present: () => Promise<ContextSnapshot>) {
    const links: EpochRecord[] = [];
    for (let one = proof; one.epoch.previous !== undefined; ) {
      const known = this.#states.get(`${proof.session} ${keyOf(one.epoch.previous)}`);
      if (known !== undefined) return { known, links };
      const found = await this.#record(one, one.epoch.previous, present);
      links.unshift(found);
      one = found;
    }
    return { known: undefined, links };
  }

  async #record(
    { session, epoch }: EpochRecord,
    wanted: Pick<AssemblyProof, 'step' | 'sha256'>,
    present: () => Promise<ContextSnapshot>,
  ) {
    const known = this.#records.get(session)?.get(keyOf(wanted));
    if (known !== undefined) return known;
    const all = await (await present()).assemblies(session, { onDamaged: () => undefined });
    const added = all
      .filter(isOfEpoch)
      .filter((one) => one.epoch.previous === undefined || one.epoch.note !== undefined);
    const records = new Map(added.map((one) => [keyOf(one), one]));
    this.#records.set(session, records);
    const found = records.get(keyOf(wanted));
    if (found !== undefined) return found;
    throw new StoreError(
      'missing-part',
      `the record of epoch ${epoch.number} of session ${session} at step ${wanted.step} is not in the database`,
    );
  }
}
