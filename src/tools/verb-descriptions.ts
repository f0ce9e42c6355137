import type { Verb } from '../session/verb-outcome.js';

/**
 * How a model reaches its tools. With `mcp`, the agent's own program builds the requests, so a verb
 * changes the session's sets and not the conversation. In the `loop`, Palimpsest builds the
 * requests from the sets.
 */
export type WayIn = 'mcp' | 'loop';

/** The verbs' descriptions for a model [§3.3], by the way in which it reaches its tools. */
export const VERB_DESCRIPTIONS: Readonly<Record<WayIn, Readonly<Record<Verb, string>>>> = {
  mcp: {
    activate:
      'Read objects again: shows the contents of files and of earlier results in full; files that were only ' +
      'listed are read first. They join the active set of the session.',
    deactivate:
      'Take objects out of the active set of the session. Your conversation stays as it is: this frees nothing ' +
      'in it. They can be activated again.',
    pin: 'Keep results in the active set of the session when older ones leave it. Your conversation stays as it is.',
    unpin: 'Let pinned results leave the active set of the session again. Your conversation stays as it is.',
  },
  // Short texts, because every request contains them.
  loop: {
    activate: 'Load results or files into your context, by id or path.',
    deactivate: 'Remove objects from your context.',
    pin: 'Keep results in your context.',
    unpin: 'Undo pin.',
  },
};
