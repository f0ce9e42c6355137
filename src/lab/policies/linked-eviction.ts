import { tokensOf } from '../../values/token-estimate.js';
import type { TimelineItem } from '../timeline/timeline.js';
import { maskingPolicy, type Rights, wholeResults } from './masking.js';
import { type ContextPolicy, charsOf, itemsOf } from './policy.js';

interface LinkedSettings {
  /** Results are evicted above this number of tokens. */
  readonly over: number;
  /** Eviction stops when the request has this number of tokens. */
  readonly to: number;
  readonly rights: Rights;
}

/** Number of newest results that always stay. */
const NEWEST = 5;

/** Returns the files that a result shows or changes. */
const linksOf = ({ files }: TimelineItem): readonly string[] => [...files.shows, ...files.changes];

/** Evicts old results. A result that shares a file with a later result is evicted last. */
export function linkedEviction({ over, to, rights }: LinkedSettings): ContextPolicy {
  return maskingPolicy({
    name: `linked eviction, over ${over / 1_000}k to ${to / 1_000}k`,
    family: 'linked eviction',
    source: 'CWL, arXiv 2606.11213',
    fidelity: 'bounded',
    about:
      `From a request over ${over} tokens it drops results, oldest first, until ${to} are left. Errors go ` +
      `first, then results that ` +
      'no later one shares a file with, then the others. The paper types episodes with more care.',
    rights,
    rule: () => (call, conversation) => {
      let size = charsOf(conversation.parts(call));
      if (tokensOf(size) <= over) return undefined;
      const whole = wholeResults(call, conversation);
      const newest = new Map<string, number>();
      for (const item of itemsOf(call)) for (const link of linksOf(item)) newest.set(link, item.index);
      const rank = (item: TimelineItem): number => {
        if (item.isError) return 0;
        return linksOf(item).some((link) => newest.get(link) !== item.index) ? 2 : 1;
      };
      const leave: TimelineItem[] = [];
      for (const item of whole.slice(0, -NEWEST).toSorted((a, b) => rank(a) - rank(b) || a.index - b.index)) {
        if (tokensOf(size) <= to) break;
        leave.push(item);
        size -= item.text.length;
      }
      return { leave: leave.map((item) => ({ item, text: '[episode evicted]' })) };
    },
  });
}
