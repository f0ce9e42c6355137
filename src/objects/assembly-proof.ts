import type { Json } from './canonical-json.js';
import type { ObjectId, SessionId, Sha256 } from './ids.js';
import type { FilesystemSource } from './source.js';
import type { ModelUsage } from './step.js';

/** The way a context reached its model (decision E7). */
export type Delivery = 'library' | 'http' | 'pi' | 'opencode' | 'replay' | 'gateway';

/**
 * Hash and length of the canonical JSON of the message list that a harness passed in. Recorded
 * where the harness mixed a context with messages of its own.
 */
export interface HandedList {
  readonly sha256: Sha256;
  /** Length of the canonical JSON in UTF-16 units. */
  readonly chars: number;
  readonly messages: number;
}

/**
 * A request that an agent built itself and that a gateway saw. Its body is stored as a text under
 * the record's `sha256`.
 */
export interface SentProof {
  /** The provider's protocol, such as `anthropic` or `responses`. */
  readonly wire: string;
  readonly model?: string;
  /** The provider's id of the answer, and the reason for its end. */
  readonly answer?: string;
  readonly stop?: string;
  readonly usage?: ModelUsage;
  /** The types of blocks or items in the answer, such as `thinking` or `compaction`. */
  readonly blocks?: readonly string[];
  /** The provider's reports on its cache and on its own edits, unchanged. */
  readonly verdicts?: Json;
  /** Whether the request asked for a compaction, or carries the result of one. */
  readonly compaction?: 'asked' | 'carried';
  /**
   * Number of earlier requests from which, with their answers, the body was completed. The request
   * itself had only the new part, because the provider held the rest. Absent if the body went out
   * as it is.
   */
  readonly rebuilt?: number;
}

/** Length in UTF-16 units and hash of one section of a context [§4.1]. */
export interface SectionProof {
  readonly name: string;
  readonly chars: number;
  readonly sha256: Sha256;
}

/** A path mapping that the context used to show the agent's paths [§5.3]. */
export interface ShownMount {
  readonly agentPrefix: string;
  readonly canonicalPrefix: string;
  readonly filesystemId: string;
}

/** An object version that a context showed although its basis lacks it or has another version. */
export interface ShownAhead {
  readonly id: ObjectId;
  readonly object_hash: Sha256;
  readonly gone?: true;
}

/**
 * Objects in a session's sets that a context omitted because it was assembled without the database.
 */
export interface AbsentObjects {
  /** Unknown objects of the index. Their lines are missing. */
  readonly lines: readonly ObjectId[];
  /** Active objects whose text was unavailable. Their content is missing. */
  readonly texts: readonly ObjectId[];
}

/**
 * The reason an epoch began:
 * - `first`: it is the first of its session
 * - `saving`: its savings cover its cost
 * - `cold`: the provider's cache was cold
 * - `pressure`: the budget was reached
 * - `asked`: a verb asked for it
 * - `history`: the harness's list changed
 */
export type BorderReason = 'first' | 'saving' | 'cold' | 'pressure' | 'asked' | 'history';

/**
 * Cost and saving of a new epoch, in tokens: the amount to write again, and the amount saved per
 * later call.
 */
export interface BorderPrice {
  readonly written: number;
  readonly savedPerCall: number;
}

/**
 * A read of a file whose text, current or earlier, the request already has before the read. That
 * text is in one of our blocks or in the result of an earlier call.
 */
export interface ReadProof {
  readonly call: ObjectId;
  readonly file: ObjectId;
  readonly inBlock: boolean;
}

/**
 * The content that one request of an epoch appends to the requests before it (divergence E9).
 * Object ids refer to the record's own basis.
 */
export interface NoteProof {
  /** Number of the harness's own messages before the note. */
  readonly after: number;
  /**
   * Objects whose line appears here: new objects, objects whose short id became ambiguous, and
   * objects whose file was deleted.
   */
  readonly lines?: readonly ObjectId[];
  /** Objects whose text appears here. */
  readonly contents?: readonly ObjectId[];
  /** Files shown here as a change against the text in the request. */
  readonly changes?: readonly ObjectId[];
  /** Files whose current text appears in the harness's own messages. */
  readonly seen?: readonly ObjectId[];
  /**
   * Calls in the harness's list that read a file whose text, current or earlier, appears before the
   * call. A line replaces the call's result.
   */
  readonly reads?: readonly ReadProof[];
  /** Calls that read a whole file whose text is in the request. A line names the file. */
  readonly refs?: readonly ObjectId[];
  /**
   * Set if the harness keeps no list. The note begins with the chat after this step, up to the
   * record's step.
   */
  readonly chat?: number;
}

/** The part of a harness's list that stays unchanged in an epoch. */
export interface KeptList {
  /** Number of messages before it. */
  readonly from: number;
  /** Number of messages in it. */
  readonly count: number;
  /** Hash of those messages as reported, one after the other. */
  readonly sha256: Sha256;
}

/**
 * The epoch that a context belongs to, and the content that the context added to it. The records of
 * an epoch form a chain that begins at its border.
 */
export interface EpochProof {
  /** Counts from 1 within a session. */
  readonly number: number;
  /** The step at which the epoch began. */
  readonly border: number;
  readonly reason: BorderReason;
  readonly price?: BorderPrice;
  /** Absent if the harness gave no list. The request then contains the recorded chat instead. */
  readonly list?: KeptList;
  /** Number of requests that the session has made in epochs, including this one. */
  readonly calls: number;
  /** The previous record with a note, or the border's record. Absent on the border's own record. */
  readonly previous?: { readonly step: number; readonly sha256: Sha256 };
  readonly note?: NoteProof;
}

/**
 * The assembly record of a handed-out context (decision E7), as the database holds it. It suffices
 * to rebuild the assembly and to compare it. The contents are derived from the basis, not stored
 * again.
 */
export interface AssemblyProof {
  readonly session: SessionId;
  readonly turn: number;
  /** The last step that the context includes. */
  readonly step: number;
  /** Names of renderer and layout. A later version may add more names. */
  readonly renderer: string;
  readonly layout: string;
  /** Version of the renderer's output. */
  readonly version: number;
  readonly options: {
    readonly strict: boolean;
    readonly shortIds: boolean;
    readonly described?: boolean;
    readonly inputs?: boolean;
    readonly guide?: number;
  };
  /**
   * The part of its own list that the harness kept: a turn of the chat, and the calls whose results
   * are in it. Absent if it kept nothing.
   */
  readonly tail?: { readonly turn: number; readonly results: readonly ObjectId[] };
  /** Present with layout `epoch`. */
  readonly epoch?: EpochProof;
  /** Omits empty sections. */
  readonly sections: readonly SectionProof[];
  /** Number of blocks of active content. */
  readonly blocks: number;
  readonly chars: number;
  readonly sha256: Sha256;
  /**
   * The basis that was read: valid time in milliseconds since 1970, and transaction. Null without
   * `ahead` means that a sole writer assembled the context, or an older program did while the
   * database was down. Then the context is rebuilt at the transaction that wrote its step.
   */
  readonly basis: { readonly validTime: number; readonly txId: number } | null;
  /**
   * Present on a context that was assembled without waiting for transactions, or without the
   * database (decision 0010). Such a context includes every step up to `step`, even if the basis
   * lacks them, and shows these objects in these versions. With a null basis nothing was read, so
   * every file and the prompt are named here.
   */
  readonly ahead?: readonly ShownAhead[];
  /**
   * Present if the context may lack writes of other clients. Holds the database's last transaction
   * at the time of the request, which is later than the basis. Null if the database did not answer
   * in time. A context without this field shows everything that the database had.
   */
  readonly behind?: number | null;
  /** Present only with `ahead`. */
  readonly absent?: AbsentObjects;
  /** The mappings used to show paths. Absent if there were none. */
  readonly mounts?: readonly ShownMount[];
  /** The folders whose files were shown. Absent if no file of the session was left out. */
  readonly folders?: readonly FilesystemSource[];
  /**
   * Present if redaction masked shown content when the session was written to a bundle. Hashes and
   * sizes then describe the masked text.
   */
  readonly redacted?: true;
  readonly delivered: Delivery;
  /** Present with renderer `sent`. */
  readonly sent?: SentProof;
  readonly handed?: HandedList;
  /**
   * The session that handed the context out. Present if its steps were moved into this session
   * under other call ids (decision F6).
   */
  readonly rescuedFrom?: SessionId;
  /** When it was handed out, in milliseconds since 1970. */
  readonly at: number;
}
