import type { EpochProof } from '../objects/assembly-proof.js';
import type { ObjectId, Sha256 } from '../objects/ids.js';
import type { AssemblyOptions } from './layout.js';

/** The four sections of a context, in order [§4.1], and the notes of an epoch (divergence E9). */
export type SectionName = 'system' | 'pool' | 'chat' | 'active' | 'notes';

/**
 * The version of the renderers' output. Raise it when the same state would give other bytes
 * (decision E7).
 */
export const RENDERER_VERSION = 1;

/**
 * The place of an active object's body: offset and length in UTF-16 units. For a block without a
 * body, the block's end and 0 (decision E3).
 */
export interface BlockPlace {
  readonly id: ObjectId;
  readonly offset: number;
  readonly chars: number;
}

/** Length in UTF-16 units and hash of a section's text. */
export interface SectionRecord {
  readonly name: SectionName;
  readonly chars: number;
  readonly sha256: Sha256;
}

/**
 * The layouts rendered anew for each call. `ssot` is that of §4.1. The others put the most stable
 * sections first, for a provider's cache.
 */
export type CallLayout = 'ssot' | 'chat-first' | 'pool-last';

/** All layouts. In `epoch` a request begins with the whole previous request (divergence E9). */
export type LayoutName = CallLayout | 'epoch';

/** The layout of a request that an agent built itself (`renderer` `sent`). */
export type SentLayout = 'sent';

/** The default layout in a harness's loop. */
export const DEFAULT_LOOP_LAYOUT: LayoutName = 'epoch';

/**
 * The part of a harness's own list that stays verbatim: everything from the user's last message on.
 * Providers verify the model's output there (signatures of reasoning, pairs of calls and results),
 * so none of it is rendered anew.
 */
export interface FrozenTail {
  /** The tail's turn. Earlier turns are closed and appear in the chat section. */
  readonly turn: number;
  /** The tool calls whose results are in the tail, in order. */
  readonly results: readonly ObjectId[];
}

/**
 * The proof of an assembly for later verification (decision E7). The same state gives the same
 * record. Empty sections are not listed.
 */
export interface AssemblyRecord {
  readonly renderer: 'text' | 'messages' | 'around' | 'epoch' | 'sent';
  readonly layout: LayoutName | SentLayout;
  readonly version: number;
  readonly options: AssemblyOptions;
  /** With `around`: the part that the harness kept. */
  readonly tail?: FrozenTail;
  /** With `epoch`. */
  readonly epoch?: EpochProof;
  readonly sections: readonly SectionRecord[];
  /**
   * In the order of the active set. Offsets count from the beginning of the whole text (`text`) or
   * of the block's own part.
   */
  readonly blocks: readonly BlockPlace[];
  readonly chars: number;
  readonly sha256: Sha256;
}
