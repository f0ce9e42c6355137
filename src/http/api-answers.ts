import type { RenderedMessage } from '../assembly/render-messages.js';
import type { SessionSummary } from '../client/session/open-session.js';
import type { EpochTurn } from '../harness/epoch-contexts.js';
import type { DeliveredRecord, HarnessSession, TurnContext } from '../harness/harness-session.js';
import type { ReportedCall, VerbReport } from '../harness/record-call.js';
import type { MessagesReport } from '../harness/reported-chat.js';
import { reportedTime } from '../store/object-store.js';
import { defined } from '../values/defined.js';
import { ANSWERS, type AnswerBody } from './api-schemas.js';
import { wireShape } from './wire-shape.js';

/** A session as it is answered. */
export function sessionAnswer({ session }: HarnessSession, resumed: boolean): AnswerBody<'Session'> {
  const { turn, seq, sets } = session.state;
  return { id: session.id, resumed, turn, step: seq, index: sets.index.length, active: [...sets.active], pinned: [...sets.pinned] };
}

/** The list of sessions as it is answered. */
export function sessionsAnswer(sessions: readonly SessionSummary[]): AnswerBody<'Sessions'> {
  const shown = sessions.map(({ parent, ...session }) => ({
    ...session,
    ...(parent === undefined ? {} : { parent: { ...parent, at: parent.seq } }),
  }));
  return wireShape(ANSWERS.Sessions, { sessions: shown });
}

const place = ({ session }: HarnessSession) => ({ turn: session.state.turn, step: session.state.seq });

/** What became of reported messages, and where the session stands. */
export function messagesAnswer(harness: HarnessSession, report: MessagesReport): AnswerBody<'MessagesReport'> {
  return wireShape(ANSWERS.MessagesReport, { ...report, ...place(harness) });
}

/** What became of reported calls, and where the session stands. */
export function toolCallsAnswer(harness: HarnessSession, calls: readonly ReportedCall[]): AnswerBody<'ToolCallsReport'> {
  return wireShape(ANSWERS.ToolCallsReport, { calls, ...place(harness) });
}

function recordAnswer({
  options,
  basis,
  sections,
  blocks,
  epoch: _epoch,
  tail: _tail,
  ...others
}: DeliveredRecord): AnswerBody<'TurnContext'>['record'] {
  return {
    ...others,
    options: { strict: options.strict, short_ids: options.shortIds },
    sections: [...sections],
    blocks: [...blocks],
    basis: basis === undefined ? null : { valid_time: reportedTime(basis.validTime)?.toISOString() ?? null, tx_id: basis.txId ?? null },
  };
}

const written = ({ parts, ...message }: RenderedMessage) => ({ ...message, parts: [...parts] });

const writtenList = ({ from, inserts }: EpochTurn['list'] & {}) => ({
  from,
  inserts: inserts.map(({ index, message }) => ({ index, message: written(message) })),
});

/** A context as it is answered, with what became of the messages that were sent along; null where none were. */
export function contextAnswer(context: TurnContext, report: MessagesReport | undefined): AnswerBody<'TurnContext'> {
  const common = { record: recordAnswer(context.record), report: wireShape(ANSWERS.TurnContext.shape.report, report ?? null) };
  if (context.format === 'text') return { format: context.format, text: context.text, ...common };
  const { format, system, messages, epoch, list } = context;
  return {
    format,
    system,
    messages: messages.map(written),
    ...defined({ epoch, list: list === undefined ? undefined : writtenList(list) }),
    ...common,
  };
}

/** What a verb of the agent did, for each object that it named. */
export function verbAnswer({ callId, text, ok, entries, collapsed }: VerbReport): AnswerBody<'VerbReport'> {
  const answers = entries.map((entry) =>
    entry.ok
      ? { reference: entry.reference, ok: true, id: entry.id, chars: entry.metadata.charCount }
      : {
          reference: entry.reference,
          ok: false,
          failure: entry.failure,
          ...defined({ id: entry.id }),
          ...(entry.candidates === undefined ? {} : { candidates: [...entry.candidates] }),
        },
  );
  return { call_id: callId, text, ok, entries: answers, collapsed: [...collapsed] };
}
