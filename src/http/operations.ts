import { changeByPerson, previewUndo, undoStep } from '../client/session/person-steps.js';
import { requireSession } from '../history/rebuild/find-session.js';
import { Timeline } from '../history/rebuild/timeline.js';
import type { SetVerbs } from '../session/plan-step.js';
import type { Verb } from '../session/verb-outcome.js';
import { defined } from '../values/defined.js';
import {
  contextAnswer,
  messagesAnswer,
  sessionAnswer,
  sessionsAnswer,
  toolCallsAnswer,
  verbAnswer,
} from './api-answers.js';
import { ANSWERS, type AnswerBody, REQUESTS, type RequestBody } from './api-schemas.js';
import { contractEntries, type Exchange } from './http-contract.js';
import { addNote } from './review-routes.js';
import { wireShape } from './wire-shape.js';

const { operation, onSession } = contractEntries({ requests: REQUESTS, answers: ANSWERS });

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

/**
 * Changes the sets of a session for a person. Throws as `ApiSessions.asPerson` and
 * `changeByPerson`.
 */
function changeSets(
  { sessions, id }: Exchange,
  { verb, ids }: RequestBody<'PersonVerb'>,
): Promise<AnswerBody<'SetsChanged'>> {
  return sessions.asPerson(id, async ({ session }) => {
    const { entries, step } = await changeByPerson(session, { verb, references: ids });
    return wireShape(ANSWERS.SetsChanged, { session: session.id, verb, step: step?.seq, entries });
  });
}

const shownChanges = ({ activate, deactivate, pin, unpin }: SetVerbs) => defined({ activate, deactivate, pin, unpin });

/**
 * Reverts a step's changes to the sets, or previews that. Throws as `ApiSessions.asPerson` and
 * `undoStep`.
 */
async function undoOneStep({ sessions, id }: Exchange, body: RequestBody<'Undo'>): Promise<AnswerBody<'StepUndone'>> {
  if (body.plan === true) {
    const client = await sessions.client();
    const timeline = await Timeline.open(await client.delivered(), client.files);
    const session = await requireSession(timeline.present, id);
    await client.requireRoots(session, timeline.present);
    const { undoes, verbs } = await previewUndo(timeline.store, session, body.step);
    return wireShape(ANSWERS.StepUndone, { session, undoes, step: undefined, changes: shownChanges(verbs) });
  }
  return sessions.asPerson(id, async ({ client, session }) => {
    const { seq, changes } = await undoStep(session, client.store, body.step);
    return wireShape(ANSWERS.StepUndone, {
      session: session.id,
      undoes: body.step,
      step: seq,
      changes: shownChanges(changes),
    });
  });
}

/** Forks a session and leaves the fork closed. Throws as `ContextClient.makeFork`. */
async function forkOne({ sessions, id }: Exchange, body: RequestBody<'Fork'>): Promise<AnswerBody<'Forked'>> {
  const client = await sessions.client();
  const fork = await client.makeFork(id, defined({ id: body.id, at: body.at }));
  return { id: fork.id, parent: { session: fork.parent.session, at: fork.parent.seq } };
}

/** All operations by their OpenAPI ids. */
export const OPERATIONS = {
  openSession: operation({
    method: 'POST',
    path: '/v1/sessions',
    summary: 'Open, resume or fork a session',
    request: 'OpenSession',
    example: { id: 'fix-cart', system_prompt: 'You are careful.' },
    answer: 'Session',
    statuses: [201, 200],
    handle: async ({ sessions }, request) => {
      const session = await sessions.open(request);
      const resumed = request.fork === undefined && session.session.state.seq > 0;
      if (request.system_prompt !== undefined) await session.setSystemPrompt(request.system_prompt);
      return sessionAnswer(session, resumed);
    },
    statusOf: ({ resumed }) => (resumed ? 200 : 201),
  }),
  listSessions: operation({
    method: 'GET',
    path: '/v1/sessions',
    summary: 'List all sessions',
    answer: 'Sessions',
    kind: 'short',
    handle: async ({ sessions, titlesOf }) => {
      const client = await sessions.client();
      const listed = await client.listSessions();
      return sessionsAnswer(listed, await titlesOf(client, listed));
    },
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
    handle: async ({ sessions, id }) => {
      await sessions.close(id);
      return { id, closed: true };
    },
  }),
  addNote: operation({
    method: 'POST',
    path: '/v1/sessions/{id}/notes',
    summary:
      "Add a reviewer's note to a session, a step or an object; the session need not be open, and no context shows it",
    request: 'Note',
    example: { at: 'turn:7', verdict: 'wrong', text: 'It had not read src/cart.ts.', by: 'Ada' },
    answer: 'NoteAdded',
    statuses: [201],
    handle: async ({ sessions, id }, said) => addNote(await sessions.client(), id, said),
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
  forkSession: operation({
    method: 'POST',
    path: '/v1/sessions/{id}/fork',
    summary: 'Create a session that starts from this one at a moment; it is not left open',
    request: 'Fork',
    example: { at: 'turn:7', id: 'other-way' },
    answer: 'Forked',
    statuses: [201],
    handle: forkOne,
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

/** The path of the OpenAPI document. */
export const OPENAPI_PATH = '/v1/openapi.json';
