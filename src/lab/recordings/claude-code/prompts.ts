import { objectAt, textAt } from '../entries/fields.js';
import type { JsonObject } from '../json/json-text.js';

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
function isHarnessText(text: string): boolean {
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
export function promptParts(
  record: JsonObject,
  blocks: readonly JsonObject[],
  render: (block: JsonObject) => string,
): readonly PromptPart[] {
  const parts: PromptPart[] = [];
  for (const block of blocks) {
    const text = render(block);
    const origin = originOf(record, text);
    const last = parts.at(-1);
    if (last?.origin === origin) parts[parts.length - 1] = { origin, text: `${last.text}\n${text}` };
    else parts.push({ origin, text });
  }
  return parts;
}
