import { askContext } from '../../history/ask/ask.js';
import { tyrumRow } from '../../http/tyrum-routes.js';
import { TyrumReports } from '../../interop/tyrum/read-reports.js';
import { escapedText } from '../output.js';
import { type Answer, answerReview, type ReviewFlags } from './answer.js';
import { answerSession } from './session-answer.js';

const LISTED = 20;

/** A report in the fields of another program: JSON for people and programs alike. */
function foreignAnswer(body: object): Answer {
  const text = JSON.stringify(body, null, 2);
  return { lines: () => [escapedText(text)], exact: `${text}\n`, json: () => body };
}

/** `report list <session> --format tyrum` */
export async function tyrumListAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const rows = await new TyrumReports(timeline).list({ conversation: reference, limit: flags.limit ?? LISTED });
    return foreignAnswer({ status: 'ok', reports: rows.map(tyrumRow) });
  });
}

/** `report detail <session>[@when] --format tyrum` */
export async function tyrumDetailAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) =>
    foreignAnswer(await new TyrumReports(timeline).of(await askContext(timeline, reference, flags))),
  );
}

/** `report state <session>[@when]` */
export async function tyrumStateAction(reference: string, flags: ReviewFlags): Promise<void> {
  const [{ conversationAt, conversationState }, { SessionMoment }] = await Promise.all([
    import('../../interop/tyrum/conversation.js'),
    import('../../history/project/session-moment.js'),
  ]);
  await answerSession(reference, flags, async ({ timeline, session, when }) => {
    const conversation = await conversationAt(await SessionMoment.read(timeline, session, when));
    return foreignAnswer({ status: 'ok', conversation_id: session, state: conversationState(conversation) });
  });
}
