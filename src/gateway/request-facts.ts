import { createHash } from 'node:crypto';
import { defined } from '../values/defined.js';
import { asList, asObject, type Json, parsedBody, parsedObject } from './json-facts.js';
import type { LoggedRequest } from './log-entries.js';
import type { Wire } from './wires.js';

/** The agent's session that a request belongs to. */
export interface SentSession {
  /** `claude-code`, `codex`, or the name of the wire if the client is unknown. */
  readonly agent: string;
  /** The agent's own id of the session. */
  readonly native: string;
  /** The agent's id of the sub-agent, if one sent the request. */
  readonly subagent?: string;
  readonly parent?: string;
  /** Where the id was found. `first-text` is a guess: the id is a hash of the first user text. */
  readonly from: 'header' | 'metadata' | 'cache-key' | 'first-text';
}

/**
 * The purpose of a request that is not a turn of the agent.
 * - `title`, `summary`: the request says so
 * - `quota`: a check of the account that allows at most one token of answer
 * - `other`: a request without tools that is none of these
 */
export type SideRequest = 'title' | 'summary' | 'quota' | 'other';

/** Facts about a request, read from its headers and its body. */
export interface RequestFacts {
  readonly session: SentSession | undefined;
  readonly model?: string;
  readonly side?: SideRequest;
  /**
   * Set in message threads. A request of type `continue` names the previous answer and sends only
   * new messages. The whole context is the previous request's context, the answer to it, and this
   * body.
   */
  readonly thread?: { readonly type: 'create' | 'continue'; readonly previous?: string };
  /** The answer that a Responses request continues, like `thread.previous`. */
  readonly previous?: string;
  /** A conversation of the Responses API, with everything before the request's input. */
  readonly conversation?: string;
  /**
   * `asked`: the body asks the provider to compact. `carried`: it contains what the provider
   * compacted before.
   */
  readonly compaction?: 'asked' | 'carried';
  /** Whether the body is the JSON object that the wire expects. */
  readonly isReadable: boolean;
}

const word = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, 400).toWellFormed() : undefined;

/** Returns the messages of a request on any wire. */
const entriesOf = (wire: Wire, body: Json): readonly Json[] =>
  asList(wire === 'responses' ? body.input : wire === 'gemini' ? body.contents : body.messages);

const textsOf = (entry: Json): readonly string[] => {
  const content = entry.content ?? entry.parts;
  if (typeof content === 'string') return [content];
  return asList(content).flatMap(({ text }) => (typeof text === 'string' ? [text] : []));
};

/** Beginnings of texts that agents add before the user's own words. */
const INJECTED = /^<(?:system-reminder|environment_context|user_instructions|permissions|skills)/;

function firstUserText(wire: Wire, body: Json): string | undefined {
  if (typeof body.input === 'string') return body.input;
  const texts = entriesOf(wire, body).flatMap((entry) => (entry.role === 'user' ? textsOf(entry) : []));
  return texts.find((text) => !INJECTED.test(text.trimStart())) ?? texts[0];
}

function claudeSession(headers: LoggedRequest['headers'], body: Json): SentSession | undefined {
  const subagent = word(headers['x-claude-code-agent-id']);
  const parent = word(headers['x-claude-code-parent-agent-id']);
  const own = word(headers['x-claude-code-session-id']);
  if (own !== undefined) return { agent: 'claude-code', native: own, from: 'header', ...defined({ subagent, parent }) };
  const user = word(asObject(body.metadata).user_id);
  const named = word(parsedObject(user).session_id) ?? /_session_([0-9a-f-]{36})$/.exec(user ?? '')?.[1];
  return named === undefined
    ? undefined
    : { agent: 'claude-code', native: named, from: 'metadata', ...defined({ subagent, parent }) };
}

function codexSession(headers: LoggedRequest['headers'], body: Json): SentSession | undefined {
  const thread = word(headers['thread-id']) ?? word(headers['session-id']) ?? word(headers.session_id);
  const subagent = word(headers['x-openai-subagent']);
  const parent = word(headers['x-codex-parent-thread-id']);
  if (thread !== undefined) return { agent: 'codex', native: thread, from: 'header', ...defined({ subagent, parent }) };
  const key = word(body.prompt_cache_key);
  if (key === undefined) return undefined;
  const agent = /codex/i.test(headers.originator ?? headers['user-agent'] ?? '') ? 'codex' : 'responses';
  return { agent, native: key, from: 'cache-key' };
}

function sessionOf({ wire, headers }: RequestHead, body: Json): SentSession | undefined {
  const named = claudeSession(headers, body) ?? (wire === 'responses' ? codexSession(headers, body) : undefined);
  if (named !== undefined) return named;
  const text = firstUserText(wire, body);
  if (text === undefined) return undefined;
  const digest = createHash('sha256').update(`${wire}\n${text}`).digest('hex').slice(0, 32);
  return { agent: wire, native: `${wire}-${digest}`, from: 'first-text' };
}

/** Maps Claude Code's classes of requests to ours. */
const CLAUDE_CLASSES: ReadonlyMap<string | undefined, SideRequest> = new Map([
  ['compaction', 'summary'],
  ['auxiliary', 'other'],
  ['side_reply', 'other'],
]);

/** Texts by which Claude Code and Codex ask for a summary in a request that still has tools. */
const ASKS_SUMMARY = /CRITICAL: Respond with TEXT ONLY|CONTEXT CHECKPOINT COMPACTION/;

function sideOf({ wire, path, headers }: RequestHead, body: Json): SideRequest | undefined {
  if (/\/compact(?:\?|$)/.test(path)) return 'summary';
  if (body.max_tokens === 1) return 'quota';
  const last = entriesOf(wire, body).at(-1);
  const asks = last?.role === 'user' && textsOf(last).some((text) => ASKS_SUMMARY.test(text));
  if (asks || last?.type === 'compaction_trigger') return 'summary';
  const system = JSON.stringify(body.system ?? body.instructions ?? body.systemInstruction ?? '');
  const isTitle = /\btitle\b/i.test(system);
  const named = CLAUDE_CLASSES.get(headers['x-claude-code-request-class']);
  if (named !== undefined) return named === 'other' && isTitle ? 'title' : named;
  const hasTools = asList(body.tools).length > 0 || asList(body.input).some(({ type }) => type === 'additional_tools');
  // Only the first request of a thread has the tools.
  if (hasTools || asObject(body.thread).type === 'continue') return undefined;
  return isTitle ? 'title' : /\bsummar/i.test(system) ? 'summary' : 'other';
}

function compactionOf(wire: Wire, body: Json): RequestFacts['compaction'] {
  const entries = entriesOf(wire, body);
  if (wire === 'responses') {
    if (entries.at(-1)?.type === 'compaction_trigger') return 'asked';
    return entries.some(({ type }) => type === 'compaction' || type === 'compaction_summary') ? 'carried' : undefined;
  }
  const edits = asList(asObject(body.context_management).edits);
  const isCarried = entries.some(({ content }) => asList(content).some(({ type }) => type === 'compaction'));
  if (isCarried) return 'carried';
  return edits.some(({ type }) => typeof type === 'string' && type.startsWith('compact')) ? 'asked' : undefined;
}

const THREAD_TYPES = ['create', 'continue'] as const;

/** A logged request without its body. */
export type RequestHead = Pick<LoggedRequest, 'wire' | 'path' | 'headers'>;

/** Returns the facts of a logged request from its headers and decoded body. Accepts any body. */
export const requestFacts = (request: RequestHead, body: Buffer): RequestFacts => factsOf(request, parsedBody(body));

/** Returns the facts of a request whose body is already parsed. */
export function factsOf(request: RequestHead, body: unknown): RequestFacts {
  const { wire, path } = request;
  const whole = asObject(body);
  // Code Assist puts the Gemini request into a member `request`.
  const read = wire === 'gemini' && whole.contents === undefined ? { ...asObject(whole.request), ...whole } : whole;
  const thread = asObject(read.thread);
  const type = THREAD_TYPES.find((one) => one === thread.type);
  const side = sideOf(request, read);
  return {
    session: sessionOf(request, read),
    isReadable: Object.keys(read).length > 0,
    ...defined({
      model: word(read.model) ?? /\/models\/([^/:]+):/.exec(path)?.[1],
      side,
      thread: type === undefined ? undefined : { type, ...defined({ previous: word(thread.previous_message_id) }) },
      previous: word(read.previous_response_id),
      conversation: word(read.conversation) ?? word(asObject(read.conversation).id),
      compaction: compactionOf(wire, read),
    }),
  };
}
