import { DEFAULT_LOOP_LAYOUT, type LayoutName } from '../assembly/assembly-record.js';
import { VERB_DESCRIPTIONS } from '../tools/verb-descriptions.js';

const REFERENCES = `A line "toolcall_ref id=... tool=... status=..." stands for a result that is not loaded. Call \
activate with its id to see it again; do not run the tool again for that.`;

const RENDERED = `Palimpsest keeps your working context. Every file you read and every tool result is an object with \
an id. Around the current request stand the list of objects (lines "id=... type=..."), the earlier conversation, and \
the contents that are loaded, in blocks that begin with "ACTIVE_CONTENT id=...".
- ${REFERENCES}
- activate, deactivate, pin and unpin take ids, unique prefixes of 8 or more characters, or paths. What you activate \
is there in your next step.
- Results collapse on their own: the newest five of each of the last three requests stay, unless pinned. Files that \
you read whole stay loaded, always in their current state, until you deactivate them: deactivate what you no longer \
need.`;

const APPENDED = `Palimpsest keeps your working context. Every file you read and every tool result is an object with \
an id. The context begins with the earlier conversation, the list of files (lines "id=... type=file") and the \
contents that are loaded, in blocks that begin with "ACTIVE_CONTENT id=..."; from there on it only grows. Messages \
of such lines and blocks between your steps are not said by the user: Palimpsest appends them when a file is new, \
when you activated something, and when a file changed since you saw it ("changed=lines": the changed lines with \
their numbers, "changed=whole": all of it). The newest one counts.
- ${REFERENCES}
- activate, deactivate, pin and unpin take ids, unique prefixes of 8 or more characters, or paths. What you activate \
is there in your next step. What you deactivate leaves when the context begins anew, with one of the next messages \
of the user.
- Then what you have not seen or quoted for a while collapses, unless you pinned or activated it. Files that stay \
are always in their current state.`;

/**
 * Returns the guide that a model reads after the harness's system prompt. It stays the same for the
 * whole session, because the model's reasoning may be bound to it.
 */
export const guideOf = (layout: LayoutName = DEFAULT_LOOP_LAYOUT): string => (layout === 'epoch' ? APPENDED : RENDERED);

/** The agent's own tools [§3.3]. */
export const VERBS = VERB_DESCRIPTIONS.loop;

/** Description of the ids that those tools take. */
export const IDS = 'Ids, unique prefixes of 8 or more characters, or paths';
