import type { RecordedCompaction, Timeline } from '../timeline/timeline.js';
import { type ContextPolicy, itemsOf, type PolicyRequest, type RequestPart, wholePart } from './policy.js';

/** The recorded program's own compaction, as its model received it. Only for compacted sessions. */
export const ownCompaction: ContextPolicy = {
  name: "the recording's own compaction",
  family: 'peer',
  about:
    'The requests of the recorded model. After a compaction by the recorded program, its summary replaces what ' +
    'it dropped.',
  reach: 'none',
  asRecorded: true,
  unsupported: ({ compactions }) => (compactions.length === 0 ? 'the recorded program did not compact' : undefined),
  *requests({ calls, compactions }: Timeline): Iterable<PolicyRequest> {
    const summaries = new Map(compactions.map((one) => [one, { text: one.summary }]));
    for (const call of calls) {
      const last = compactions.findLast(({ before }) => before <= call.index);
      yield {
        parts: last === undefined ? itemsOf(call).map(wholePart) : compacted(last, summaries.get(last), itemsOf(call)),
      };
    }
  },
};

/** Returns the summary followed by the kept and the later items. */
function compacted(
  { kept, visible }: RecordedCompaction,
  summary: RequestPart | undefined,
  items: ReturnType<typeof itemsOf>,
): readonly RequestPart[] {
  const stays = new Set(kept);
  const system = items.filter((item) => item.kind === 'system' && item.position < visible);
  const rest = items.filter((item) => item.position >= visible || (item.kind !== 'system' && stays.has(item)));
  return [
    ...system.map(wholePart),
    ...(summary === undefined || summary.text === '' ? [] : [summary]),
    ...rest.map(wholePart),
  ];
}
