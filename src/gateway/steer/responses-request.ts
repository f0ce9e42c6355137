import { createHash } from 'node:crypto';
import type { RenderedMessage } from '../../assembly/render-messages.js';
import type { HarnessList } from '../../extensions/sidecar/composed-list.js';
import { SeenMessages } from '../../extensions/sidecar/seen-messages.js';
import { contentText } from '../../harness/content-text.js';
import type { ReportedContent, ReportedMessage } from '../../harness/message-schema.js';
import { defined } from '../../values/defined.js';
import { isJsonObject } from '../../values/json-object.js';
import { type JsonPlace, listPlaces, memberPlaces, textAt } from './json-places.js';
import { BY_PROVIDER, NOTICE, type SteerableRequest, type UnsteerableRequest, type WireEntry } from './wire-request.js';

/** The last seen items of one session. */
export type SeenItems = SeenMessages<Unit, readonly ReportedMessage[]>;

/** Texts that Codex adds to the user's own words, such as `<environment_context>`. */
const INJECTED = /^\s*(?:<(?:[a-z]+(?:_[a-z]+)+|permissions|skills?)\b|# AGENTS\.md instructions)/;
/** The beginning of a summary by which Codex compacted a conversation itself. */
const SUMMARISED = /^\s*Another language model started to solve this problem/;
const CALL = /^(?:function|custom_tool|local_shell)_call$/;
const OUTPUT = /^(?:function|custom_tool|local_shell)_call_output$/;
/** Items that only the provider can read. They replace everything before them. */
const COMPACTED: ReadonlySet<unknown> = new Set(['compaction', 'compaction_summary']);
const SYSTEM: ReadonlySet<unknown> = new Set(['developer', 'system']);

const typeOf = ({ type = 'message' }: WireEntry): unknown => type;

/** Returns an item's content as text. */
const textIn = (content: unknown): string => {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? contentText(content.filter(isJsonObject) as unknown as ReportedContent) : '';
};

const isInjected = ({ role, content }: WireEntry): boolean => role === 'user' && INJECTED.test(textIn(content));

/**
 * A part of the input that is kept or dropped as a whole. It is an answer of the model with its
 * reasoning and calls, or any other item on its own.
 */
interface Unit extends WireEntry {
  readonly items: readonly WireEntry[];
}

const isAnswer = (item: WireEntry): boolean => {
  const type = String(typeOf(item));
  return type === 'reasoning' || CALL.test(type) || (type === 'message' && item.role === 'assistant');
};

function unitsOf(input: readonly WireEntry[]): readonly Unit[] {
  const units: { items: WireEntry[] }[] = [];
  let isOpen = false;
  for (const item of input) {
    if (isOpen && isAnswer(item)) units.at(-1)?.items.push(item);
    else units.push({ items: [item] });
    isOpen = isAnswer(item);
  }
  return units;
}

type Call = NonNullable<ReportedMessage['tool_calls']>[number];

function callOf(item: WireEntry): readonly Call[] {
  const { call_id: id, name, arguments: args, input, action } = item;
  const type = String(typeOf(item));
  if (!CALL.test(type) || typeof id !== 'string' || id === '') return [];
  const given = args ?? input ?? (isJsonObject(action) ? action : null);
  return [{ id, name: typeof name === 'string' && name !== '' ? name : type, arguments: given as Call['arguments'] }];
}

/** Returns the message that a unit reports. Opaque items report none. */
function reportsOf({ items }: Unit): readonly ReportedMessage[] {
  const [item] = items as readonly [WireEntry];
  const type = String(typeOf(item));
  if (isAnswer(item)) {
    const said = items.flatMap((one) => (typeOf(one) === 'message' ? [textIn(one.content)] : []));
    const calls = items.flatMap(callOf);
    if (said.length === 0 && calls.length === 0) return [];
    const content = said.length === 0 ? null : said.join('\n');
    return [{ role: 'assistant', content, ...(calls.length === 0 ? {} : { tool_calls: calls }) }];
  }
  if (type === 'message') {
    const isSystem = SYSTEM.has(item.role) || isInjected(item);
    return [{ role: isSystem ? 'system' : String(item.role), content: textIn(item.content) }];
  }
  if (!OUTPUT.test(type) || typeof item.call_id !== 'string' || item.call_id === '') return [];
  return [{ role: 'tool', tool_call_id: item.call_id, content: textIn(item.output) }];
}

/** Returns the state of a session before its first request. */
export const noItemsSeen = (): SeenItems => new SeenMessages({ make: reportsOf });

/** The parts of a body that steering reads. */
interface ResponsesBody {
  readonly input: readonly WireEntry[];
  readonly instructions?: unknown;
  readonly tools?: unknown;
  readonly model?: unknown;
}

const isKnown = (item: unknown): item is WireEntry =>
  isJsonObject(item) &&
  (typeof item.type === 'string' || item.type === undefined) &&
  (typeOf(item) !== 'message' || typeof item.role === 'string');

function steerable(body: unknown): ResponsesBody | UnsteerableRequest {
  if (!isJsonObject(body)) return { why: 'it is not an object of JSON' };
  if (typeof body.previous_response_id === 'string' || (body.conversation ?? null) !== null)
    return { why: 'the provider holds the earlier part of the conversation' };
  if (!Array.isArray(body.input) || body.input.length === 0 || !body.input.every(isKnown))
    return { why: 'its input has a form that Palimpsest does not know' };
  return body as unknown as ResponsesBody;
}

/**
 * Returns how many items at the beginning stay in every request. These are the prompt and the texts
 * that the client adds before the first message. If the provider compacted the conversation, all
 * items up to its compaction item stay.
 */
function headOf(input: readonly WireEntry[]): number {
  const first = input.findIndex((item) => {
    const type = typeOf(item);
    return type !== 'additional_tools' && !(type === 'message' && (SYSTEM.has(item.role) || isInjected(item)));
  });
  const compacted = input.findLastIndex((item) => COMPACTED.has(typeOf(item)));
  return Math.max(first < 0 ? input.length : first, compacted + 1);
}

/**
 * Whether the model has our tools. Their server then explains our messages to the model, so no
 * notice is needed.
 */
const hasVerbs = (tools: unknown): boolean =>
  Array.isArray(tools) &&
  tools.some(
    (tool) => isJsonObject(tool) && /palimpsest/.test(String(tool.name)) && /activate/.test(JSON.stringify(tool)),
  );

const saidWith =
  (notice: string | undefined) =>
  ({ section, parts }: RenderedMessage): Unit => {
    const texts = [...(section === 'chat' && notice !== undefined ? [notice] : []), ...parts.map(({ text }) => text)];
    const content = texts.map((text) => ({ type: 'input_text', text }));
    return { items: [{ type: 'message', role: 'user', content }] };
  };

const idOf = (item: Unit): string => createHash('sha256').update(JSON.stringify(item)).digest('base64').slice(0, 22);

function promptOf({ instructions }: ResponsesBody, head: readonly WireEntry[]): string {
  const said = head.flatMap(({ role, content }) => (SYSTEM.has(role) ? [textIn(content)] : []));
  return [...(typeof instructions === 'string' ? [instructions] : []), ...said]
    .filter((text) => text !== '')
    .join('\n\n');
}

/** The session of a request, and the items that were seen in it. */
interface OfSession {
  readonly session: string;
  readonly seen: SeenItems;
}

/**
 * Reads a request of OpenAI's Responses wire for steering. `text` must be valid JSON, and `parsed`
 * its value. The reasoning and calls of an answer are kept or dropped together.
 */
export function responsesRequest(
  text: string,
  parsed: unknown,
  { session, seen }: OfSession,
): SteerableRequest | UnsteerableRequest {
  const body = steerable(parsed);
  if ('why' in body) return body;
  const start = /\S/.exec(text)?.index ?? 0;
  const members = memberPlaces(text, start);
  const place = members.get('input');
  if (place === undefined) return { why: 'its input has a form that Palimpsest does not know' };
  const { input } = body;
  const head = headOf(input);
  const rest = input.slice(head);
  // If this item were dropped, the model would lose tools that the client offers.
  if (rest.some((item) => typeOf(item) === 'additional_tools'))
    return { why: 'its tools change in the middle of the conversation' };
  const raw = listPlaces(text, place.from).map((one: JsonPlace) => textAt(text, one));
  const texts = new Map(input.map((item, i) => [item, raw[i] as string]));
  const units = unitsOf(rest);
  const isCompacted = input.some((item) => COMPACTED.has(typeOf(item)));
  const { made, copies } = seen.of(units);
  const entries = made.flatMap((of, at) => of.map((report) => ({ report, at })));
  const reported: HarnessList<Unit>['list'] = {
    session,
    messages: entries.map(({ report }) => report),
    system: promptOf(body, input.slice(0, head)),
    ...defined({ model: typeof body.model === 'string' ? body.model : undefined }),
    ...(isCompacted || input.some(({ content }) => SUMMARISED.test(textIn(content))) ? { compacted: true } : {}),
  };
  const said = saidWith(hasVerbs(body.tools) ? undefined : NOTICE);
  const tools = members.get('tools');
  const list: HarnessList<Unit> = {
    list: reported,
    places: entries.map(({ at }) => at),
    messages: units,
    said,
    kept: () => ({ messages: copies(), said }),
    withReferences: ({ items: [item] }, lines) => ({ items: [{ ...item, output: [...lines.values()][0] }] }),
    idOf,
    // The provider binds reasoning to the item after it, not to the items before.
    withoutThoughts: (unit) => unit,
  };
  return {
    ...(isCompacted ? { left: BY_PROVIDER } : {}),
    // A type cast is safe, because the functions get only units of this list.
    list: list as unknown as SteerableRequest['list'],
    frame: createHash('sha256')
      .update(tools === undefined ? '' : textAt(text, tools))
      .update(JSON.stringify(body.instructions ?? null))
      .update(raw.slice(0, head).join('\n'))
      .digest('hex'),
    write: (sent) => {
      if (sent.length === units.length && sent.every((unit, i) => unit === units[i])) return text;
      const items = [...input.slice(0, head), ...(sent as readonly Unit[]).flatMap((unit) => unit.items)];
      const all = items.map((item) => texts.get(item) ?? JSON.stringify(item));
      return `${text.slice(0, place.from)}[${all.join(',')}]${text.slice(place.to)}`;
    },
  };
}
