import type { RenderedMessage } from '../../assembly/render-messages.js';
import { contentText } from '../../harness/content-text.js';
import type { ReportedContent, ReportedMessage } from '../../harness/message-schema.js';
import { defined } from '../../values/defined.js';
import { isJsonObject } from '../../values/json-object.js';
import { type KnownUsage, reportedUsage } from '../reported-usage.js';
import type { HarnessList } from '../sidecar/composed-list.js';
import { SeenMessages } from '../sidecar/seen-messages.js';
import type { Opencode2Message, Opencode2Part, Opencode2Result, StoredMessage, StoredPart } from './opencode2-api.js';

/** Matches a user message that is a summary of the history. */
const CHECKPOINT = /^\s*<conversation-checkpoint>/;

const isCompaction = ({ role, content: [first] }: Opencode2Message): boolean =>
  first?.type === 'compaction' || (role === 'user' && CHECKPOINT.test(first?.text ?? ''));

/** Returns a part in the form that providers commonly use, to get its text. */
function inCommonForm(part: Readonly<Record<string, unknown>>): unknown {
  const { type, mediaType, mime, data, uri, filename, name } = part;
  if (type === 'media') return { type: 'file', file: { media_type: mediaType, data, filename } };
  return type === 'file' ? { type: 'file', file: { media_type: mime, url: uri, filename: name } } : part;
}

const textOfParts = (parts: readonly unknown[]): string =>
  contentText(parts.filter(isJsonObject).map(inCommonForm) as ReportedContent);

function textOfValue(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return textOfParts(value);
  if (isJsonObject(value)) {
    const { error, message } = value;
    const told = message ?? (isJsonObject(error) ? error.message : error);
    if (typeof told === 'string') return told;
  }
  return value === undefined ? '' : JSON.stringify(value);
}

/**
 * Returns false for calls that the provider runs. The provider reads their results itself, so they
 * are not reported.
 */
const isOurs = ({ providerExecuted }: Opencode2Part): boolean => providerExecuted !== true;

/** A message, or a result inside a message. */
interface Reported {
  readonly message: ReportedMessage;
  /** The id of the call, for a result. */
  readonly call?: string;
}

function resultOf({ id, name, result }: Opencode2Part): Reported {
  const call = String(id);
  const message = {
    role: 'tool',
    tool_call_id: call,
    content: result?.type === 'json' ? JSON.stringify(result.value) : textOfValue(result?.value),
    is_error: result?.type === 'error',
    ...defined({ name }),
  };
  return { message, call };
}

const SPOKEN: ReadonlySet<string> = new Set(['text', 'media']);

function reportedAs(message: Opencode2Message): readonly Reported[] {
  const { id, role, content } = message;
  const results = content.filter((part) => part.type === 'tool-result' && isOurs(part)).map(resultOf);
  if (role === 'tool') return results;
  const text = textOfParts(content.filter(({ type }) => SPOKEN.has(type)));
  const named = defined({ id });
  if (role !== 'assistant') {
    // OpenCode adds summaries and updated instructions as messages. Neither is from the user.
    const kind = isCompaction(message) ? 'compaction' : role === 'system' ? 'instructions' : role;
    return [{ message: { role: kind, content: text, ...named } }];
  }
  const tool_calls = content
    .filter((part) => part.type === 'tool-call' && isOurs(part))
    .map(({ id: call, name, input }) => ({
      id: String(call),
      name: String(name),
      arguments: (isJsonObject(input) ? input : {}) as Readonly<Record<string, unknown>>,
    }));
  return [{ message: { role, content: text, tool_calls, ...named } }, ...results];
}

/**
 * Returns a message as plain data. OpenCode's messages are class instances, but only plain data can
 * be compared and copied.
 */
export const plainMessage = (message: Opencode2Message): Opencode2Message => ({ ...message });

/** The messages of a session as last seen. */
export type SeenByOpencode2 = SeenMessages<Opencode2Message, readonly Reported[]>;

/** Returns the state of a session whose messages have not been seen yet. */
export const nothingSeen = (): SeenByOpencode2 =>
  new SeenMessages<Opencode2Message, readonly Reported[]>({ make: reportedAs });

const said = ({ parts }: RenderedMessage, name: string): Opencode2Message => ({
  id: `msg_palimpsest_${name}`,
  role: 'user',
  content: parts.map(({ text }) => ({ type: 'text', text })),
});

/** Returns what identifies a message in its list. A result has the id of its call. */
function idOf({ id, role, content }: Opencode2Message): string {
  return id ?? `${role} ${content.map((part) => part.id ?? part.text ?? part.type).join(' ')}`;
}

const isBound = ({ type, providerMetadata }: Opencode2Part): boolean =>
  type === 'reasoning' && Object.keys(providerMetadata ?? {}).some((name) => /anthropic|bedrock/.test(name));

/** Returns a message without those thoughts that a provider binds to the preceding content. */
export function withoutThoughts(message: Opencode2Message): Opencode2Message {
  const content = message.content.filter((part) => !isBound(part));
  return content.length === message.content.length ? message : { ...message, content };
}

/** Further facts about a list of OpenCode 2. */
interface ListOptions extends Pick<HarnessList<Opencode2Message>['list'], 'model' | 'window'> {
  readonly system: string | undefined;
  /** The session's messages as last seen. Default: none. */
  readonly seen?: SeenByOpencode2;
  /** Returns the token counts of an answer, by the id of its message. */
  readonly usageOf?: (id: string) => KnownUsage | undefined;
}

/**
 * Converts OpenCode's list to the form in which it is reported and composed. Messages must be plain
 * data.
 */
export function opencode2List(
  session: string,
  messages: readonly Opencode2Message[],
  { system, model, window, seen = nothingSeen(), usageOf = () => undefined }: ListOptions,
): HarnessList<Opencode2Message> {
  const reported: ReportedMessage[] = [];
  const places: number[] = [];
  /** The call id of each reported result. */
  const calls: (string | undefined)[] = [];
  const { made, copies } = seen.of(messages);
  for (const [place, reports] of made.entries()) {
    for (const { message, call } of reports) {
      const isAnswer = message.role === 'assistant' && typeof message.id === 'string';
      const usage = isAnswer ? usageOf(message.id as string) : undefined;
      reported.push(usage === undefined ? message : { ...message, ...reportedUsage(usage) });
      places.push(place);
      calls.push(call);
    }
  }
  const withReferences = (message: Opencode2Message, lines: ReadonlyMap<number, string>): Opencode2Message => {
    const byCall = new Map([...lines].map(([index, line]) => [calls[index], line]));
    const content = message.content.map((part) => {
      const line = part.type === 'tool-result' ? byCall.get(part.id) : undefined;
      if (line === undefined) return part;
      const result: Opencode2Result = { type: part.result?.type === 'error' ? 'error' : 'text', value: line };
      return { ...part, result };
    });
    return { ...message, content };
  };
  const compacted = messages.some(isCompaction);
  const list = {
    session,
    messages: reported,
    ...(compacted ? { compacted } : {}),
    ...defined({ system, model, window }),
  };
  const kept = () => ({ messages: copies(), said });
  return { list, places, messages, said, kept, withReferences, idOf, withoutThoughts };
}

function storedResult({ id, name, state }: StoredPart): readonly Opencode2Message[] {
  if (state?.status !== 'completed' && state?.status !== 'error') return [];
  const { status, error, content = [] } = state;
  const result = status === 'error' ? { type: 'error', value: { error } } : { type: 'content', value: content };
  return [{ role: 'tool', content: [{ type: 'tool-result', ...defined({ id, name }), result }] }];
}

/** Returns a stored answer and its results in the form that the next request would have. */
function answerOf({ id, content = [] }: StoredMessage): readonly Opencode2Message[] {
  const own = content.filter(({ executed }) => executed !== true);
  const parts = own.flatMap(({ type, text, id: call, name, state }): readonly Opencode2Part[] => {
    if (type === 'text') return text === '' ? [] : [{ type, text: text ?? '' }];
    return type === 'tool' ? [{ type: 'tool-call', ...defined({ id: call, name, input: state?.input }) }] : [];
  });
  const results = own.filter(({ type }) => type === 'tool').flatMap(storedResult);
  return parts.length === 0 ? [] : [{ id, role: 'assistant', content: parts }, ...results];
}

/** Kinds of stored entries that no request has as messages. */
const SILENT: ReadonlySet<string> = new Set(['agent-switched', 'model-switched', 'location-switched', 'idle']);

/**
 * Returns the list before the last model call, followed by the answers that were stored since.
 * Undefined if there are no such answers, or the list does not belong to the end of the session.
 */
export function answeredList(
  own: readonly Opencode2Message[],
  stored: readonly StoredMessage[],
): readonly Opencode2Message[] | undefined {
  const last = own.findLast(({ id }) => id !== undefined)?.id;
  const from = stored.findIndex(({ id }) => id === last);
  if (last === undefined || from < 0) return undefined;
  const since = stored.slice(from + 1).filter(({ type }) => !SILENT.has(type));
  const end = since.findIndex(({ type }) => type !== 'assistant');
  const answers = since.slice(0, end < 0 ? since.length : end).flatMap(answerOf);
  return answers.length === 0 ? undefined : [...own, ...answers];
}
