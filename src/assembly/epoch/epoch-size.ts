import type { RenderedMessage } from '../render-messages.js';
import type { EpochState } from './epoch-state.js';

const textsOf = (messages: readonly RenderedMessage[]): readonly string[] =>
  messages.flatMap(({ parts }) => parts.map(({ text }) => text));
const sum = (sizes: readonly number[]): number => sizes.reduce((all, one) => all + one, 0);

/** Returns the length of our text in an epoch's request, in UTF-16 units. */
export const charsOf = ({ before, notes }: EpochState): number =>
  sum(textsOf([...before, ...notes.map(({ message }) => message)]).map(({ length }) => length));

/**
 * Returns how much of a base is the beginning of another one, in UTF-16 units of whole parts. A
 * provider's cache can reuse that.
 */
export function sharedChars(a: Pick<EpochState, 'before'>, b: Pick<EpochState, 'before'>): number {
  const [one, other] = [textsOf(a.before), textsOf(b.before)];
  const differs = other.findIndex((text, i) => text !== one[i]);
  return sum(other.slice(0, differs < 0 ? other.length : differs).map(({ length }) => length));
}
