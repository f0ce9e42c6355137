import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical-json.js';
import { type ChatLog, runningTurn } from './chat-log.js';
import {
  chatObjectId,
  type ObjectId,
  type SessionId,
  type Sha256,
  sessionObjectId,
  systemPromptObjectId,
} from './ids.js';
import type { Turn } from './object-type.js';

/** The sets of a session, with an index that can be read from any position. */
export interface GrowingSets {
  readonly indexSize: number;
  /** Returns the ids of the index after its first `count`. */
  indexAfter(count: number): Iterable<ObjectId>;
  readonly activeIds: readonly ObjectId[];
  readonly pinnedIds: readonly ObjectId[];
}

const FIRST_BYTES = 4_096;

/**
 * Canonical JSON of an append-only list's members, separated by commas. Each member is serialized
 * once and can be hashed repeatedly.
 */
class GrowingJson {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  /** End offset of the JSON of the first n members. Some members have no JSON. */
  readonly #ends = [0];

  get count(): number {
    return this.#ends.length - 1;
  }

  push(json: string): void {
    const start = this.#ends.at(-1) ?? 0;
    const text = start === 0 || json === '' ? json : `,${json}`;
    const end = start + Buffer.byteLength(text);
    if (end > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(end, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, start);
      this.#bytes = larger;
    }
    this.#bytes.write(text, start);
    this.#ends.push(end);
  }

  /** Returns the JSON of the first `count` members. */
  first(count: number): Uint8Array {
    return this.#bytes.subarray(0, this.#ends[count]);
  }
}

function digest(...parts: readonly (string | Uint8Array)[]): Sha256 {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex') as Sha256;
}

const refsOf = ({ messages }: Turn): readonly ObjectId[] =>
  messages.flatMap(({ toolcall_refs }) => toolcall_refs ?? []);

/** Canonical JSON of ids without the surrounding brackets. */
const idList = (ids: readonly ObjectId[]): string => canonicalJson(ids).slice(1, -1);

/**
 * Computes the `metadata_hash` of one session's growing chat and session objects [§2.4]. The hash
 * covers the whole documents, as in `chatVersion` and `sessionVersion`, but only new members are
 * serialized.
 *
 * Pass states in their order. After a rejected step, create a new instance.
 */
export class HeadHashes {
  readonly #session: SessionId;
  readonly #turns = new GrowingJson();
  readonly #refs = new GrowingJson();
  readonly #index = new GrowingJson();

  constructor(session: SessionId) {
    this.#session = session;
  }

  /** Hashes the fields of the chat: `session_ref`, `toolcall_refs`, `turn_count`, `turns`. */
  chat(log: ChatLog): Sha256 {
    const closed = log.closed.size;
    for (const turn of log.closed.toArray(this.#turns.count)) {
      this.#turns.push(canonicalJson(turn));
      this.#refs.push(idList(refsOf(turn)));
    }
    const running = runningTurn(log);
    const refs = this.#refs.first(closed);
    const newRefs = running === undefined ? '' : idList(refsOf(running));
    return digest(
      `{"session_ref":${JSON.stringify(sessionObjectId(this.#session))},"toolcall_refs":[`,
      refs,
      refs.length === 0 || newRefs === '' ? newRefs : `,${newRefs}`,
      `],"turn_count":${closed + (running === undefined ? 0 : 1)},"turns":[`,
      this.#turns.first(closed),
      running === undefined ? '' : `${closed === 0 ? '' : ','}${canonicalJson(running)}`,
      ']}',
    );
  }

  /**
   * Hashes the fields of the session: both references, its own id, and the sets. Index and pool are
   * the same (decision G4).
   */
  session(sets: GrowingSets): Sha256 {
    for (const id of sets.indexAfter(this.#index.count)) this.#index.push(canonicalJson(id));
    const index = this.#index.first(sets.indexSize);
    return digest(
      `{"active_set":${canonicalJson(sets.activeIds)},"chat_ref":${JSON.stringify(chatObjectId(this.#session))},"metadata_pool":[`,
      index,
      `],"pinned_set":${canonicalJson(sets.pinnedIds)},"session_id":${JSON.stringify(this.#session)},"session_index":[`,
      index,
      `],"system_prompt_ref":${JSON.stringify(systemPromptObjectId(this.#session))}}`,
    );
  }
}
