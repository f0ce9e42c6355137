import type { Message } from '../../objects/object-type.js';

/** Matches text that harnesses put before a person's prompt. */
const NOT_SAID = new RegExp(
  [
    /^\s*<(?:environment_context|permissions|user_instructions|INSTRUCTIONS)/,
    /^\s*<(?:system-reminder|command-|local-command)/,
    // A tag with `_` or `-` in its name comes from a harness, and not from a pasted page.
    /^\s*<[a-z]+[_-][a-z_-]+>/,
    /^# AGENTS\.md/,
    // The first line of a skill that a call loads.
    /^Base directory for this skill: /,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

/** Matches the names of a program's own messages, such as `hook_additional_context`. */
const PROGRAM_NAME = /^[a-z]+(?:[_-][a-z]+)+$/;

/** Returns whether a message contains text of a person. */
export const isSaid = ({ role, name, text }: Pick<Message, 'role' | 'name' | 'text'>): boolean =>
  role === 'user' && !NOT_SAID.test(text) && (name === undefined || !PROGRAM_NAME.test(name));
