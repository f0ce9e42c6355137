import { DEFAULT_LOOP_LAYOUT, type LayoutName } from '../assembly/assembly-record.js';
import { VERB_DESCRIPTIONS } from '../tools/verb-descriptions.js';

const RENDERED = `Palimpsest keeps your working context. Files that you read and tool results are objects with ids. \
Lines "id=... type=..." list them. A block "ACTIVE_CONTENT id=..." shows a loaded one.
- A line "toolcall_ref id=... tool=... status=..." stands for a result that is not loaded. Call activate with its id \
to see it again; do not run the tool again for that.
- activate, deactivate, pin and unpin take ids, unique prefixes of 8 or more characters, or paths. Your next step \
shows the objects that you activate.
- Results collapse: the newest five of each of the last three requests stay, unless pinned. Files that you read whole \
stay loaded in their current state. Deactivate those that you no longer need.`;

/**
 * Returns the guide that follows the harness's system prompt. It must not change during a session,
 * because the model's reasoning may be bound to it. Undefined with layout `epoch`, where the guide
 * precedes our first text.
 */
export const guideOf = (layout: LayoutName = DEFAULT_LOOP_LAYOUT): string | undefined =>
  layout === 'epoch' ? undefined : RENDERED;

/** Returns a system prompt with the guide, if there is one. */
export const withGuide = (system: string, guide: string | undefined): string =>
  guide === undefined ? system : `${system}\n\n${guide}`;

/** The agent's own tools [§3.3]. */
export const VERBS = VERB_DESCRIPTIONS.loop;

/**
 * JSON schema of the tools' arguments. It is short, because every request contains it four times.
 */
export const VERB_INPUT = {
  type: 'object',
  properties: { ids: { type: 'array', items: { type: 'string' }, minItems: 1 } },
  required: ['ids'],
} as const;
