import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical-json.js';
import { type ChatLog, runningTurn } from './chat-log.js';
import { chatObjectId, type ObjectId, type SessionId, type Sha256, sessionObjectId, systemPromptObjectId } from './ids.js';
import type { Turn } from './object-type.js';

/** The sets of a session whose index can be read from anywhere on. */
export interface GrowingSets {
  readonly indexSize: number;
  /** The ids of the index after its first `count`. */
  indexAfter(count: number): Iterable<ObjectId>;
  readonly activeIds: readonly ObjectId[];
  readonly pinnedIds: readonly ObjectId[];
}

const FIRST_BYTES = 4_096;

/** The canonical JSON of the members of a list that only grows, with commas between: written once, hashed as often as asked. */
class GrowingJson {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  /** Where the JSON of the first n members ends; some members have none. */
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

  /** The JSON of the first members. */
  first(count: number): Uint8Array {
    return this.#bytes.subarray(0, this.#ends[count]);
  }
}

function digest(...parts: readonly (string | Uint8Array)[]): Sha256 {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex') as Sha256;
}

const refsOf = ({ messages }: Turn): readonly ObjectId[] => messages.flatMap(({ toolcall_refs }) => toolcall_refs ?? []);

/** The canonical JSON of ids without the brackets around them. */
const idList = (ids: readonly ObjectId[]): string => canonicalJson(ids).slice(1, -1);

/**
 * The `metadata_hash` of one session's chat and session objects as they grow [§2.4]: the hash over the whole documents, as `chatVersion` and
 * `sessionVersion` have it, in the time that hashing their bytes takes; only what is new is written as JSON. States must be asked for in their order;
 * after a step that was not taken a new one has to be made.
 */
export class HeadHashes {
  readonly #session: SessionId;
  readonly #turns = new GrowingJson();
  readonly #refs = new GrowingJson();
  readonly #index = new GrowingJson();

  constructor(session: SessionId) {
    this.#session = session;
  }

  /** Over the fields of the chat: `session_ref`, `toolcall_refs`, `turn_count`, `turns`. */
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

  /** Over the fields of the session: both references, its own id, and the sets; index and pool are the same (decision G4). */
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
