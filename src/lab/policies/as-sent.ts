import type { RecordedCompaction, Timeline } from '../timeline/timeline.js';
import { type ContextPolicy, itemsOf, type PolicyRequest, type RequestPart, wholePart, wholeParts } from './policy.js';

/** The requests that the recorded program really sent, with its compactions and clearings. */
export const asSent: ContextPolicy = {
  name: 'as the harness sent it',
  family: 'as sent',
  kind: 'baseline',
  source: 'the recordings',
  fidelity: 'exact',
  about:
    'The requests of the recorded model. After a compaction by the recorded program, its summary replaces what ' +
    'it dropped. Results have the texts that the model was shown.',
  reach: 'none',
  guide: 0,
  asRecorded: true,
  *requests({ calls, compactions }: Timeline): Iterable<PolicyRequest> {
    const summaries = new Map(compactions.map((one) => [one, { text: one.summary }]));
    let made = 0;
    for (const call of calls) {
      const last = compactions.findLast(({ before }) => before <= call.index);
      const isNew = last !== undefined && compactions.indexOf(last) >= made && last.summary !== '';
      if (last !== undefined) made = compactions.indexOf(last) + 1;
      yield {
        parts: last === undefined ? wholeParts(call) : compacted(last, summaries.get(last), itemsOf(call)),
        ...(isNew && last !== undefined
          ? { summarised: { read: charsBefore(last, itemsOf(call)), written: last.summary.length } }
          : {}),
      };
    }
  },
};

const charsBefore = ({ visible }: RecordedCompaction, items: ReturnType<typeof itemsOf>): number =>
  items.slice(0, visible).reduce((sum, { text }) => sum + text.length, 0);

/** Returns the system prompt, the summary, the kept items and the items after the compaction. */
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
