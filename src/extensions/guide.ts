import { DEFAULT_LOOP_LAYOUT, type LayoutName } from '../assembly/assembly-record.js';
import { VERB_DESCRIPTIONS } from '../tools/verb-descriptions.js';

const references = (
  fields: string,
): string => `A line "toolcall_ref ${fields}" stands for a result that is not loaded. Call \
activate with its id to see it again; do not run the tool again for that.`;

const RENDERED = `Palimpsest keeps your working context. Every file you read and every tool result is an object with \
an id. Around the current request you find the list of objects (lines "id=... type=..."), the earlier conversation, \
and the loaded contents. Each loaded content is a block that begins with "ACTIVE_CONTENT id=...".
- ${references('id=... tool=... status=...')}
- activate, deactivate, pin and unpin take ids, unique prefixes of 8 or more characters, or paths. Your next step \
shows the objects that you activate.
- Results collapse automatically: the newest five of each of the last three requests stay, unless pinned. Files that \
you read whole stay loaded, always in their current state. Deactivate those that you no longer need.`;

const APPENDED = `Palimpsest keeps your working context. Every file you read and every tool result is an object with \
an id. The context begins with the earlier conversation, the list of files (lines "id=... type=file") and the loaded \
contents. Each loaded content is a block that begins with "ACTIVE_CONTENT id=...". From there on the context only grows.

Between your steps, Palimpsest appends messages of such lines and blocks. They are not said by the user. They show \
new files, objects that you activated, and files that changed since you saw them. "changed=lines" shows the changed \
lines with their numbers, "changed=whole" all of the file. The newest one counts.
- ${references('id=... tool=... status=... args=...')}
- activate, deactivate, pin and unpin take ids, unique prefixes of 8 or more characters, or paths. Your next step \
shows the objects that you activate. Deactivated ones leave when the context begins anew, with one of the next \
messages of the user.
- Then contents that you have not seen or quoted for a while collapse, unless you pinned or activated them. Files \
that stay are always in their current state.`;

/**
 * Returns the guide that a model reads after the harness's system prompt. It stays the same for the
 * whole session, because the model's reasoning may be bound to it.
 */
export const guideOf = (layout: LayoutName = DEFAULT_LOOP_LAYOUT): string => (layout === 'epoch' ? APPENDED : RENDERED);

/** The agent's own tools [§3.3]. */
export const VERBS = VERB_DESCRIPTIONS.loop;

/** Description of the ids that those tools take. */
export const IDS = 'Ids, unique prefixes of 8 or more characters, or paths';
