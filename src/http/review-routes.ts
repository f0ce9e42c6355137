import type { ServerResponse } from 'node:http';
import type { ContextClient } from '../client/session/context-client.js';
import { askContext, askContexts, askDiff, askObject, askQuery, askTurns, askVersions, askWho, type Desk } from '../history/ask/ask.js';
import { requireText } from '../history/ask/object-view.js';
import { HistoryError } from '../history/rebuild/history-error.js';
import { Timeline } from '../history/rebuild/timeline.js';
import { goneSignal } from './gone-signal.js';
import { readParameters } from './read-input.js';
import { pastContextAnswer, reportDetailAnswer, reportListAnswer } from './report-answers.js';
import { logAnswer, objectDiffAnswer, queryAnswer, sessionDiffAnswer, showAnswer, whoAnswer } from './review-answers.js';
import { REVIEW_OPERATIONS, type ReviewOperation, type ReviewOperationId } from './review-operations.js';
import { REVIEW_PARAMETERS, type ReviewAnswer, type ReviewParameters } from './review-schemas.js';
import { verifyAnswer } from './verify-answer.js';

type Operations = typeof REVIEW_OPERATIONS;
type ParametersOf<Id extends ReviewOperationId> = ReviewParameters<Operations[Id]['parameters']>;
type AnswerOf<Id extends ReviewOperationId> = Operations[Id]['answer'] extends infer Name extends keyof AnswersByName
  ? AnswersByName[Name]
  : string;
type AnswersByName = { readonly [Name in NonNullable<Operations[ReviewOperationId]['answer']>]: ReviewAnswer<Name> };
type Handlers = {
  readonly [Id in ReviewOperationId]: (desk: Desk, parameters: ParametersOf<Id>, signal: AbortSignal) => Promise<AnswerOf<Id>>;
};

/** Turns and versions that one answer holds where nobody says how many. */
const LISTED = 100;

const moment = ({
  at,
  valid_time: validTime,
  tx,
}: {
  readonly at?: string | undefined;
  readonly valid_time?: string | undefined;
  readonly tx?: string | undefined;
}) => ({
  at,
  validTime,
  tx,
});

const HANDLERS: Handlers = {
  log: async (desk, { session, object, limit = LISTED, ...when }) => {
    if (session === undefined && object !== undefined) {
      const { point, versions } = await askVersions(desk, { object, limit, ...moment(when) });
      return logAnswer(point.basis, { versions });
    }
    const { point, turns } = await askTurns(desk, { session, object, limit, ...moment(when) });
    return logAnswer(point.basis, { turns });
  },
  show: async (desk, { object, session, ...when }) => {
    const view = await askObject(desk, { object, session, ...moment(when) });
    return showAnswer(view, await view.text(), desk.display);
  },
  cat: async (desk, { object, session, ...when }) => (await requireText(await askObject(desk, { object, session, ...moment(when) }))).text,
  diff: async (desk, { object, session, range, context }) => {
    const name = object ?? session;
    if (name === undefined) throw new HistoryError('malformed-moment', 'say what is compared: object, or session');
    const asked = await askDiff(desk, { name, session: object === undefined ? undefined : session, range, context });
    return asked.kind === 'object' ? objectDiffAnswer(asked.diff, desk.display) : sessionDiffAnswer(asked.diff);
  },
  pastContext: async (desk, { session, ...when }) => pastContextAnswer(await askContext(desk, session, moment(when))),
  who: async (desk, parameters) => {
    const { id, sightings } = await askWho(desk, parameters);
    return whoAnswer(desk.timeline.present.basis, id, sightings);
  },
  query: async (desk, { query, session, limit, timeout, args, ...when }) => {
    const timeoutMs = timeout === undefined ? undefined : timeout * 1_000;
    const { point, answer } = await askQuery(desk, query, { session, limit, timeoutMs, args, ...moment(when) });
    return queryAnswer(point.basis, answer);
  },
  verify: async (desk, { session, timeout }, signal) => {
    const { askVerify } = await import('../history/ask/ask-verify.js');
    return verifyAnswer(await askVerify(desk, session, { signal, timeoutMs: timeout === undefined ? undefined : timeout * 1_000 }));
  },
  reportList: async (desk, { session: name, limit }) => {
    const [{ reportList }, { TOKENIZER }] = await Promise.all([
      import('../history/ask/context-report.js'),
      import('../history/ask/token-count.js'),
    ]);
    const { session, contexts } = await askContexts(desk, name, {});
    return reportListAnswer(session, TOKENIZER, await reportList(desk.timeline, contexts, session, limit));
  },
  reportDetail: async (desk, { session: name, ...when }) => {
    const { reportDetail } = await import('../history/ask/context-report.js');
    const { session, when: asked, contexts } = await askContexts(desk, name, moment(when));
    return reportDetailAnswer(await reportDetail(contexts, session, asked));
  },
};

/** The question at a path; undefined where there is none. */
export function reviewOperationAt(path: string): { readonly id: ReviewOperationId; readonly operation: ReviewOperation } | undefined {
  const entries = Object.entries(REVIEW_OPERATIONS) as [ReviewOperationId, ReviewOperation][];
  const found = entries.find(([, operation]) => operation.path === path);
  return found === undefined ? undefined : { id: found[0], operation: found[1] };
}

/**
 * Answers a question about the past from one line of time, which is pinned when it is asked. Throws what the question throws; nothing where nobody is
 * there any more to be told.
 */
export async function answerReviewRequest(
  id: ReviewOperationId,
  client: ContextClient,
  query: URLSearchParams,
  response: ServerResponse,
): Promise<void> {
  const { parameters, answer } = REVIEW_OPERATIONS[id];
  const asked = readParameters(REVIEW_PARAMETERS[parameters], query);
  const desk: Desk = { timeline: await Timeline.open(client), display: (source) => client.files.display(source) };
  const signal = goneSignal(response);
  const handler = HANDLERS[id] as (desk: Desk, parameters: unknown, signal: AbortSignal) => Promise<unknown>;
  let body: unknown;
  try {
    body = await handler(desk, asked, signal);
  } catch (error) {
    if (signal.aborted) return;
    throw error;
  }
  const type = answer === null ? 'text/plain; charset=utf-8' : 'application/json';
  // Recorded text is nobody's page.
  response.writeHead(200, {
    'content-type': type,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  });
  response.end(answer === null ? String(body) : JSON.stringify(body));
}
