import type { Message } from '../../objects/object-type.js';

/** Text that harnesses put before a person's prompt. It is not part of the prompt. */
const NOT_SAID = new RegExp(
  [
    /^\s*<(?:environment_context|permissions|user_instructions|INSTRUCTIONS)/,
    /^\s*<(?:system-reminder|command-|local-command)/,
    // A name with a mark in it is a harness's tag, and not one of a pasted page.
    /^\s*<[a-z]+[_-][a-z_-]+>/,
    /^# AGENTS\.md/,
    // The text of a skill that a call loads.
    /^Base directory for this skill: /,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

/** Names of a program's own messages have a mark in them, as in `hook_additional_context`. */
const PROGRAM_NAME = /^[a-z]+(?:[_-][a-z]+)+$/;

/** Returns whether a message contains text of a person. */
export const isSaid = ({ role, name, text }: Pick<Message, 'role' | 'name' | 'text'>): boolean =>
  role === 'user' && !NOT_SAID.test(text) && (name === undefined || !PROGRAM_NAME.test(name));
