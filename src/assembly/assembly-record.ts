import type { EpochProof } from '../objects/assembly-proof.js';
import type { ObjectId, Sha256 } from '../objects/ids.js';
import type { AssemblyOptions } from './layout.js';

/** The four sections of a context, in their order [§4.1], and what was appended in an epoch (divergence E9). */
export type SectionName = 'system' | 'pool' | 'chat' | 'active' | 'notes';

/** The version of the renderers' output; it rises when the same state would give other bytes (decision E7). */
export const RENDERER_VERSION = 1;

/** Where the body of an active object stands: beginning and length in UTF-16 units; of a block without a body, its end and 0 (decision E3). */
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

/** The layouts that are rendered anew for each call; `ssot` is that of §4.1, the others have in front what changes least, for a provider's cache. */
export type CallLayout = 'ssot' | 'chat-first' | 'pool-last';

/** The layouts that there are; in `epoch` a request begins with the whole request before it (divergence E9). */
export type LayoutName = CallLayout | 'epoch';

/** The layout in a harness's loop that asks for none. */
export const DEFAULT_LOOP_LAYOUT: LayoutName = 'epoch';

/**
 * The part of a harness's own list that stays as it is: everything from the last message of the user on. Models check what they said there
 * (signatures of reasoning, pairs of calls and results), so nothing of it is made anew.
 */
export interface FrozenTail {
  /** The turn of the chat that the tail is; earlier ones are closed and stand in the chat section. */
  readonly turn: number;
  /** The tool calls whose results stand in the tail, in their order. */
  readonly results: readonly ObjectId[];
}

/** What proves an assembly later (decision E7); the same state gives the same record. Empty sections are not listed. */
export interface AssemblyRecord {
  readonly renderer: 'text' | 'messages' | 'around' | 'epoch';
  readonly layout: LayoutName;
  readonly version: number;
  readonly options: AssemblyOptions;
  /** With `around`: what the harness kept itself. */
  readonly tail?: FrozenTail;
  /** With `epoch`. */
  readonly epoch?: EpochProof;
  readonly sections: readonly SectionRecord[];
  /** In the order of the active set. Offsets count from the beginning of the whole text (`text`) or of the block's own part. */
  readonly blocks: readonly BlockPlace[];
  readonly chars: number;
  readonly sha256: Sha256;
}
