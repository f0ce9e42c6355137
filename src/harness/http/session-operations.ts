import { changeByPerson, previewUndo, undoStep } from '../../client/session/person-steps.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { requireOwn } from '../../history/rebuild/foreign-session.js';
import { Timeline } from '../../history/rebuild/timeline.js';
import type { Exchange } from '../../http/http-contract.js';
import { wireShape } from '../../http/wire-shape.js';
import type { SetVerbs } from '../../session/plan-step.js';
import type { Verb } from '../../session/verb-outcome.js';
import { reportedTime } from '../../store/object-store.js';
import { defined } from '../../values/defined.js';
import type { HarnessSession, TurnContext } from '../harness-session.js';
import type { ReportedCall, VerbReport } from '../record-call.js';
import type { MessagesReport } from '../reported-chat.js';
import { sessionEntries, sessionsOf } from './session-entries.js';
import { SESSION_ANSWERS, SESSION_REQUESTS, type SessionAnswer, type SessionRequest } from './session-schemas.js';

const { operation, onSession } = sessionEntries({ requests: SESSION_REQUESTS, answers: SESSION_ANSWERS });

/** Formats a session for an answer. */
function sessionAnswer({ session }: HarnessSession, resumed: boolean): SessionAnswer<'Session'> {
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

const place = ({ session }: HarnessSession) => ({ turn: session.state.turn, step: session.state.seq });

/** Formats the result of reported messages, and the session's state. */
function messagesAnswer(harness: HarnessSession, report: MessagesReport): SessionAnswer<'MessagesReport'> {
  return wireShape(SESSION_ANSWERS.MessagesReport, { ...report, ...place(harness) });
}

/** Formats the result of reported calls, and the session's state. */
function toolCallsAnswer(harness: HarnessSession, calls: readonly ReportedCall[]): SessionAnswer<'ToolCallsReport'> {
  return wireShape(SESSION_ANSWERS.ToolCallsReport, { calls, ...place(harness) });
}

/** Formats a context. `report` is the result of the messages that the request had, or null. */
function contextAnswer(context: TurnContext, report: MessagesReport | undefined): SessionAnswer<'TurnContext'> {
  const { basis, ...record } = context.record;
  const shown = basis === undefined ? undefined : { ...basis, validTime: reportedTime(basis.validTime) };
  return wireShape(SESSION_ANSWERS.TurnContext, { ...context, record: { ...record, basis: shown }, report });
}

/** Formats the result of a verb, with one entry per named object. */
function verbAnswer({ entries, ...report }: VerbReport): SessionAnswer<'VerbReport'> {
  const shown = entries.map((entry) => ({ ...entry, ...(entry.ok ? { chars: entry.metadata.charCount } : {}) }));
  return wireShape(SESSION_ANSWERS.VerbReport, { ...report, entries: shown });
}

const turnOf = ({ turn }: { readonly turn?: string | undefined }) => (turn === undefined ? {} : { turnRef: turn });

const verb = (name: Verb, summary: string) =>
  onSession({
    method: 'POST',
    path: `/v1/sessions/{id}/${name}`,
    summary,
    request: 'Verb',
    example: { ids: ['src/cart.ts'] },
    answer: 'VerbReport',
    handle: async (session, { ids, call_id: callId, ...rest }) =>
      verbAnswer(await session.verb(name, ids, { ...turnOf(rest), ...defined({ callId }) })),
  });

/** Returns a session that its reader may change, before it is opened. */
async function ownSession(exchange: Exchange) {
  const client = await exchange.client();
  const timeline = await Timeline.open(await client.delivered(), client.files);
  const session = await requireSession(timeline.present, exchange.id);
  await client.requireRoots(session, timeline.present);
  await requireOwn(timeline, session);
  return { timeline, session };
}

/**
 * Changes a session's sets for a person. Throws the errors of `requireOwn`, `ApiSessions.asPerson`
 * and `changeByPerson`.
 */
async function changeSets(
  exchange: Exchange,
  { verb, ids }: SessionRequest<'PersonVerb'>,
): Promise<SessionAnswer<'SetsChanged'>> {
  await ownSession(exchange);
  return sessionsOf(exchange).asPerson(exchange.id, async ({ session }) => {
    const { entries, step } = await changeByPerson(session, { verb, references: ids });
    return wireShape(SESSION_ANSWERS.SetsChanged, { session: session.id, verb, step: step?.seq, entries });
  });
}

const shownChanges = ({ activate, deactivate, pin, unpin }: SetVerbs) => defined({ activate, deactivate, pin, unpin });

/**
 * Undoes what a step changed in the sets, or previews that. Throws the errors of `requireOwn`,
 * `ApiSessions.asPerson` and `undoStep`.
 */
async function undoOneStep(exchange: Exchange, body: SessionRequest<'Undo'>): Promise<SessionAnswer<'StepUndone'>> {
  const { timeline, session: asked } = await ownSession(exchange);
  if (body.plan === true) {
    const { undoes, verbs } = await previewUndo(timeline.store, asked, body.step);
    return wireShape(SESSION_ANSWERS.StepUndone, {
      session: asked,
      undoes,
      step: undefined,
      changes: shownChanges(verbs),
    });
  }
  return sessionsOf(exchange).asPerson(exchange.id, async ({ client, session }) => {
    const { seq, changes } = await undoStep(session, client.store, body.step);
    return wireShape(SESSION_ANSWERS.StepUndone, {
      session: session.id,
      undoes: body.step,
      step: seq,
      changes: shownChanges(changes),
    });
  });
}

/** The operations on open sessions, by their ids in OpenAPI. */
export const SESSION_OPERATIONS = {
  openSession: operation({
    method: 'POST',
    path: '/v1/sessions',
    summary: 'Open, resume or fork a session',
    request: 'OpenSession',
    example: { id: 'fix-cart', system_prompt: 'You are careful.' },
    answer: 'Session',
    statuses: [201, 200],
    handle: async (exchange, request) => {
      const session = await sessionsOf(exchange).open(request);
      const resumed = request.fork === undefined && session.session.state.seq > 0;
      if (request.system_prompt !== undefined) await session.setSystemPrompt(request.system_prompt);
      return sessionAnswer(session, resumed);
    },
    statusOf: ({ resumed }) => (resumed ? 200 : 201),
  }),
  getSession: onSession({
    method: 'GET',
    path: '/v1/sessions/{id}',
    summary: 'An open session',
    answer: 'Session',
    handle: async (session) => sessionAnswer(session, session.session.state.seq > 0),
  }),
  closeSession: operation({
    method: 'POST',
    path: '/v1/sessions/{id}/close',
    summary: 'Pause a session by closing it',
    request: 'Nothing',
    example: {},
    answer: 'Closed',
    handle: async (exchange) => {
      await sessionsOf(exchange).close(exchange.id);
      return { id: exchange.id, closed: true };
    },
  }),
  changeSets: operation({
    method: 'POST',
    path: '/v1/sessions/{id}/sets',
    summary:
      'Activate, deactivate, pin or unpin objects as a person, by a step with `by: person`; opens the session if ' +
      'needed',
    request: 'PersonVerb',
    example: { verb: 'pin', ids: ['src/cart.ts'] },
    answer: 'SetsChanged',
    handle: changeSets,
  }),
  undoStep: operation({
    method: 'POST',
    path: '/v1/sessions/{id}/undo',
    summary: "Revert one step's changes to the sets by a new step, or preview that",
    request: 'Undo',
    example: { step: 41, plan: true },
    answer: 'StepUndone',
    handle: undoOneStep,
  }),
  setSystemPrompt: onSession({
    method: 'PUT',
    path: '/v1/sessions/{id}/system-prompt',
    summary: 'Set the system prompt',
    request: 'SystemPrompt',
    example: { text: 'You are careful.' },
    answer: 'Session',
    handle: async (session, { text }) => {
      await session.setSystemPrompt(text);
      return sessionAnswer(session, session.session.state.seq > 0);
    },
  }),
  reportMessages: onSession({
    method: 'POST',
    path: '/v1/sessions/{id}/messages',
    summary: 'Report messages, with their tool calls and results',
    request: 'Messages',
    example: { messages: [{ role: 'user', content: 'Why does the cart round up?' }] },
    answer: 'MessagesReport',
    handle: async (session, { messages, mode = 'append', ...rest }) =>
      messagesAnswer(session, await session.reportMessages(messages, { mode, ...turnOf(rest) })),
  }),
  reportToolCalls: onSession({
    method: 'POST',
    path: '/v1/sessions/{id}/tool-calls',
    summary: 'Report finished tool calls',
    request: 'ToolCalls',
    example: {
      calls: [{ id: 'call_1', name: 'read', args: { path: 'src/cart.ts' }, content: 'sum = Math.ceil(sum);' }],
    },
    answer: 'ToolCallsReport',
    handle: async (session, { calls, ...rest }) => {
      const reported = [];
      for (const call of calls) reported.push(await session.reportToolCall(call, turnOf(rest)));
      return toolCallsAnswer(session, reported);
    },
  }),
  beginTurn: onSession({
    method: 'POST',
    path: '/v1/sessions/{id}/context',
    summary: 'Begin a turn or step: the context of the next model call',
    request: 'Context',
    example: { format: 'messages', layout: 'epoch', model: 'claude-sonnet-4-5' },
    answer: 'TurnContext',
    handle: async (session, { short_ids: shortIds, turn, mode = 'append', ...rest }) => {
      const options = { mode, ...turnOf({ turn }), ...defined({ ...rest, shortIds }) };
      const { report, ...context } = await session.beginTurn(options);
      return contextAnswer(context, report);
    },
  }),
  activate: verb('activate', 'Load objects into the active set'),
  deactivate: verb('deactivate', 'Remove objects from the active set'),
  pin: verb('pin', 'Exempt objects from auto-collapse'),
  unpin: verb('unpin', 'Let pinned objects collapse again'),
};
