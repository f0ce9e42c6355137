import { isJsonObject } from '../../values/json-object.js';
import { ownMember } from '../../values/own-member.js';
import { isContentName, isName, sourceFault } from './session-paths.js';
import { strictJson } from './strict-json.js';

/** A fault in a field of a line. The field is empty if the whole line is at fault. */
export interface LineFinding {
  readonly issue: LineIssue;
  readonly field: string;
  readonly message: string;
}

/**
 * The kinds of line faults.
 *
 * - `invalid-json`: the line is not JSON, or repeats a key
 * - `not-an-object`: the line is JSON, but not an object
 * - `missing-field`: a required field is absent
 * - `invalid-field`: a field has the wrong type or value
 * - `native-field`: a key refers to a thread that a provider keeps
 * - `unknown-type`: the event has an unknown type
 */
export type LineIssue =
  | 'invalid-json'
  | 'not-an-object'
  | 'missing-field'
  | 'invalid-field'
  | 'native-field'
  | 'unknown-type';

/** A file of JSON lines with its own rules for fields. */
export type LineFile = 'messages' | 'events' | 'facts' | 'decisions' | 'refs' | 'swap' | 'dedup';

type Fields = Readonly<Record<string, unknown>>;
/** Returns the required form of a field, such as `a list of texts`. Undefined if valid. */
type FieldRule = (value: unknown) => string | undefined;

const NATIVE_FIELDS: ReadonlySet<string> = new Set([
  'thread_id',
  'response_id',
  'conversation_id',
  'provider_thread_id',
  'provider_response_id',
  'native_thread',
  'native_state',
  'openai_response_id',
  'anthropic_message_id',
  'gemini_response_id',
]);

const rule =
  (fits: (value: unknown) => boolean, what: string): FieldRule =>
  (value) =>
    fits(value) ? undefined : `must be ${what}`;
const oneOf = (...words: readonly string[]): FieldRule =>
  rule((value) => words.includes(value as string), `one of ${words.join(', ')}`);
const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const name = rule(isName, 'a name: at most 64 letters, digits and ._+-');
const line = rule((value) => isText(value) && value !== '' && !/[\r\n]/.test(value), 'a text of one line');
const count = rule(isCount, 'a whole number from 0');
const content = rule(isContentName, 'sha256- and at most 57 digits');
const text = rule(isText, 'a text');
const path = rule(
  (value) => isText(value) && value !== '' && !value.split('/').some((part) => part === '.' || part === '..'),
  'a path without the parts . and ..',
);
const swapSource = rule(
  (value) =>
    value === 'messages.jsonl' ||
    value === 'events.jsonl' ||
    (isText(value) && value.startsWith('context/') && sourceFault(value) === undefined),
  'messages.jsonl, events.jsonl or a file of the context area',
);

const isPart = (part: unknown): boolean => {
  if (!isJsonObject(part)) return false;
  if (part.type === 'text') return isText(part.text);
  if (part.type === 'image') return isText(part.path) && part.path !== '';
  return part.type === 'tool_result' && isText(part.tool_call_id) && part.tool_call_id !== '' && isText(part.content);
};
const messageContent = rule(
  (value) => isText(value) || (Array.isArray(value) && value.every(isPart)),
  'a text, or parts of type text, image and tool_result',
);

const FIELDS: Readonly<Record<Exclude<LineFile, 'events'>, Readonly<Record<string, FieldRule>>>> = {
  messages: { role: oneOf('system', 'user', 'assistant', 'tool'), content: messageContent },
  facts: { id: name, text: line, source: line },
  decisions: { id: name, decision: line, source: line },
  refs: { id: name, path, kind: oneOf('file', 'artifact', 'tool_output', 'swap', 'child_result'), summary: line },
  swap: {
    id: content,
    kind: oneOf('message_range', 'tool_output', 'file'),
    source: swapSource,
    summary: line,
    tokens: count,
  },
  dedup: {
    hash: content,
    refs: rule(
      (value) => Array.isArray(value) && value.length > 0 && value.every((ref) => isText(ref) && ref !== ''),
      'a list of texts, not empty',
    ),
    bytes: count,
    tokens: count,
  },
};

const run = { run: name };
const call = { ...run, id: name, name };
const EVENTS: Readonly<Record<string, Readonly<Record<string, FieldRule>>>> = {
  start: run,
  delta: run,
  message: run,
  reasoning_delta: run,
  reasoning_message: run,
  tool_call: call,
  tool_result: run,
  usage: { ...run, input_tokens: count, output_tokens: count },
  error: {
    ...run,
    code: oneOf(
      'EACCES',
      'EINVAL',
      'ENOENT',
      'EMSGSIZE',
      'EHOSTDOWN',
      'ECONNREFUSED',
      'EAGAIN',
      'EIO',
      'EINTR',
      'ENOSYS',
    ),
  },
  done: { ...run, status: oneOf('ok', 'error', 'cancelled') },
  approval_request: { ...call, args: rule((value) => Array.isArray(value) && value.every(isText), 'a list of texts') },
  approval_result: { ...call, decision: line, reason: line },
  'agent.child.cancel': { parent: name, child: name, reason: oneOf('parent_dead') },
  'agent.stop': { agent: name, status: oneOf('cancelled') },
};
const OPTIONAL: Readonly<Record<string, FieldRule>> = { cached_tokens: count, cache_write_tokens: count };
const OPTIONAL_TEXTS: Readonly<Partial<Record<LineFile, Readonly<Record<string, FieldRule>>>>> = {
  swap: { range: text, event: text },
};

const finding = (issue: LineIssue, field: string, message: string): LineFinding => ({ issue, field, message });

function fieldFindings(
  value: Fields,
  rules: Readonly<Record<string, FieldRule>>,
  optional: Readonly<Record<string, FieldRule>> = {},
) {
  const required = Object.entries(rules).flatMap(([field, check]): readonly LineFinding[] => {
    if (!Object.hasOwn(value, field)) return [finding('missing-field', field, `the field ${field} is missing`)];
    const fault = check(value[field]);
    return fault === undefined ? [] : [finding('invalid-field', field, `the field ${field} ${fault}`)];
  });
  const others = Object.entries(optional).flatMap(([field, check]): readonly LineFinding[] => {
    const fault = Object.hasOwn(value, field) ? check(value[field]) : undefined;
    return fault === undefined ? [] : [finding('invalid-field', field, `the field ${field} ${fault}`)];
  });
  return [...required, ...others];
}

/** Returns the first key, at any depth of a value, that refers to a thread kept by a provider. */
function nativeField(value: unknown): string | undefined {
  const waiting: unknown[] = [value];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const found = Array.isArray(next) ? undefined : Object.keys(next).find((key) => NATIVE_FIELDS.has(key));
    if (found !== undefined) return found;
    for (const inside of Object.values(next)) if (inside !== null && typeof inside === 'object') waiting.push(inside);
  }
  return undefined;
}

function eventFindings(value: Fields): readonly LineFinding[] {
  const { type } = value;
  if (!isText(type)) return [finding('missing-field', 'type', 'the field type is missing')];
  if (!Object.hasOwn(EVENTS, type))
    return [finding('unknown-type', 'type', `there is no event of type ${JSON.stringify(type)}`)];
  return fieldFindings(value, ownMember(EVENTS, type) ?? {}, type === 'usage' ? OPTIONAL : {});
}

/** Returns the faults of a line, given without its line end. Unknown fields are allowed. */
export function lineFindings(file: LineFile, source: string): readonly LineFinding[] {
  const read = strictJson(source);
  if (!read.ok) return [finding('invalid-json', '', read.reason)];
  const { value } = read;
  if (!isJsonObject(value)) return [finding('not-an-object', '', 'it is not a JSON object')];
  const native = file === 'messages' || file === 'events' ? nativeField(value) : undefined;
  if (native !== undefined)
    return [finding('native-field', native, `the key ${native} would import a provider's own thread`)];
  return file === 'events' ? eventFindings(value) : fieldFindings(value, FIELDS[file], OPTIONAL_TEXTS[file]);
}
