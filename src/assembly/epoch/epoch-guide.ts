/**
 * Guides for a model to the lines and blocks of an epoch, by version. A record names its version,
 * so that the request can be rebuilt. Never change a text. Add a version.
 */
const GUIDES: Readonly<Record<number, string>> = {
  1: `Palimpsest shortens this conversation. Its lines and blocks are not the user's words.
- "toolcall_ref id=... tool=... status=... args=..." is an earlier call whose result is not loaded. Call activate with \
its id to see it again; do not run the tool again for that.
- "id=... type=file path=..." lists a file.
- "ACTIVE_CONTENT id=..." begins a loaded file or result, of an edit with its arguments. The newest block of an id \
counts. "changed=lines" shows its changed lines with their numbers, "changed=whole" all of it.
- activate, deactivate, pin and unpin take ids, unique prefixes of 8 or more characters, or paths. Your next step \
shows the objects that you activate. Deactivated ones leave with one of the next messages of the user. So do contents \
that you have not seen or quoted for a while, unless pinned or activated.`,
};

/** The version of new requests. */
export const EPOCH_GUIDE = 1;

/** Returns the guide of a version. Empty without a version, or for a version of a later program. */
export const guideText = (version: number | undefined): string => GUIDES[version ?? 0] ?? '';
