/** Text that harnesses put in front of what a person wrote. No person reads it as a prompt. */
const NOT_SAID = new RegExp(
  [
    /^\s*<(?:environment_context|permissions|user_instructions|INSTRUCTIONS)/,
    /^\s*<(?:system-reminder|command-|local-command)/,
    // A name with a mark in it is a harness's tag, and not one of a pasted page.
    /^\s*<[a-z]+[_-][a-z_-]+>/,
    /^# AGENTS\.md/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

/** Returns whether a message with the role of a user has words of a person. */
export const isSaid = (text: string): boolean => !NOT_SAID.test(text);
