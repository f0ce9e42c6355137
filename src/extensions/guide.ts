/** What a model reads about its context, after the harness's own system prompt. */
export const GUIDE = `Palimpsest keeps your working context. Every file you read and every tool result is an object with an id. Around the current request stand the list of objects (lines "id=... type=..."), the earlier conversation, and the contents that are loaded, in blocks that begin with "ACTIVE_CONTENT id=...".
- A line "toolcall_ref id=... tool=... status=..." stands for a result that is not loaded. Call activate with its id to see it again; do not run the tool again for that.
- activate, deactivate, pin and unpin take ids, unique prefixes of 8 or more characters, or paths. What you activate is there in your next step.
- Results collapse on their own: the newest five of each of the last three requests stay, unless pinned. Files that you read whole stay loaded, always in their current state, until you deactivate them: deactivate what you no longer need.`;

/** The agent's own tools [§3.3]. */
export const VERBS = {
  activate:
    'Load objects into your context: earlier results, files, also files that were only listed. Their contents are there in your next step.',
  deactivate: 'Remove objects from your context. They stay listed and can be activated again.',
  pin: 'Keep results in your context when older ones collapse on their own.',
  unpin: 'Let pinned objects collapse again.',
} as const;

/** What the ids of those tools are. */
export const IDS = 'Ids, unique prefixes of 8 or more characters, or paths';
