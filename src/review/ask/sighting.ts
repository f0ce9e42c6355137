import type { SessionId } from '../../objects/ids.js';

/** A version of an object, and the turns and steps at which a session had it in its active set. */
export interface SeenVersion {
  readonly txId: number;
  readonly validTime: Date;
  /** Turns in which it was active at some point. */
  readonly turns: readonly number[];
  /**
   * Runs of steps after which it was active. A request made after one of these steps has the
   * version's text.
   */
  readonly steps: readonly { readonly first: number; readonly last: number }[];
}

/** The encounter of a session with an object [§3.2]. */
export interface Sighting {
  readonly session: SessionId;
  /** The step that put the object into the pool, as a line. */
  readonly known: { readonly turn: number; readonly seq: number; readonly at: Date };
  /** Turns with a step that named the object: a read, a listing, an activation or a collapse. */
  readonly touched: readonly number[];
  /** Turns in which its content was in the session's active set at some point. */
  readonly active: readonly number[];
  /**
   * Turns with a request that had the object in full, by its record (decision E12) or by a
   * transcript. A request that the agent built itself counts if it shows the call, or a call that
   * showed the file.
   */
  readonly sent: readonly number[];
  readonly transcript: readonly number[];
  /**
   * Turns since `known` with an unseen model call. It is unknown whether that request had the
   * object.
   */
  readonly unseen: readonly number[];
  /**
   * The active versions by turns and steps, in order of their first use. A version replaced before
   * its turn ended counts too.
   */
  readonly versions: readonly SeenVersion[];
  /** Whether the object is active now. */
  readonly isActive: boolean;
  readonly isPinned: boolean;
}
