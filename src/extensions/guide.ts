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

const APPENDED = `Palimpsest keeps your working context. The user does not say its lines and blocks.
- "toolcall_ref id=... tool=... status=... args=..." is an earlier call whose result is not loaded. Call activate with \
its id to see it again; do not run the tool again for that.
- "id=... type=file path=..." lists a file.
- "ACTIVE_CONTENT id=..." begins a loaded file or result, of an edit with its arguments. The newest block of an id \
counts. "changed=lines" shows its changed lines with their numbers, "changed=whole" all of it.
- activate, deactivate, pin and unpin take ids, unique prefixes of 8 or more characters, or paths. Your next step \
shows the objects that you activate. Deactivated ones leave with one of the next messages of the user. So do contents \
that you have not seen or quoted for a while, unless pinned or activated.`;

/**
 * Returns the guide that a model reads after the harness's system prompt. It stays the same for the
 * whole session, because the model's reasoning may be bound to it.
 */
export const guideOf = (layout: LayoutName = DEFAULT_LOOP_LAYOUT): string => (layout === 'epoch' ? APPENDED : RENDERED);

/** The agent's own tools [§3.3]. */
export const VERBS = VERB_DESCRIPTIONS.loop;

/** Description of the ids that those tools take. */
export const IDS = 'Ids, unique prefixes of 8 or more characters, or paths';
