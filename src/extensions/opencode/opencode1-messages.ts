import type { RenderedMessage } from '../../assembly/render-messages.js';
import { contentText } from '../../harness/content-text.js';
import type { ReportedContent, ReportedMessage } from '../../harness/message-schema.js';
import { defined } from '../../values/defined.js';
import { sameData } from '../../values/plain-data.js';
import { reportedUsage } from '../reported-usage.js';
import type { HarnessList } from '../sidecar/composed-list.js';
import { SeenMessages } from '../sidecar/seen-messages.js';
import type { OpencodeInfo, OpencodeMessage, OpencodePart, OpencodeToolState } from './opencode1-api.js';

/**
 * Kinds of parts that have content. Others are bookkeeping or a model's thoughts, which stay
 * unchanged in the running turn.
 */
const SPOKEN: ReadonlySet<string> = new Set(['text', 'file']);

/** The fields of a part that are reported. */
type ToldPart = Pick<
  OpencodePart,
  'id' | 'type' | 'text' | 'ignored' | 'tool' | 'callID' | 'mime' | 'url' | 'filename'
> & {
  readonly state?: Pick<OpencodeToolState, 'status' | 'input' | 'output' | 'error'>;
};

/** The fields of a message that are reported. */
interface ToldMessage {
  readonly info: Pick<OpencodeInfo, 'id' | 'role' | 'tokens'>;
  readonly parts: readonly ToldPart[];
}

function isSameState(one: ToldPart['state'], other: ToldPart['state']): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.status === other.status &&
    one.output === other.output &&
    one.error === other.error &&
    sameData(one.input, other.input)
  );
}

function isSamePart(one: ToldPart, other: ToldPart): boolean {
  if (one.type !== other.type || one.id !== other.id || one.text !== other.text || one.ignored !== other.ignored)
    return false;
  if (one.type === 'tool')
    return one.tool === other.tool && one.callID === other.callID && isSameState(one.state, other.state);
  return one.type !== 'file' || (one.mime === other.mime && one.url === other.url && one.filename === other.filename);
}

/**
 * Returns whether two messages give the same report. It must be fast, because every model call
 * compares all messages.
 */
function isToldAlike({ info, parts }: ToldMessage, other: ToldMessage): boolean {
  if (info.id !== other.info.id || info.role !== other.info.role || parts.length !== other.parts.length) return false;
  if (!sameData(info.tokens, other.info.tokens)) return false;
  for (let i = 0; i < parts.length; i++)
    if (!isSamePart(parts[i] as ToldPart, other.parts[i] as ToldPart)) return false;
  return true;
}

const fileLine = ({ mime, url, filename }: ToldPart): ReportedContent =>
  [{ type: 'file', file: { media_type: mime, url: url ?? filename } }] as ReportedContent;

const textOf = (parts: readonly ToldPart[]): string =>
  parts
    .filter(({ type, ignored }) => SPOKEN.has(type) && ignored !== true)
    .map((part) => (part.type === 'text' ? (part.text ?? '') : contentText(fileLine(part))))
    .join('\n');

const isCompaction = ({ parts }: ToldMessage): boolean => parts.some(({ type }) => type === 'compaction');

/** A message, or a result inside a message. */
interface Reported {
  readonly message: ReportedMessage;
  /** The id of a result's part. */
  readonly part?: string;
}

function resultOf({ id, callID, tool, state }: ToldPart): readonly Reported[] {
  if (state?.status !== 'completed' && state?.status !== 'error') return [];
  const failed = state.status === 'error';
  const message = {
    role: 'tool',
    tool_call_id: String(callID),
    content: failed ? (state.error ?? '') : (state.output ?? ''),
    is_error: failed,
    ...defined({ name: tool }),
  };
  return [{ message, part: id }];
}

/** Returns the provider's token counts of the model call that produced a message. */
function usageOf({ tokens }: ToldMessage['info']): Pick<ReportedMessage, 'usage'> {
  const { input, output, cache } = tokens ?? {};
  return reportedUsage({ input, output, cacheRead: cache?.read, cacheWrite: cache?.write });
}

function reportedAs(message: ToldMessage): readonly Reported[] {
  const { info, parts } = message;
  const content = textOf(parts);
  if (info.role === 'user') {
    // The harness requests the compaction, not the user.
    const role = isCompaction(message) ? 'compaction' : 'user';
    return [{ message: { role, content, id: info.id } }];
  }
  const calls = parts.filter(({ type }) => type === 'tool');
  const tool_calls = calls.map(({ callID, tool, state }) => ({
    id: String(callID),
    name: String(tool),
    arguments: (state?.input ?? {}) as Readonly<Record<string, unknown>>,
  }));
  return [
    { message: { role: 'assistant', content, id: info.id, tool_calls, ...usageOf(info) } },
    ...calls.flatMap(resultOf),
  ];
}

/** Returns the id for a message or part of ours. The same name gives the same id. */
const ownId = (kind: 'msg' | 'prt', name: string): string => `${kind}_palimpsest_${name}`;

/** Metadata names of providers that bind a reasoning signature to the preceding content. */
const BINDING = ['anthropic', 'bedrock'];

const isBound = ({ type, metadata }: OpencodePart): boolean =>
  type === 'reasoning' && BINDING.some((name) => Object.hasOwn((metadata ?? {}) as object, name));

function withoutThoughts(message: OpencodeMessage): OpencodeMessage {
  const parts = message.parts.filter((part) => !isBound(part));
  return parts.length === message.parts.length ? message : { ...message, parts };
}

/** The entries that a message is reported as. */
interface ReportedParts {
  readonly reports: readonly Reported[];
  readonly isCompaction: boolean;
}

/** The messages of a session as last seen. */
export type SeenByOpencode = SeenMessages<OpencodeMessage, ReportedParts>;

/** Returns the state of a session whose messages have not been seen yet. */
export const nothingSeen = (): SeenByOpencode =>
  new SeenMessages<OpencodeMessage, ReportedParts>({
    make: (message) => ({ reports: reportedAs(message), isCompaction: isCompaction(message) }),
    makesSame: isToldAlike,
  });

/** Returns the function that makes our messages for a session's list. */
function saidIn(session: string, messages: readonly OpencodeMessage[]): HarnessList<OpencodeMessage>['said'] {
  const last = messages.findLast(({ info }) => info.role === 'user');
  return ({ parts }: RenderedMessage, name: string): OpencodeMessage => {
    const messageID = ownId('msg', name);
    const info = {
      ...last?.info,
      id: messageID,
      sessionID: session,
      role: 'user' as const,
      time: { created: 0 },
      summary: undefined,
    };
    const own = parts.map(({ text }, i) => ({
      id: ownId('prt', `${name}_${i}`),
      sessionID: session,
      messageID,
      type: 'text',
      text,
    }));
    return { info, parts: own };
  };
}

/** Further facts about a list of OpenCode. */
interface ListOptions extends Pick<HarnessList<OpencodeMessage>['list'], 'model' | 'window'> {
  readonly system: string | undefined;
  /** The session's messages as last seen. Default: none. */
  readonly seen?: SeenByOpencode;
}

/** Converts OpenCode's list to the form in which it is reported and composed. */
export function opencodeList(
  session: string,
  messages: readonly OpencodeMessage[],
  { system, model, window, seen = nothingSeen() }: ListOptions,
): HarnessList<OpencodeMessage> {
  const reported: ReportedMessage[] = [];
  const places: number[] = [];
  /** The id of the part that each reported entry comes from. */
  const partIds: (string | undefined)[] = [];
  const { made, copies } = seen.of(messages);
  for (const [place, { reports }] of made.entries()) {
    for (const { message, part } of reports) {
      reported.push(message);
      places.push(place);
      partIds.push(part);
    }
  }
  const withReferences = (message: OpencodeMessage, lines: ReadonlyMap<number, string>): OpencodeMessage => {
    const byPart = new Map([...lines].map(([index, line]) => [partIds[index], line]));
    const parts = message.parts.map((part) => {
      const line = byPart.get(part.id);
      if (line === undefined || part.state === undefined) return part;
      const { attachments: _inactive, ...state } = part.state;
      return { ...part, state: state.status === 'error' ? { ...state, error: line } : { ...state, output: line } };
    });
    return { ...message, parts };
  };
  const compacted = made.some((one) => one.isCompaction);
  const list = {
    session,
    messages: reported,
    ...(compacted ? { compacted } : {}),
    ...defined({ system, model, window }),
  };
  const kept = () => ({ messages: copies(), said: saidIn(session, copies()) });
  const said = saidIn(session, messages);
  return { list, places, messages, said, kept, withReferences, idOf: ({ info }) => info.id, withoutThoughts };
}

const isCompleted = ({ time }: OpencodeInfo): boolean =>
  (time as { readonly completed?: number } | undefined)?.completed !== undefined;

/** Maximum number of messages whose parts are stored. */
const MOST = 50;

/**
 * Collects the model's messages from OpenCode's events, part by part. OpenCode may exit before the
 * plugin can request the last message.
 */
export class StreamedMessages {
  readonly #parts = new Map<string, Map<string, OpencodePart>>();

  /** Stores the current state of a part. */
  part(part: OpencodePart): void {
    const parts = this.#parts.get(part.messageID) ?? new Map<string, OpencodePart>();
    this.#parts.set(part.messageID, parts.set(part.id, part));
    // User messages never become complete, so the oldest messages are evicted.
    for (const id of this.#parts.keys()) if (this.#parts.size > MOST) this.#parts.delete(id);
  }

  /**
   * Returns a message of the model once it is complete. Undefined for other messages and for the
   * summary of a compaction.
   */
  completed(info: OpencodeInfo): OpencodeMessage | undefined {
    if (info.role !== 'assistant' || !isCompleted(info)) return undefined;
    const parts = this.#parts.get(info.id);
    this.#parts.delete(info.id);
    return parts === undefined || info.summary === true ? undefined : { info, parts: [...parts.values()] };
  }
}

/**
 * Returns the list before a model call, followed by the model's answer. Undefined if the message
 * answers another list: a user's command or a subtask adds a user message that this list lacks.
 */
export function answeredList(
  own: readonly OpencodeMessage[],
  message: OpencodeMessage,
): readonly OpencodeMessage[] | undefined {
  const { id, parentID } = message.info;
  const asked = own.findLast(({ info }) => info.role === 'user')?.info.id;
  return parentID === undefined || parentID === asked
    ? [...own.filter(({ info }) => info.id !== id), message]
    : undefined;
}
