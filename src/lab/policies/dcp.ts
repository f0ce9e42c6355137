import type { TimelineItem } from '../timeline/timeline.js';
import { maskingPolicy, type Rights, wholeResults } from './masking.js';
import { type ContextPolicy, itemsOf } from './policy.js';

interface DcpSettings {
  /** Number of turns after which a failed call loses its arguments. */
  readonly turns: number;
  readonly rights: Rights;
}

const PRUNED = '[Output removed to save context - information superseded or no longer needed]';
const INPUT = '[input removed]';
const signature = ({ text }: TimelineItem): string => text;

/** The automatic strategies of dynamic context pruning. With DCP's tools, models prune more. */
export function dcp({ turns, rights }: DcpSettings): ContextPolicy {
  return maskingPolicy({
    name: `DCP, errors after ${turns} turns`,
    family: 'DCP',
    source: 'Tarquinen/opencode-dynamic-context-pruning: deduplication, superseded writes, purged errors',
    fidelity: 'bounded',
    about:
      'Of equal calls only the newest output stays. A write loses its text once the file is read, a failed call ' +
      `loses its arguments after ${turns} turns. The model prunes more by DCP's tools.`,
    rights,
    rule: () => (call, conversation) => {
      const items = itemsOf(call);
      const whole = wholeResults(call, conversation);
      const made = new Map(items.flatMap((item) => (item.kind === 'call' ? [[item.callId, item] as const] : [])));
      const newest = new Map<string, TimelineItem>();
      const shown = new Map<string, number>();
      for (const result of whole) {
        const from = made.get(result.callId);
        if (from !== undefined) newest.set(signature(from), result);
        for (const path of result.files.shows) shown.set(path, result.index);
      }
      const leave = whole.flatMap((result) => {
        const from = made.get(result.callId);
        if (from === undefined) return [];
        const isOld = newest.get(signature(from)) !== result;
        const isRead = result.files.changes.some((path) => (shown.get(path) ?? -1) > result.index);
        const isStale = result.isError && call.turn - result.turn >= turns;
        const drops = (isRead || isStale) && !conversation.isMasked(from);
        return [
          ...(isOld ? [{ item: result, text: PRUNED }] : []),
          ...(drops ? [{ item: from, text: `${from.tool ?? ''} ${INPUT}` }] : []),
        ];
      });
      return leave.length === 0 ? undefined : { leave };
    },
  });
}
