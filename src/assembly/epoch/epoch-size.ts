import type { RenderedMessage } from '../render-messages.js';
import type { EpochState } from './epoch-state.js';

const textsOf = (messages: readonly RenderedMessage[]): readonly string[] => messages.flatMap(({ parts }) => parts.map(({ text }) => text));
const sum = (sizes: readonly number[]): number => sizes.reduce((all, one) => all + one, 0);

/** How much text a request of an epoch has of ours, in UTF-16 units. */
export const charsOf = ({ before, notes }: EpochState): number =>
  sum(textsOf([...before, ...notes.map(({ message }) => message)]).map(({ length }) => length));

/** How much of a base is the beginning of another one, in UTF-16 units of whole parts: what a provider's cache can still use. */
export function sharedChars(a: Pick<EpochState, 'before'>, b: Pick<EpochState, 'before'>): number {
  const [one, other] = [textsOf(a.before), textsOf(b.before)];
  const differs = other.findIndex((text, i) => text !== one[i]);
  return sum(other.slice(0, differs < 0 ? other.length : differs).map(({ length }) => length));
}
