import type { Readable } from 'node:stream';
import type { LayoutName } from '../../assembly/assembly-record.js';
import type { PlacedRequest, RecordPlace } from '../../client/session/session-contexts.js';
import type { ChangingCall } from '../../harness/harness-session.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import type { HistoryEvent } from '../../objects/step.js';
import type { StepPolicy } from '../../session/step-policy.js';
import type { Verb } from '../../session/verb-outcome.js';
import type { LoopContext, Rendering } from '../loop/loop-context.js';
import type { HandedOver } from '../loop/loop-session.js';

/** The first line from a harness to its sidecar. It is JSON and describes the harness. */
export interface Beginning extends Rendering {
  readonly what: 'pi' | 'opencode' | 'gateway';
  /** The agent's working folder. */
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly layout?: LayoutName;
  /** How results are retained. Default: by use with layout `epoch`, otherwise by window [§4.3]. */
  readonly retention?: NonNullable<StepPolicy['retention']>;
}

/** A list of messages, sent as the difference from the session's previous list. */
export interface SentList extends Rendering {
  readonly session: string;
  readonly parent?: string;
  /** The number of the list that this list continues; 0 if there is none. */
  readonly after: number;
  readonly number: number;
  /** Number of messages at the beginning that are taken from the previous list. */
  readonly prefix: number;
  readonly messages: readonly ReportedMessage[];
  readonly system?: string | null;
  readonly compacted?: boolean;
  readonly ownList?: boolean;
  /**
   * Set in a request for a context if the harness does not have the texts of the previous answer.
   */
  readonly forgotten?: boolean;
  /** Set if the user wants the next user message to begin an epoch. */
  readonly tidy?: boolean;
  readonly model?: string;
  readonly window?: number;
}

/** The requests that a harness sends to its sidecar, and their results. */
export interface Calls {
  /** Resolves once the database answers. */
  readonly ready: { readonly params: object; readonly result: null };
  /**
   * Records the history and returns the changes to the list of the next model call. Null if the
   * harness must use its own list. Texts of the previous answer are not sent again.
   */
  readonly context: { readonly params: SentList; readonly result: LoopContext | null };
  /** Records the history. */
  readonly follow: { readonly params: SentList; readonly result: null };
  /**
   * Stores the record of the list that was sent to the model. Resolves once the record is durable.
   */
  readonly handed: {
    readonly params: HandedOver & { readonly session: string };
    /** `at` is missing if there was no context to record. */
    readonly result: { readonly kept: boolean; readonly at?: RecordPlace };
  };
  /** Stores a whole request as the text of its context. Needs an open session. */
  readonly sent: {
    readonly params: PlacedRequest & { readonly session: string };
    readonly result: { readonly kept: boolean };
  };
  readonly verb: {
    readonly params: {
      readonly session: string;
      readonly verb: Verb;
      readonly ids: readonly string[];
      readonly callId?: string;
    };
    readonly result: { readonly text: string; readonly ok: boolean };
  };
  /** Announces a model call whose list will follow. */
  readonly announce: { readonly params: { readonly session: string }; readonly result: null };
  /** Announces a tool call that has begun. */
  readonly expect: { readonly params: { readonly session: string; readonly callId: string }; readonly result: null };
  /**
   * Returns a text for the model if a call would change a file that differs from what the model saw
   * last. Null if the call may run.
   */
  readonly beforeChange: {
    readonly params: ChangingCall & { readonly session: string };
    readonly result: string | null;
  };
  readonly event: {
    readonly params: { readonly session: string; readonly event: HistoryEvent };
    readonly result: null;
  };
  readonly close: { readonly params: { readonly session: string }; readonly result: null };
}

export type CallName = keyof Calls;

/** A request, as one line of JSON. */
export type SidecarRequest = {
  readonly [N in CallName]: { readonly id: number; readonly call: N; readonly params: Calls[N]['params'] };
}[CallName];

/** An answer, as one line of JSON. `resend` requests the whole list. */
export type SidecarAnswer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: { readonly message: string; readonly resend?: true } };

/**
 * A text in an answer. It is literal, or given as a position among the previous answer's texts,
 * optionally followed by more text.
 */
export type SentText = string | readonly [place: number] | readonly [place: number, more: string];

/** Returns the texts of a context in the order of its messages. */
const textsOf = ({ before, inserts, after }: LoopContext): readonly string[] =>
  [...before, ...inserts.map(({ message }) => message), ...after].flatMap(({ parts }) => parts.map(({ text }) => text));

/** Maximum length of texts that are always sent literally. */
const SHORT = 64;

/** The texts of the previous answer. They can be found as a whole or by their beginning. */
class PreviousTexts {
  readonly #places: ReadonlyMap<string, number>;
  readonly #beginnings = new Map<string, number[]>();
  readonly #texts: readonly string[];

  constructor(texts: readonly string[]) {
    this.#texts = texts;
    this.#places = new Map(texts.map((text, place) => [text, place]));
    for (const [place, text] of texts.entries()) {
      const begin = text.slice(0, SHORT);
      this.#beginnings.set(begin, [...(this.#beginnings.get(begin) ?? []), place]);
    }
  }

  named(text: string): SentText {
    if (text.length <= SHORT) return text;
    const place = this.#places.get(text);
    if (place !== undefined) return [place];
    const begun = this.#beginnings
      .get(text.slice(0, SHORT))
      ?.find((one) => text.startsWith(this.#texts[one] as string));
    return begun === undefined ? text : [begun, text.slice((this.#texts[begun] as string).length)];
  }
}

/**
 * A context as sent through the pipe. Texts that the previous context had are given as positions.
 */
export interface SentContext extends Omit<LoopContext, 'before' | 'inserts' | 'after'> {
  readonly before: readonly SentMessage[];
  readonly inserts: readonly { readonly index: number; readonly message: SentMessage }[];
  readonly after: readonly SentMessage[];
}

type Message = LoopContext['before'][number];
type SentMessage = Omit<Message, 'parts'> & {
  readonly parts: readonly (Omit<Message['parts'][number], 'text'> & { readonly text: SentText })[];
};

/** Returns a context to send through the pipe, and its texts for the next comparison. */
export function withoutRepeats(
  context: LoopContext,
  before: readonly string[],
): { readonly sent: SentContext; readonly texts: readonly string[] } {
  const known = new PreviousTexts(before);
  const shorten = ({ parts, ...message }: Message): SentMessage => ({
    ...message,
    parts: parts.map((part) => ({ ...part, text: known.named(part.text) })),
  });
  const { inserts } = context;
  const sent = {
    ...context,
    before: context.before.map(shorten),
    inserts: inserts.map(({ index, message }) => ({ index, message: shorten(message) })),
    after: context.after.map(shorten),
  };
  return { sent, texts: textsOf(context) };
}

/**
 * Restores the texts of a context that was sent.
 * @throws {RangeError} the previous answer does not have a position
 */
export function withRepeats(
  sent: SentContext,
  before: readonly string[],
): { readonly context: LoopContext; readonly texts: readonly string[] } {
  const whole = (text: SentText): string => {
    if (typeof text === 'string') return text;
    const [place, more = ''] = text;
    const known = before[place];
    if (known === undefined) throw new RangeError(`the previous answer has no text ${place}`);
    return known + more;
  };
  const lengthen = ({ parts, ...message }: SentMessage): Message => ({
    ...message,
    parts: parts.map((part) => ({ ...part, text: whole(part.text) })),
  });
  const context = {
    ...sent,
    before: sent.before.map(lengthen),
    inserts: sent.inserts.map(({ index, message }) => ({ index, message: lengthen(message) })),
    after: sent.after.map(lengthen),
  };
  return { context, texts: textsOf(context) };
}

/**
 * Yields the lines of a stream. Only line feeds end a line, because JSON may contain other line
 * separators.
 */
export async function* linesOf(input: Readable): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of input.setEncoding('utf8') as AsyncIterable<string>) {
    let from = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      yield rest + chunk.slice(from, end);
      rest = '';
      from = end + 1;
    }
    rest += chunk.slice(from);
  }
  if (rest !== '') yield rest;
}
