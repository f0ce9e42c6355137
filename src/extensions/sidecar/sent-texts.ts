import type { LoopContext } from '../../harness/loop-session.js';

/** A text in an answer: as it is, or by its place among the texts of the answer before, with what follows it now. */
export type SentText = string | readonly [place: number] | readonly [place: number, more: string];

/** The texts of a context in the order of its messages. */
const textsOf = ({ before, after }: LoopContext): readonly string[] =>
  [...before, ...after].flatMap(({ parts }) => parts.map(({ text }) => text));

/** Shorter texts are sent as they are. */
const SHORT = 64;

/** Texts of the answer before, by what they are and by how they begin. */
class Before {
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

/** A context with its texts apart: most of them stand in the context before it too, and need not go over the pipe again. */
export interface SentContext extends Omit<LoopContext, 'before' | 'after'> {
  readonly before: readonly SentMessage[];
  readonly after: readonly SentMessage[];
}

type Message = LoopContext['before'][number];
type SentMessage = Omit<Message, 'parts'> & {
  readonly parts: readonly (Omit<Message['parts'][number], 'text'> & { readonly text: SentText })[];
};

/** What goes over the pipe for a context, and what the next one is compared with. */
export function withoutRepeats(
  context: LoopContext,
  before: readonly string[],
): { readonly sent: SentContext; readonly texts: readonly string[] } {
  const known = new Before(before);
  const shorten = ({ parts, ...message }: Message): SentMessage => ({
    ...message,
    parts: parts.map((part) => ({ ...part, text: known.named(part.text) })),
  });
  return { sent: { ...context, before: context.before.map(shorten), after: context.after.map(shorten) }, texts: textsOf(context) };
}

/** The context that was sent. Throws RangeError for a place that the answer before does not have. */
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
  const context = { ...sent, before: sent.before.map(lengthen), after: sent.after.map(lengthen) };
  return { context, texts: textsOf(context) };
}
