import { escapedLine, textLines } from '../../cli/output.js';
import { type Answer, answerReview, type ReviewFlags } from '../../cli/review/answer.js';
import { answerSession } from '../../cli/review/session-answer.js';
import type { CountTexts } from '../../history/rebuild/tokenizer.js';
import { askContext } from '../../review/ask/ask.js';
import { tyrumRow } from './http-handlers.js';
import { TyrumReports } from './read-reports.js';

const LISTED = 20;

/** Returns an answer that is printed as JSON with and without `--json`. */
function foreignAnswer(body: object): Answer {
  const text = JSON.stringify(body, null, 2);
  return { lines: () => textLines(text), exact: `${text}\n`, json: () => body };
}

/** `report list <session> --format tyrum` */
export async function tyrumListAction(reference: string, flags: ReviewFlags, count: CountTexts): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const rows = await new TyrumReports(timeline, count).list({
      conversation: reference,
      limit: flags.limit ?? LISTED,
    });
    return foreignAnswer({ status: 'ok', reports: rows.map(tyrumRow) });
  });
}

/** `report detail <session>[@when] --format tyrum` */
export async function tyrumDetailAction(reference: string, flags: ReviewFlags, count: CountTexts): Promise<void> {
  await answerReview(flags, async ({ timeline }) =>
    foreignAnswer(await new TyrumReports(timeline, count).of(await askContext(timeline, reference, flags))),
  );
}

/** `report state <session>[@when]` */
export async function tyrumStateAction(reference: string, flags: ReviewFlags): Promise<void> {
  const [{ conversationAt, conversationState }, { SessionMoment }] = await Promise.all([
    import('./conversation.js'),
    import('../projection/session-moment.js'),
  ]);
  await answerSession(reference, flags, async ({ timeline, session, when }) => {
    const conversation = await conversationAt(await SessionMoment.read(timeline, session, when));
    return foreignAnswer({ status: 'ok', conversation_id: session, state: conversationState(conversation) });
  });
}

/** `report memory <agent>` */
export async function tyrumMemoryAction(agent: string, flags: ReviewFlags): Promise<void> {
  const [{ RecordMemory }, { memoryText, writtenAt }, { recallMemory }] = await Promise.all([
    import('./agent-memory.js'),
    import('./memory-item.js'),
    import('./recall-memory.js'),
  ]);
  await answerReview(flags, async ({ timeline }) => {
    const held = await new RecordMemory(timeline.store, agent).read();
    const { limit = LISTED, query } = flags;
    const newest = held.items.toSorted((a, b) => writtenAt(b) - writtenAt(a)).slice(0, limit);
    const items =
      query === undefined
        ? newest
        : recallMemory(held.items, { query, limit, chars: Number.POSITIVE_INFINITY, sensitive: true }).items;
    const tombstones = held.tombstones.slice(-limit);
    return {
      lines: (colours) => [
        ...items.map((item) => escapedLine(`${item.memory_item_id}  ${item.kind}  ${memoryText(item)}`)),
        ...tombstones.map(({ memory_item_id: id, deleted_at, deleted_by, reason = '' }) =>
          colours.dim(escapedLine(`${id}  forgotten ${deleted_at} by ${deleted_by} ${reason}`.trimEnd())),
        ),
        ...(items.length + tombstones.length === 0 ? [`agent ${escapedLine(agent)} remembers nothing`] : []),
      ],
      json: () => ({ agent, items, tombstones }),
    };
  });
}
