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

/** The first line from a harness to its sidecar, as JSON. */
export interface Beginning extends Rendering {
  readonly what: 'pi' | 'opencode' | 'gateway';
  /** The agent's working folder, and the folders of its files. */
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly layout?: LayoutName;
  /** Default: by use with layout `epoch`, otherwise by the window [§4.3]. */
  readonly retention?: NonNullable<StepPolicy['retention']>;
}

/** A list of messages, as a difference from the session's last sent list. */
export interface SentList extends Rendering {
  readonly session: string;
  readonly parent?: string;
  /** The number of the list that it continues; 0 for none. */
  readonly after: number;
  readonly number: number;
  /** Number of leading messages taken from the previous list. */
  readonly prefix: number;
  readonly messages: readonly ReportedMessage[];
  readonly system?: string | null;
  readonly compacted?: boolean;
  readonly ownList?: boolean;
  /** For a context: the previous answer's texts are unknown, or there was none. */
  readonly forgotten?: boolean;
  /** The user requested that the next user message begins an epoch. */
  readonly tidy?: boolean;
  readonly model?: string;
  readonly window?: number;
}

/** The requests from a harness to its sidecar, and their results. */
export interface Calls {
  /** Resolves when the database answers. */
  readonly ready: { readonly params: object; readonly result: null };
  /**
   * Records the history and returns the context around the next list. Null if the harness's own
   * list is the context. Texts of the previous answer are not sent again.
   */
  readonly context: { readonly params: SentList; readonly result: LoopContext | null };
  /** Records the history. */
  readonly follow: { readonly params: SentList; readonly result: null };
  /** Stores the record of the list sent to the model. Resolves when it is durable. */
  readonly handed: {
    readonly params: HandedOver & { readonly session: string };
    /** `at` is absent if no context was waiting for its record. */
    readonly result: { readonly kept: boolean; readonly at?: RecordPlace };
  };
  /**
   * Stores a whole request as the bytes of a handed-out context. Without a place, it is the context
   * at the session's last step. Does nothing if its session is not open.
   */
  readonly sent: { readonly params: PlacedRequest & { readonly session: string }; readonly result: null };
  readonly verb: {
    readonly params: {
      readonly session: string;
      readonly verb: Verb;
      readonly ids: readonly string[];
      readonly callId?: string;
    };
    readonly result: { readonly text: string; readonly ok: boolean };
  };
  /** Announces a model call whose list follows. */
  readonly announce: { readonly params: { readonly session: string }; readonly result: null };
  /** Announces a tool call that has begun. */
  readonly expect: { readonly params: { readonly session: string; readonly callId: string }; readonly result: null };
  /**
   * Returns a text for the model if a call would change a file that differs from what it saw last.
   * Null if the call may run.
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

/** An answer, as one line of JSON. `resend` asks for the whole list. */
export type SidecarAnswer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: { readonly message: string; readonly resend?: true } };

/**
 * A text in an answer: the literal text, or its position among the previous answer's texts, with an
 * optional suffix.
 */
export type SentText = string | readonly [place: number] | readonly [place: number, more: string];

/** Returns the texts of a context in message order. */
const textsOf = ({ before, inserts, after }: LoopContext): readonly string[] =>
  [...before, ...inserts.map(({ message }) => message), ...after].flatMap(({ parts }) => parts.map(({ text }) => text));

/** Shorter texts are sent literally. */
const SHORT = 64;

/** The texts of the previous answer, indexed by whole text and by beginning. */
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

/** A context over the pipe. Texts of the previous context are replaced by their positions. */
export interface SentContext extends Omit<LoopContext, 'before' | 'inserts' | 'after'> {
  readonly before: readonly SentMessage[];
  readonly inserts: readonly { readonly index: number; readonly message: SentMessage }[];
  readonly after: readonly SentMessage[];
}

type Message = LoopContext['before'][number];
type SentMessage = Omit<Message, 'parts'> & {
  readonly parts: readonly (Omit<Message['parts'][number], 'text'> & { readonly text: SentText })[];
};

/** Returns a context for the pipe, and its texts for the next comparison. */
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
 * Restores a sent context.
 * @throws {RangeError} the previous answer lacks a position
 */
export function withRepeats(
  sent: SentContext,
  before: readonly string[],
): { readonly context: LoopContext; readonly texts: readonly string[] } {
  const whole = (text: SentText): string => {
    if (typeof text === 'string') return text;
    const [place, more = ''] = text;
    const known = before[place];
    if (known === undefined) throw new RangeError(`the answer before has no text ${place}`);
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
 * Yields the lines of a text stream. Only line feeds end a line, because JSON may contain other
 * line separators.
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
