import type { RenderedMessage } from '../../assembly/render-messages.js';
import { contentText } from '../../harness/content-text.js';
import type { ReportedContent, ReportedMessage } from '../../harness/message-schema.js';
import { defined } from '../../values/defined.js';
import { sameData } from '../../values/plain-data.js';
import { reportedUsage } from '../reported-usage.js';
import type { HarnessList } from '../sidecar/composed-list.js';
import { SeenMessages } from '../sidecar/seen-messages.js';
import type { OpencodeInfo, OpencodeMessage, OpencodePart, OpencodeToolState } from './opencode-api.js';

/** Parts that say something; the others are bookkeeping, or a model's own thoughts, which pass untouched in the running turn. */
const SPOKEN: ReadonlySet<string> = new Set(['text', 'file']);

/** What is reported of a part is made of this alone. */
type ToldPart = Pick<OpencodePart, 'id' | 'type' | 'text' | 'ignored' | 'tool' | 'callID' | 'mime' | 'url' | 'filename'> & {
  readonly state?: Pick<OpencodeToolState, 'status' | 'input' | 'output' | 'error'>;
};

/** What is reported of a message is made of this alone. */
interface ToldMessage {
  readonly info: Pick<OpencodeInfo, 'id' | 'role' | 'tokens'>;
  readonly parts: readonly ToldPart[];
}

function isSameState(one: ToldPart['state'], other: ToldPart['state']): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.status === other.status && one.output === other.output && one.error === other.error && sameData(one.input, other.input);
}

function isSamePart(one: ToldPart, other: ToldPart): boolean {
  if (one.type !== other.type || one.id !== other.id || one.text !== other.text || one.ignored !== other.ignored) return false;
  if (one.type === 'tool') return one.tool === other.tool && one.callID === other.callID && isSameState(one.state, other.state);
  return one.type !== 'file' || (one.mime === other.mime && one.url === other.url && one.filename === other.filename);
}

/** Whether two messages are reported alike; each call of the model asks it of every message. */
function isToldAlike({ info, parts }: ToldMessage, other: ToldMessage): boolean {
  if (info.id !== other.info.id || info.role !== other.info.role || parts.length !== other.parts.length) return false;
  if (!sameData(info.tokens, other.info.tokens)) return false;
  for (let i = 0; i < parts.length; i++) if (!isSamePart(parts[i] as ToldPart, other.parts[i] as ToldPart)) return false;
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

/** A message or a result in one. */
interface Reported {
  readonly message: ReportedMessage;
  /** The part that a result is. */
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

/** What the provider reported of the call of the model that gave a message. */
function usageOf({ tokens }: ToldMessage['info']): Pick<ReportedMessage, 'usage'> {
  const { input, output, cache } = tokens ?? {};
  return reportedUsage({ input, output, cacheRead: cache?.read, cacheWrite: cache?.write });
}

function reportedAs(message: ToldMessage): readonly Reported[] {
  const { info, parts } = message;
  const content = textOf(parts);
  if (info.role === 'user') {
    // The request for a compaction is the harness's, not the user's.
    const role = isCompaction(message) ? 'compaction' : 'user';
    return [{ message: { role, content, id: info.id } }];
  }
  const calls = parts.filter(({ type }) => type === 'tool');
  const tool_calls = calls.map(({ callID, tool, state }) => ({
    id: String(callID),
    name: String(tool),
    arguments: (state?.input ?? {}) as Readonly<Record<string, unknown>>,
  }));
  return [{ message: { role: 'assistant', content, id: info.id, tool_calls, ...usageOf(info) } }, ...calls.flatMap(resultOf)];
}

/** The id of a message or part of ours: the same in the same place of the same session. */
const ownId = (kind: 'msg' | 'prt', name: string): string => `${kind}_palimpsest_${name}`;

/** Under which names a part of reasoning has the signature of a provider that binds it to what stands before it. */
const BINDING = ['anthropic', 'bedrock'];

const isBound = ({ type, metadata }: OpencodePart): boolean =>
  type === 'reasoning' && BINDING.some((name) => Object.hasOwn((metadata ?? {}) as object, name));

function withoutThoughts(message: OpencodeMessage): OpencodeMessage {
  const parts = message.parts.filter((part) => !isBound(part));
  return parts.length === message.parts.length ? message : { ...message, parts };
}

/** What the reported list has of a message. */
interface ReportedParts {
  readonly reports: readonly Reported[];
  readonly isCompaction: boolean;
}

/** The messages of one session as they were seen last. */
export type SeenByOpencode = SeenMessages<OpencodeMessage, ReportedParts>;

/** Of a session of which nothing was seen yet. */
export const nothingSeen = (): SeenByOpencode =>
  new SeenMessages<OpencodeMessage, ReportedParts>({
    make: (message) => ({ reports: reportedAs(message), isCompaction: isCompaction(message) }),
    makesSame: isToldAlike,
  });

/** How a message of ours is made for a list of a session. */
function saidIn(session: string, messages: readonly OpencodeMessage[]): HarnessList<OpencodeMessage>['said'] {
  const last = messages.findLast(({ info }) => info.role === 'user');
  return ({ parts }: RenderedMessage, name: string): OpencodeMessage => {
    const messageID = ownId('msg', name);
    const info = { ...last?.info, id: messageID, sessionID: session, role: 'user' as const, time: { created: 0 }, summary: undefined };
    const own = parts.map(({ text }, i) => ({ id: ownId('prt', `${name}_${i}`), sessionID: session, messageID, type: 'text', text }));
    return { info, parts: own };
  };
}

/** What goes with a list of OpenCode. */
interface ListOptions extends Pick<HarnessList<OpencodeMessage>['list'], 'model' | 'window'> {
  readonly system: string | undefined;
  /** The lists of the session so far; none if left out. */
  readonly seen?: SeenByOpencode;
}

/** OpenCode's list as it is reported and put together again. */
export function opencodeList(
  session: string,
  messages: readonly OpencodeMessage[],
  { system, model, window, seen = nothingSeen() }: ListOptions,
): HarnessList<OpencodeMessage> {
  const reported: ReportedMessage[] = [];
  const places: number[] = [];
  /** The part that each of them is. */
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
  const list = { session, messages: reported, ...(compacted ? { compacted } : {}), ...defined({ system, model, window }) };
  const kept = () => ({ messages: copies(), said: saidIn(session, copies()) });
  const said = saidIn(session, messages);
  return { list, places, messages, said, kept, withReferences, idOf: ({ info }) => info.id, withoutThoughts };
}

const isCompleted = ({ time }: OpencodeInfo): boolean => (time as { readonly completed?: number } | undefined)?.completed !== undefined;

/** Messages of which parts are kept. */
const MOST = 50;

/** The messages of the model, collected from OpenCode's events part by part: OpenCode may end before the last message can be asked for. */
export class StreamedMessages {
  readonly #parts = new Map<string, Map<string, OpencodePart>>();

  /** Takes in a part as it stands now. */
  part(part: OpencodePart): void {
    const parts = this.#parts.get(part.messageID) ?? new Map<string, OpencodePart>();
    this.#parts.set(part.messageID, parts.set(part.id, part));
    // Messages of the user are never completed.
    for (const id of this.#parts.keys()) if (this.#parts.size > MOST) this.#parts.delete(id);
  }

  /** The message, once the model is done with it; undefined for any other, and for a summary of a compaction. */
  completed(info: OpencodeInfo): OpencodeMessage | undefined {
    if (info.role !== 'assistant' || !isCompleted(info)) return undefined;
    const parts = this.#parts.get(info.id);
    this.#parts.delete(info.id);
    return parts === undefined || info.summary === true ? undefined : { info, parts: [...parts.values()] };
  }
}

/**
 * The list before a model call with what the model answered; undefined where the message is no answer to it: a command of the user's own and a task that
 * was asked for come with a message of the user that the list does not have.
 */
export function answeredList(own: readonly OpencodeMessage[], message: OpencodeMessage): readonly OpencodeMessage[] | undefined {
  const { id, parentID } = message.info;
  const asked = own.findLast(({ info }) => info.role === 'user')?.info.id;
  return parentID === undefined || parentID === asked ? [...own.filter(({ info }) => info.id !== id), message] : undefined;
}
