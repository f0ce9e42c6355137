import type { Readable } from 'node:stream';
import type { LayoutName } from '../../assembly/assembly-record.js';
import type { ChangingCall } from '../../harness/harness-session.js';
import type { HandedOver, LoopContext, Rendering } from '../../harness/loop-session.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import type { HistoryEvent } from '../../objects/step.js';
import type { StepPolicy } from '../../session/step-policy.js';
import type { Verb } from '../../session/verb-outcome.js';

/** The first line that a harness sends its sidecar, as JSON. */
export interface Beginning extends Rendering {
  readonly what: 'pi' | 'opencode';
  /** The working folder of the agent, and where its files may lie. */
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly layout?: LayoutName;
  /** By use with layout `epoch` if left out, else by the window [§4.3]. */
  readonly retention?: NonNullable<StepPolicy['retention']>;
}

/** A list of messages as it differs from the one sent before for the same session. */
export interface SentList extends Rendering {
  readonly session: string;
  readonly parent?: string;
  /** The number of the list that it continues; 0 for none. */
  readonly after: number;
  readonly number: number;
  /** How many messages at the beginning are those of the list before. */
  readonly prefix: number;
  readonly messages: readonly ReportedMessage[];
  readonly system?: string | null;
  readonly compacted?: boolean;
  readonly ownList?: boolean;
  /** Of a context: the texts of the last answer are not known any more, or there was none. */
  readonly forgotten?: boolean;
  /** The user asked that the next message of the user begins an epoch. */
  readonly tidy?: boolean;
  readonly model?: string;
  readonly window?: number;
}

/** The requests that a harness sends its sidecar, and their results. */
export interface Calls {
  /** Resolves when the database answers. */
  readonly ready: { readonly params: object; readonly result: null };
  /** Records the history and answers the context around the next list; null where the harness's own list is the context. Texts of the last answer are not sent again. */
  readonly context: { readonly params: SentList; readonly result: LoopContext | null };
  /** Records the history. */
  readonly follow: { readonly params: SentList; readonly result: null };
  /** Keeps the record of the list that went to the model; resolves when it is durable. */
  readonly handed: { readonly params: HandedOver & { readonly session: string }; readonly result: { readonly kept: boolean } };
  readonly verb: {
    readonly params: { readonly session: string; readonly verb: Verb; readonly ids: readonly string[]; readonly callId?: string };
    readonly result: { readonly text: string; readonly ok: boolean };
  };
  /** Announces a tool call that has begun. */
  readonly expect: { readonly params: { readonly session: string; readonly callId: string }; readonly result: null };
  /** What the model is told instead of a call that would change a file which is not as it saw it last; null where the call may be made. */
  readonly beforeChange: { readonly params: ChangingCall & { readonly session: string }; readonly result: string | null };
  readonly event: { readonly params: { readonly session: string; readonly event: HistoryEvent }; readonly result: null };
  readonly close: { readonly params: { readonly session: string }; readonly result: null };
}

export type CallName = keyof Calls;

/** One request, as one line of JSON. */
export type SidecarRequest = {
  readonly [N in CallName]: { readonly id: number; readonly call: N; readonly params: Calls[N]['params'] };
}[CallName];

/** One answer, as one line of JSON; `resend` asks for the whole list. */
export type SidecarAnswer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: { readonly message: string; readonly resend?: true } };

/** A text in an answer: as it is, or by its place among the texts of the previous answer, with what follows it now. */
export type SentText = string | readonly [place: number] | readonly [place: number, more: string];

/** The texts of a context in the order of its messages. */
const textsOf = ({ before, inserts, after }: LoopContext): readonly string[] =>
  [...before, ...inserts.map(({ message }) => message), ...after].flatMap(({ parts }) => parts.map(({ text }) => text));

/** Shorter texts are sent as they are. */
const SHORT = 64;

/** The texts of the previous answer, found by their whole text and by their beginning. */
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
    const begun = this.#beginnings.get(text.slice(0, SHORT))?.find((one) => text.startsWith(this.#texts[one] as string));
    return begun === undefined ? text : [begun, text.slice((this.#texts[begun] as string).length)];
  }
}

/** A context over the pipe: texts that the previous context had too are named by their place there. */
export interface SentContext extends Omit<LoopContext, 'before' | 'inserts' | 'after'> {
  readonly before: readonly SentMessage[];
  readonly inserts: readonly { readonly index: number; readonly message: SentMessage }[];
  readonly after: readonly SentMessage[];
}

type Message = LoopContext['before'][number];
type SentMessage = Omit<Message, 'parts'> & {
  readonly parts: readonly (Omit<Message['parts'][number], 'text'> & { readonly text: SentText })[];
};

/** A context as it goes over the pipe, and the texts that the next one is compared with. */
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
 * The context that was sent.
 * @throws {RangeError} for a place that the previous answer does not have
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

/** The lines of a stream of text: between line feeds alone, because JSON may hold every other character that some take for a line's end. */
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
