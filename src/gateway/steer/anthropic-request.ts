import { createHash } from 'node:crypto';
import type { RenderedMessage } from '../../assembly/render-messages.js';
import type { HarnessList } from '../../extensions/sidecar/composed-list.js';
import { SeenMessages } from '../../extensions/sidecar/seen-messages.js';
import { contentText } from '../../harness/content-text.js';
import type { ReportedContent, ReportedMessage } from '../../harness/message-schema.js';
import { defined } from '../../values/defined.js';
import { isJsonObject } from '../../values/json-object.js';
import { type AnthropicBody, BodyWriter, type WireMessage } from './body-writer.js';
import { memberPlaces, textAt } from './json-places.js';
import { BY_PROVIDER, NOTICE, type SteerableRequest, type UnsteerableRequest, type WireBlock } from './wire-request.js';

const THOUGHTS: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking']);
const ROLES: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system']);

/** Texts that Claude Code adds to the user's own words. */
const REMINDER = /^\s*<system-reminder>/;
/** The beginning of a conversation that Claude Code has summarised. */
const SUMMARISED = /^\s*This session is being continued from a previous conversation/;
/** A line in Claude Code's prompt that differs in every request. */
const BILLING = /^x-anthropic-billing-header/;

/** A reported message, and its block if it is a result. */
interface Entry {
  readonly report: ReportedMessage;
  readonly block?: number;
}

/** The last seen messages of one session. */
export type SeenByGateway = SeenMessages<WireMessage, readonly Entry[]>;

const isText = ({ type, text }: WireBlock): boolean => type === 'text' && typeof text === 'string';
const isSummary = (block: WireBlock): boolean => isText(block) && SUMMARISED.test(String(block.text));
const isReminder = (block: WireBlock): boolean => isText(block) && REMINDER.test(String(block.text));
const asContent = (blocks: readonly WireBlock[]): ReportedContent => blocks as unknown as ReportedContent;

function userEntries(content: readonly WireBlock[]): readonly Entry[] {
  const results = content.flatMap((block, at): readonly Entry[] => {
    if (block.type !== 'tool_result') return [];
    const report = {
      role: 'tool',
      tool_call_id: String(block.tool_use_id),
      content: contentText(block.content as ReportedContent | undefined),
      is_error: block.is_error === true,
    };
    return [{ report, block: at }];
  });
  const others = content.filter(({ type }) => type !== 'tool_result');
  // If a message has results, its other text is reported as a system message. As a user message it
  // would begin a turn between a call and its result.
  const said = results.length > 0 ? [] : others.filter((block) => !isReminder(block));
  const added = results.length > 0 ? others : others.filter(isReminder);
  return [
    ...results,
    ...(said.length === 0 ? [] : [{ report: { role: 'user', content: contentText(asContent(said)) } }]),
    ...(added.length === 0 ? [] : [{ report: { role: 'system', content: contentText(asContent(added)) } }]),
  ];
}

function entriesOf({ role, content }: WireMessage): readonly Entry[] {
  if (role === 'user') return userEntries(content);
  const spoken = content.filter(({ type }) => !THOUGHTS.has(type));
  if (role === 'system' && contentText(asContent(content)) === '') return [];
  const text = role === 'assistant' ? asContent(spoken) : contentText(asContent(content));
  return [{ report: { role, content: spoken.length === 0 ? '' : text } }];
}

/** Returns the state of a session before its first request. */
export const nothingSeen = (): SeenByGateway => new SeenMessages({ make: entriesOf });

const unmarked = ({ cache_control: _, ...block }: WireBlock): WireBlock => block;

/** Returns a block without cache marks. Equal texts in different forms become equal. */
function plainBlock(block: WireBlock): WireBlock {
  const bare = 'cache_control' in block ? unmarked(block) : block;
  if (bare.type !== 'tool_result') return bare;
  const { content } = bare;
  if (typeof content === 'string') return { ...bare, content: [{ type: 'text', text: content }] };
  return Array.isArray(content) && content.every(isJsonObject) ? { ...bare, content: content.map(unmarked) } : bare;
}

const isBlocks = (content: unknown): content is readonly WireBlock[] =>
  Array.isArray(content) && content.length > 0 && content.every((block) => isJsonObject(block) && 'type' in block);

/** Claude Code sends a system message without text after its own summary. */
const isEmptySystem = ({ role, content }: WireBlock): boolean =>
  role === 'system' && (content === '' || (Array.isArray(content) && content.length === 0));

function steerable(body: unknown): AnthropicBody | undefined {
  if (!isJsonObject(body) || !Array.isArray(body.messages) || body.messages.length === 0) return undefined;
  const isKnown = (body.messages as readonly unknown[]).every(
    (one) =>
      isJsonObject(one) &&
      ROLES.has(one.role) &&
      ((typeof one.content === 'string' && one.content !== '') || isBlocks(one.content) || isEmptySystem(one)),
  );
  return isKnown ? (body as unknown as AnthropicBody) : undefined;
}

function promptOf(system: unknown): string {
  if (typeof system === 'string') return system;
  if (!Array.isArray(system)) return '';
  const blocks = system.filter(isJsonObject).filter(({ text }) => !BILLING.test(String(text)));
  return contentText(asContent(blocks));
}

/** Returns the model's name for the price list. Cache marks of one hour cost more. */
function modelOf({ model, messages, system }: AnthropicBody): string | undefined {
  if (typeof model !== 'string') return undefined;
  const marked = [system, ...messages.map(({ content }) => content)].filter(isBlocks);
  const isHour = marked.some((blocks) =>
    blocks.some(({ cache_control: mark }) => isJsonObject(mark) && mark.ttl === '1h'),
  );
  return isHour ? `${model}:1h` : model;
}

/**
 * Converts our rendered messages. If `notice` is set, messages with earlier conversation begin with
 * it.
 */
const saidWith =
  (notice: string | undefined) =>
  ({ section, parts }: RenderedMessage): WireMessage => ({
    role: 'user',
    content: [...(section === 'chat' && notice !== undefined ? [notice] : []), ...parts.map(({ text }) => text)].map(
      (text) => ({ type: 'text', text }),
    ),
  });

/**
 * Whether the model has our tools. Their server then explains our messages to the model, so no
 * notice is needed.
 */
const hasVerbs = (tools: unknown): boolean =>
  Array.isArray(tools) && tools.some((tool) => isJsonObject(tool) && /palimpsest.*activate$/.test(String(tool.name)));

const idOf = (message: WireMessage): string =>
  createHash('sha256').update(JSON.stringify(message)).digest('base64').slice(0, 22);

/**
 * Returns the index after the messages that Claude Code kept from before its own summary; 0 without
 * a summary. The provider rejects the thinking in them, because it is bound to the earlier
 * conversation.
 */
function keptFromBefore(messages: readonly WireMessage[]): number {
  const summary = messages.findLastIndex(({ role, content }) => role === 'user' && content.some(isSummary));
  if (summary < 0) return 0;
  const next = messages.findIndex(({ role, content }, i) => {
    const isWords = (block: WireBlock): boolean => isText(block) && !isReminder(block);
    return (
      i > summary && role === 'user' && content.some(isWords) && !content.some(({ type }) => type === 'tool_result')
    );
  });
  return Math.max(0, next);
}

/** The session of a request, and the lists that were seen in it. */
interface OfSession {
  readonly session: string;
  readonly seen: SeenByGateway;
}

/** Reads an Anthropic Messages request for steering. `text` must be JSON with value `parsed`. */
export function anthropicRequest(
  text: string,
  parsed: unknown,
  { session, seen }: OfSession,
): SteerableRequest | UnsteerableRequest {
  const body = steerable(parsed);
  const start = /\S/.exec(text)?.index ?? 0;
  const members = body === undefined ? undefined : memberPlaces(text, start);
  const place = members?.get('messages');
  if (body === undefined || place === undefined)
    return { why: 'its messages have a form that Palimpsest does not know' };
  const own = body.messages.map(({ role, content }) => ({
    role,
    content: typeof content === 'string' ? [{ type: 'text', text: content }] : content.map(plainBlock),
  }));
  const isLeft = own.some(({ content }) => content.some(({ type }) => type === 'compaction'));
  const writer = new BodyWriter({ text, body, list: place, own });
  const withoutThoughts = (message: WireMessage): WireMessage =>
    message.content.some(({ type }) => THOUGHTS.has(type))
      ? writer.with(message, (block) => (THOUGHTS.has(block.type) ? undefined : block))
      : message;
  const kept = keptFromBefore(own);
  const messages = own.map((message, i) => (i < kept ? withoutThoughts(message) : message));
  const { made, copies } = seen.of(messages);
  const entries = made.flatMap((of, at) => of.map(({ report, block }) => ({ report, block, place: at })));
  const withReferences = (message: WireMessage, lines: ReadonlyMap<number, string>): WireMessage => {
    const byBlock = new Map([...lines].map(([index, line]) => [entries[index]?.block, line]));
    return writer.with(message, (block, at) => {
      const line = byBlock.get(at);
      return line === undefined ? block : { ...block, content: [{ type: 'text', text: line }] };
    });
  };
  const compacted = messages.some(({ role, content }) => role === 'user' && content.some(isSummary));
  const reported: HarnessList<WireMessage>['list'] = {
    session,
    messages: entries.map(({ report }) => report),
    system: promptOf(body.system),
    ...defined({ model: modelOf(body) }),
    ...(compacted || isLeft ? { compacted: true } : {}),
  };
  const tools = members?.get('tools');
  const said = saidWith(hasVerbs(body.tools) ? undefined : NOTICE);
  const list: HarnessList<WireMessage> = {
    list: reported,
    places: entries.map(({ place }) => place),
    messages,
    said,
    kept: () => ({ messages: copies(), said }),
    withReferences,
    idOf,
    withoutThoughts,
  };
  return {
    ...(isLeft ? { left: BY_PROVIDER } : {}),
    // A type cast is safe, because the functions get only entries of this list.
    list: list as unknown as SteerableRequest['list'],
    frame: createHash('sha256')
      .update(tools === undefined ? '' : textAt(text, tools))
      .digest('hex'),
    write: (sent) => writer.body(sent as unknown as readonly WireMessage[]),
  };
}
