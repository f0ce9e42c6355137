import type { SessionSummary } from '../client/session/open-session.js';
import type { HarnessSession, TurnContext } from '../harness/harness-session.js';
import type { ReportedCall, VerbReport } from '../harness/record-call.js';
import type { MessagesReport } from '../harness/reported-chat.js';
import { reportedTime } from '../store/object-store.js';
import { defined } from '../values/defined.js';
import { ANSWERS, type AnswerBody } from './api-schemas.js';
import { wireShape } from './wire-shape.js';

/** Formats a session. */
export function sessionAnswer({ session }: HarnessSession, resumed: boolean): AnswerBody<'Session'> {
  const { turn, seq, sets } = session.state;
  return {
    id: session.id,
    resumed,
    turn,
    step: seq,
    index: sets.index.length,
    active: [...sets.active],
    pinned: [...sets.pinned],
  };
}

/** Formats the list of sessions, with the titles that the reader may see. */
export function sessionsAnswer(
  sessions: readonly SessionSummary[],
  titles: ReadonlyMap<string, string> = new Map(),
): AnswerBody<'Sessions'> {
  const shown = sessions.map(({ parent, ...session }) => ({
    ...session,
    ...defined({ title: titles.get(session.id) }),
    ...(parent === undefined ? {} : { parent: { ...parent, at: parent.seq } }),
  }));
  return wireShape(ANSWERS.Sessions, { sessions: shown });
}

const place = ({ session }: HarnessSession) => ({ turn: session.state.turn, step: session.state.seq });

/** Formats the result of reported messages and the state of the session. */
export function messagesAnswer(harness: HarnessSession, report: MessagesReport): AnswerBody<'MessagesReport'> {
  return wireShape(ANSWERS.MessagesReport, { ...report, ...place(harness) });
}

/** Formats the result of reported calls and the state of the session. */
export function toolCallsAnswer(
  harness: HarnessSession,
  calls: readonly ReportedCall[],
): AnswerBody<'ToolCallsReport'> {
  return wireShape(ANSWERS.ToolCallsReport, { calls, ...place(harness) });
}

/** Formats a context and the result of messages sent with the request; null if it had none. */
export function contextAnswer(context: TurnContext, report: MessagesReport | undefined): AnswerBody<'TurnContext'> {
  const { basis, ...record } = context.record;
  const shown = basis === undefined ? undefined : { ...basis, validTime: reportedTime(basis.validTime) };
  return wireShape(ANSWERS.TurnContext, { ...context, record: { ...record, basis: shown }, report });
}

/** Formats the result of an agent's verb, for each object that it named. */
export function verbAnswer({ entries, ...report }: VerbReport): AnswerBody<'VerbReport'> {
  const shown = entries.map((entry) => ({ ...entry, ...(entry.ok ? { chars: entry.metadata.charCount } : {}) }));
  return wireShape(ANSWERS.VerbReport, { ...report, entries: shown });
}
