import type { RenderedMessage } from '../../assembly/render-messages.js';
import { contentText } from '../../harness/content-text.js';
import type { ReportedContent, ReportedMessage } from '../../harness/message-schema.js';
import { defined } from '../../values/defined.js';
import { ownMember } from '../../values/own-member.js';
import { reportedUsage } from '../reported-usage.js';
import type { HarnessList } from '../sidecar/composed-list.js';
import { SeenMessages } from '../sidecar/seen-messages.js';
import type { PiBlock, PiMessage } from './pi-api.js';

/**
 * Kinds of blocks with a model's thoughts. They stay unchanged in the running turn and are not
 * reported.
 */
const THOUGHTS: ReadonlySet<string> = new Set(['thinking', 'redactedThinking']);

const blocksOf = ({ content }: PiMessage): readonly PiBlock[] =>
  Array.isArray(content) ? (content as readonly PiBlock[]) : [];

function textOf(message: PiMessage): string {
  if (typeof message.content === 'string') return message.content;
  return contentText(blocksOf(message).filter(({ type }) => !THOUGHTS.has(type)) as ReportedContent);
}

/**
 * Returns the id of a message. pi has no ids, so role and timestamp form one. Forks and resumed
 * sessions keep both.
 */
const idOf = ({ role, timestamp }: PiMessage): { readonly id?: string } =>
  timestamp === undefined ? {} : { id: `${role}@${timestamp}` };

const nameOf = (message: PiMessage): string => idOf(message).id ?? message.role;

const asText = (value: unknown): string => (typeof value === 'string' ? value : '');

/**
 * Returns how many thinking blocks of a request the provider dropped, according to pi's
 * diagnostics.
 */
function droppedThinking({ diagnostics }: PiMessage): number | undefined {
  const told = Array.isArray(diagnostics)
    ? diagnostics.filter(({ type }) => type === 'anthropic_input_transformations')
    : [];
  const changes = told.flatMap(({ details }) =>
    Array.isArray(details?.transformations) ? details.transformations : [],
  );
  const dropped = changes.filter(
    (change) => (change as { readonly type?: unknown } | null)?.type === 'thinking_dropped',
  ).length;
  return dropped === 0 ? undefined : dropped;
}

type Reporter = (message: PiMessage) => ReportedMessage;

/** How messages of each pi role are reported. Other roles keep their own names. */
const REPORTERS: Readonly<Record<string, Reporter>> = {
  assistant: (message) => ({
    role: 'assistant',
    content: textOf(message),
    ...idOf(message),
    ...reportedUsage({ ...message.usage, thinkingDropped: droppedThinking(message) }),
    tool_calls: blocksOf(message).flatMap(({ type, id, name, arguments: args }) =>
      type === 'toolCall'
        ? [{ id: String(id), name: String(name), arguments: args as Readonly<Record<string, unknown>> }]
        : [],
    ),
  }),
  toolResult: (message) => ({
    role: 'toolResult',
    content: textOf(message),
    tool_call_id: String(message.toolCallId),
    is_error: message.isError === true,
    ...defined({ name: message.toolName }),
  }),
  compactionSummary: (message) => ({ role: 'compactionSummary', content: asText(message.summary), ...idOf(message) }),
  branchSummary: (message) => ({ role: 'branchSummary', content: asText(message.summary), ...idOf(message) }),
  bashExecution: (message) => ({
    role: 'bashExecution',
    content: `$ ${asText(message.command)}\n${asText(message.output)}`,
    ...idOf(message),
  }),
};

const plain: Reporter = (message) => ({ role: message.role, content: textOf(message), ...idOf(message) });

/**
 * Returns one of our messages as a user message. Without a timestamp, equal contexts have equal
 * bytes.
 */
function said({ parts }: RenderedMessage): PiMessage {
  return { role: 'user', content: parts.map(({ text }) => ({ type: 'text', text })), timestamp: 0 };
}

function withReferences(message: PiMessage, lines: ReadonlyMap<number, string>): PiMessage {
  return { ...message, content: [...lines.values()].map((text) => ({ type: 'text', text })) };
}

/**
 * APIs whose providers bind thinking to the preceding content. With other APIs, reasoning must stay
 * with the call that follows it.
 */
const BINDING: ReadonlySet<string> = new Set(['anthropic-messages', 'bedrock-converse-stream']);

function withoutThoughts(message: PiMessage): PiMessage {
  const blocks = blocksOf(message);
  const left = BINDING.has(String(message.api)) ? blocks.filter(({ type }) => !THOUGHTS.has(type)) : blocks;
  return left.length === blocks.length ? message : { ...message, content: left };
}

/** The messages of a session as last seen. A system prompt among them is not reported. */
export type SeenByPi = SeenMessages<PiMessage, ReportedMessage | undefined>;

/** Returns the state of a session whose messages have not been seen yet. */
export const nothingSeen = (): SeenByPi =>
  new SeenMessages({
    make: (message) => (message.role === 'system' ? undefined : (ownMember(REPORTERS, message.role) ?? plain)(message)),
  });

/** Further facts about a list of pi. */
interface ListOptions extends Pick<HarnessList<PiMessage>['list'], 'parent' | 'system' | 'model' | 'window'> {
  /** The session's messages as last seen. Default: none. */
  readonly seen?: SeenByPi;
}

/** Converts pi's list to the form in which it is reported and composed. */
export function piList(
  session: string,
  messages: readonly PiMessage[],
  { seen = nothingSeen(), ...others }: ListOptions,
): HarnessList<PiMessage> {
  const reported: ReportedMessage[] = [];
  const places: number[] = [];
  const { made, copies } = seen.of(messages);
  for (const [place, report] of made.entries()) {
    if (report === undefined) continue;
    reported.push(report);
    places.push(place);
  }
  const compacted = reported.some(({ role }) => role === 'compactionSummary');
  const list = { session, messages: reported, ...(compacted ? { compacted } : {}), ...others };
  const kept = () => ({ messages: copies(), said });
  return { list, places, messages, said, kept, withReferences, idOf: nameOf, withoutThoughts };
}
