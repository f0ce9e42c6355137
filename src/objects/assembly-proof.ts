import type { ObjectId, SessionId, Sha256 } from './ids.js';
import type { FilesystemSource } from './source.js';

/** How a context reached its model (decision E7). */
export type Delivery = 'library' | 'http' | 'pi' | 'opencode' | 'replay';

/** A whole list of messages as a harness handed it over, where it mixed a context with messages of its own: hash and length of its canonical JSON. */
export interface HandedList {
  readonly sha256: Sha256;
  /** UTF-16 units of the canonical JSON. */
  readonly chars: number;
  readonly messages: number;
}

/** Length in UTF-16 units and hash of one section of a context [§4.1]. */
export interface SectionProof {
  readonly name: string;
  readonly chars: number;
  readonly sha256: Sha256;
}

/** A mapping by which the agent's paths were shown [§5.3]. */
export interface ShownMount {
  readonly agentPrefix: string;
  readonly canonicalPrefix: string;
  readonly filesystemId: string;
}

/** A version that a context showed and that its basis does not have yet, or has another one of. */
export interface ShownAhead {
  readonly id: ObjectId;
  readonly object_hash: Sha256;
  readonly gone?: true;
}

/** What a session's sets hold and a context could not show that was assembled without the database. */
export interface AbsentObjects {
  /** Objects of the index that nothing was known of: without their line. */
  readonly lines: readonly ObjectId[];
  /** Active objects whose text was not at hand: without it. */
  readonly texts: readonly ObjectId[];
}

/**
 * Why an epoch began: the first of its session, what it saves is worth what it costs, the provider's cache was cold, the budget was reached, a verb asked, or
 * the harness's list changed.
 */
export type BorderReason = 'first' | 'saving' | 'cold' | 'pressure' | 'asked' | 'history';

/** What a new epoch costs and saves, in tokens: what must be written again, and what each later call is shorter by. */
export interface BorderPrice {
  readonly written: number;
  readonly savedPerCall: number;
}

/** A read of a file whose text, or an earlier one, stands before it: in a block of ours, or in what an earlier call answered. */
export interface ReadProof {
  readonly call: ObjectId;
  readonly file: ObjectId;
  readonly inBlock: boolean;
}

/** What one request of an epoch has behind those before it (divergence E9); objects by their ids, as the record's own basis has them. */
export interface NoteProof {
  /** Behind how many of the messages that stay it stands. */
  readonly after: number;
  /** Objects whose line stands here: new ones, and those whose short id names another one too or whose file is gone. */
  readonly lines?: readonly ObjectId[];
  /** Objects whose text stands here. */
  readonly contents?: readonly ObjectId[];
  /** Files whose change stands here, against the text that the request shows of them. */
  readonly changes?: readonly ObjectId[];
  /** Files whose present text the harness's own messages show. */
  readonly seen?: readonly ObjectId[];
  /** Calls of the harness's list that read a file whose text, or an earlier one, stands before them: a line says so in the place of what they answered. */
  readonly reads?: readonly ReadProof[];
  /** Calls that read a whole file whose text the request shows: a line names the file. */
  readonly refs?: readonly ObjectId[];
  /** Where no list of a harness stays: what the chat says behind this step stands in front of everything else, up to the step of the record. */
  readonly chat?: number;
}

/** The part of a harness's list that stays as it is in an epoch. */
export interface KeptList {
  /** How many messages stood before it. */
  readonly from: number;
  /** How many messages it had. */
  readonly count: number;
  /** Of those messages as they were reported, one after the other. */
  readonly sha256: Sha256;
}

/** The epoch that a context belongs to, and what the context added to it; the records of an epoch are a chain from its border on. */
export interface EpochProof {
  /** From 1, within a session. */
  readonly number: number;
  /** The step at which it began. */
  readonly border: number;
  readonly reason: BorderReason;
  readonly price?: BorderPrice;
  /** Absent where the harness gave none: the request has the chat as recorded in its place. */
  readonly list?: KeptList;
  /** How many requests the session has had in epochs, this one included. */
  readonly calls: number;
  /** The record before it that added something, or the border's; absent on the border's own. */
  readonly previous?: { readonly step: number; readonly sha256: Sha256 };
  readonly note?: NoteProof;
}

/**
 * What the database keeps of an assembly that was handed out (decision E7): enough to rebuild it and to check that it is the same. What was in it
 * is derived from its basis, not stored again.
 */
export interface AssemblyProof {
  readonly session: SessionId;
  readonly turn: number;
  /** The last step that it includes. */
  readonly step: number;
  /** Renderer and layout by name; a later version may know more of them. */
  readonly renderer: string;
  readonly layout: string;
  /** Version of the renderer's output. */
  readonly version: number;
  readonly options: { readonly strict: boolean; readonly shortIds: boolean };
  /** What the harness kept of its own list: a turn of the chat, and the calls whose results stand in it; absent where it kept nothing. */
  readonly tail?: { readonly turn: number; readonly results: readonly ObjectId[] };
  /** With layout `epoch`. */
  readonly epoch?: EpochProof;
  /** Without empty ones. */
  readonly sections: readonly SectionProof[];
  /** How many blocks of active content there are. */
  readonly blocks: number;
  readonly chars: number;
  readonly sha256: Sha256;
  /** What was read: valid time in milliseconds since 1970, and transaction. Null without `ahead`: assembled by a sole writer, or by a former version while the database was away; then it is read at the transaction that wrote its step. */
  readonly basis: { readonly validTime: number; readonly txId: number } | null;
  /**
   * Present on a context that was assembled without waiting for transactions, or without the database (decision 0010): it includes every step up to `step`, whether or
   * not the basis holds them, and shows these objects in these versions. A basis of null then means that nothing was read: every file and the prompt are named here.
   */
  readonly ahead?: readonly ShownAhead[];
  /**
   * Present where the context may lack what others wrote: the last transaction of the database when the context was asked for, which is later than its basis; null where the database did not
   * say in time. A context without it shows everything that the database had then.
   */
  readonly behind?: number | null;
  /** Only with `ahead`. */
  readonly absent?: AbsentObjects;
  /** By which mappings paths were shown; absent for none. */
  readonly mounts?: readonly ShownMount[];
  /** The folders whose files were shown; absent where none of the session's files was left out. */
  readonly folders?: readonly FilesystemSource[];
  /** Present where something that it showed was masked when its session was written to a bundle: hashes and sizes are those of what is left. */
  readonly redacted?: true;
  readonly delivered: Delivery;
  readonly handed?: HandedList;
  /** The session that it was handed out of, where that was taken over and its steps were put into this one, with other ids for its calls (decision F6). */
  readonly rescuedFrom?: SessionId;
  /** When it was handed out, milliseconds since 1970. */
  readonly at: number;
}
