import type { SessionSummary } from '../client/session/open-session.js';
import { defined } from '../values/defined.js';
import { ANSWERS, type AnswerBody, REQUESTS, type RequestBody } from './api-schemas.js';
import { contractEntries, type Exchange } from './http-contract.js';
import { wireShape } from './wire-shape.js';

const { operation } = contractEntries({ requests: REQUESTS, answers: ANSWERS });

/** Formats the list of sessions, with the titles that the reader may see. */
function sessionsAnswer(
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

/** Forks a session and does not open the fork. Throws the errors of `ContextClient.makeFork`. */
async function forkOne({ client: ready, id }: Exchange, body: RequestBody<'Fork'>): Promise<AnswerBody<'Forked'>> {
  const client = await ready();
  const fork = await client.makeFork(id, defined({ id: body.id, at: body.at }));
  return { id: fork.id, parent: { session: fork.parent.session, at: fork.parent.seq } };
}

/** The operations on stored sessions by their OpenAPI ids. They open no session. */
export const OPERATIONS = {
  listSessions: operation({
    method: 'GET',
    path: '/v1/sessions',
    summary: 'List all sessions',
    answer: 'Sessions',
    kind: 'short',
    handle: async ({ client: ready, titlesOf }) => {
      const client = await ready();
      const listed = await client.listSessions();
      return sessionsAnswer(listed, await titlesOf(client, listed));
    },
  }),
  forkSession: operation({
    method: 'POST',
    path: '/v1/sessions/{id}/fork',
    summary: 'Create a session that starts from this one at a moment; the new session is not open',
    request: 'Fork',
    example: { at: 'turn:7', id: 'other-way' },
    answer: 'Forked',
    statuses: [201],
    handle: forkOne,
  }),
};

/** The path of the OpenAPI document. */
export const OPENAPI_PATH = '/v1/openapi.json';
