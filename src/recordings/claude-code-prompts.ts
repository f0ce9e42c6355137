import { objectAt, objectsAt, textAt } from './fields.js';
import { isJsonObject, type JsonObject } from './json-text.js';

/** A part of a prompt with its author. */
export interface PromptPart {
  readonly origin: 'person' | 'harness';
  readonly text: string;
}

const HARNESS_TAGS = [
  'command-name',
  'command-message',
  'command-args',
  'local-command-stdout',
  'local-command-stderr',
  'local-command-caveat',
  'bash-input',
  'bash-stdout',
  'bash-stderr',
  'system-reminder',
  'task-notification',
  'user-memory-input',
  'user-prompt-submit-hook',
  'ide_opened_file',
  'ide_selection',
];
const HARNESS_TEXT = new RegExp(`^\\s*(?:<(?:${HARNESS_TAGS.join('|')})[\\s>]|\\[Request interrupted by user|Caveat: The messages below)`);

/** Whether a text of the user's role was put in by the program. */
export function isHarnessText(text: string): boolean {
  return HARNESS_TEXT.test(text);
}

/** Whether a text tells that the user stopped the model. */
export function isInterruption(text: string): boolean {
  return text.startsWith('[Request interrupted by user');
}

function originOf(record: JsonObject, text: string): PromptPart['origin'] {
  const kind = textAt(objectAt(record, 'origin'), 'kind');
  if (record.isMeta === true || (kind !== undefined && kind !== 'human')) return 'harness';
  return isHarnessText(text) ? 'harness' : 'person';
}

/** The parts of a prompt: neighbours of one author together, each block's text by `render`. */
export function promptParts(record: JsonObject, content: unknown, render: (block: JsonObject) => string): readonly PromptPart[] {
  if (typeof content === 'string') return [{ origin: originOf(record, content), text: content }];
  const parts: PromptPart[] = [];
  for (const block of Array.isArray(content) ? content : []) {
    if (!isJsonObject(block)) continue;
    const text = render(block);
    const origin = originOf(record, text);
    const last = parts.at(-1);
    if (last?.origin === origin) parts[parts.length - 1] = { origin, text: `${last.text}\n${text}` };
    else parts.push({ origin, text });
  }
  return parts;
}

/** The blocks of a message; those that are no objects are left out. */
export function blocksOf(message: JsonObject | undefined): readonly JsonObject[] {
  return objectsAt(message, 'content');
}
