import * as z from 'zod';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { SEARCHED_KINDS } from '../../history/search/kinds.js';
import { contractEntries } from '../../http/http-contract.js';
import { clocks, inSession, limit, moment, objectName, pin, sessionName } from '../../http/question-parameters.js';
import { type SessionId, sessionObjectId } from '../../objects/ids.js';
import { askContext, askDiff, askObject, askQuery, askTurns, askVersions, askWho } from '../ask/ask.js';
import { requireText } from '../ask/object-view.js';
import { askNotes } from '../ask/review-notes.js';
import { failedEdits } from '../authors/failed-edits.js';
import {
  logAnswer,
  notesAnswer,
  objectDiffAnswer,
  pastContextAnswer,
  prefixAnswer,
  queryAnswer,
  reportDetailAnswer,
  reportListAnswer,
  searchAnswer,
  sessionDiffAnswer,
  showAnswer,
  verifyAnswer,
  whoAnswer,
} from './review-answers.js';
import { REVIEW_ANSWERS } from './review-schemas.js';

const { question, plainQuestion } = contractEntries({ requests: {}, answers: REVIEW_ANSWERS });

/** Default number of turns and versions in one answer. */
const LISTED = 100;

const range = z.string().max(250).optional().describe('A..B, each as `at`; a bare number is a turn');
const assemble = z
  .enum(['true', 'false'])
  .optional()
  .describe('Whether to assemble the session as of that moment now, although no model received this');
// The limit is low because each context is rebuilt and counted.
const report = z.strictObject({
  session: sessionName,
  limit: z.coerce.number().int().min(1).max(200).optional(),
  assemble,
  ...clocks,
});

const contextMoment = ({ assemble, ...when }: Omit<z.output<typeof report>, 'session' | 'limit'>) => ({
  ...moment(when),
  assemble: assemble === 'true',
});

const milliseconds = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : seconds * 1_000;

/** Loads the modules of reports. The first call loads the vocabulary. */
const counting = () => Promise.all([import('../ask/context-report.js'), import('../ask/token-count.js')]);

/**
 * All questions by their OpenAPI ids. The command line has the same questions with the same names.
 */
export const QUESTIONS = {
  log: question({
    path: '/v1/log',
    summary: 'The turns of a session, or the latest of all, or the versions of an object',
    parameters: z.strictObject({ session: sessionName.optional(), object: objectName.optional(), limit, ...clocks }),
    example: { session: 'fix-cart', limit: '20' },
    answer: 'Log',
    ask: async ({ timeline, access }, { session, object, limit = LISTED, ...when }) => {
      if (session === undefined && object !== undefined) {
        const { id, point, versions } = await askVersions(timeline, { object, limit, ...moment(when) });
        await access.requireObject(id);
        return logAnswer(point.basis, { versions });
      }
      const { point, turns: found } = await askTurns(timeline, { session, object, limit, ...moment(when) });
      const turns = session === undefined ? await access.openable(found) : found;
      return logAnswer(point.basis, { turns, sights: await failedEdits(timeline, turns) });
    },
  }),
  show: question({
    path: '/v1/show',
    summary: 'An object at a moment',
    parameters: z.strictObject({ object: objectName, session: inSession, ...clocks }),
    example: { object: 'src/cart.ts', at: 'turn:7', session: 'fix-cart' },
    answer: 'Show',
    ask: async ({ timeline, access }, { object, session, ...when }) => {
      const view = await askObject(timeline, { object, session, ...moment(when) });
      await access.requireObject(view.version['xt/id']);
      return showAnswer(view, await view.text(), timeline.paths);
    },
  }),
  cat: plainQuestion({
    path: '/v1/cat',
    summary: "An object's exact text at a moment",
    parameters: z.strictObject({ object: objectName, session: inSession, ...clocks }),
    example: { object: 'src/cart.ts@2026-11-20T09:00:00Z' },
    ask: async ({ timeline, access }, { object, session, ...when }) => {
      const view = await askObject(timeline, { object, session, ...moment(when) });
      await access.requireObject(view.version['xt/id']);
      return (await requireText(view)).text;
    },
  }),
  diff: question({
    path: '/v1/diff',
    summary: 'How an object or a session changed between two moments',
    parameters: z.strictObject({
      object: objectName.optional(),
      session: sessionName.optional(),
      range,
      context: z.coerce.number().int().min(0).max(1_000).optional(),
      ...pin,
    }),
    example: { object: 'src/cart.ts', session: 'fix-cart', range: '3..7' },
    answer: 'Diff',
    ask: async ({ timeline, access }, { object, session, range, context }) => {
      const name = object ?? session;
      if (name === undefined) throw new HistoryError('malformed-moment', 'missing parameter: object or session');
      const asked = await askDiff(timeline, {
        name,
        session: object === undefined ? undefined : session,
        range,
        context,
      });
      await access.requireObject(asked.kind === 'object' ? asked.diff.id : sessionObjectId(asked.diff.session));
      return asked.kind === 'object' ? objectDiffAnswer(asked.diff, timeline.paths) : sessionDiffAnswer(asked.diff);
    },
  }),
  diffPrefix: question({
    path: '/v1/diff/prefix',
    summary: 'Where the requests of a session diverge from the previous ones, why, and at what cost',
    // The limit is low because both requests of each comparison are rebuilt and counted.
    parameters: z.strictObject({
      session: sessionName,
      range: z
        .string()
        .max(250)
        .optional()
        .describe('A..B: two moments, each as `at`. Default: compares each request with the previous one'),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(200)
        .optional()
        .describe('Maximum number of comparisons, newest first; default 20'),
      ...pin,
    }),
    example: { session: 'fix-cart' },
    answer: 'PrefixDiff',
    kind: 'long',
    ask: async ({ timeline }, { session, range, limit }) => {
      const [{ askPrefixes }, { countHere }] = await Promise.all([
        import('../ask/prefix-diff.js'),
        import('../ask/token-count.js'),
      ]);
      return prefixAnswer(await askPrefixes(timeline, { name: session, range, limit, count: countHere }));
    },
  }),
  pastContext: question({
    path: '/v1/context',
    summary: 'The handed-out context of a session, or the session as of a moment',
    parameters: z.strictObject({ session: sessionName, assemble, ...clocks }),
    example: { session: 'fix-cart@turn:7' },
    answer: 'PastContext',
    ask: async ({ timeline }, { session, ...when }) =>
      pastContextAnswer(await askContext(timeline, session, contextMoment(when))),
  }),
  notes: question({
    path: '/v1/notes',
    summary: "Reviewers' notes on a session, its steps and objects",
    parameters: z.strictObject({ session: sessionName, object: objectName.optional(), ...clocks }),
    example: { session: 'fix-cart' },
    answer: 'Notes',
    pins: true,
    ask: async ({ timeline }, { session, object, ...when }) =>
      notesAnswer((await askNotes(timeline, { session, object, ...moment(when) })).notes),
  }),
  search: question({
    path: '/v1/search',
    summary: 'Search every message and every version for a text, with the contexts that contained it',
    parameters: z.strictObject({
      text: z
        .string()
        .min(1)
        .max(1_000)
        .describe(
          'A text, case-insensitive unless it contains a capital, or a regular expression /…/ with flags i, m, s',
        ),
      session: inSession.describe('Default: every session that this server may open'),
      type: z.enum(SEARCHED_KINDS).optional(),
      path: z.string().min(1).max(1_000).optional().describe('Path, folder or glob of files'),
      lines: z.coerce.number().int().min(0).max(20).optional().describe('Lines before and after a match; default 0'),
      ...clocks,
      order: z.enum(['newest', 'first']).optional().describe('first: the first appearance first; default newest'),
      limit: z.coerce.number().int().min(1).max(1_000).optional().describe('Maximum number of texts; default 100'),
    }),
    example: { session: 'fix-cart', text: 'Math.ceil' },
    answer: 'Search',
    kind: 'long',
    ask: async ({ timeline, access, all, client }, { text, session, type, path, lines, order, limit, ...when }) => {
      const [{ askSearch }, { INDEX_WAIT_MS }] = await Promise.all([
        import('../../history/search/search.js'),
        import('../../history/search/search-index.js'),
      ]);
      const asked = {
        pattern: text,
        session,
        kind: type,
        path,
        around: lines,
        order,
        limit,
        ...moment(when),
      };
      const visible = async (sessions: readonly SessionId[]): Promise<readonly SessionId[]> =>
        (await access.openable(sessions.map((one) => ({ session: one })))).map(({ session: one }) => one);
      const index = await client.searchIndex?.of(timeline, { limitMs: INDEX_WAIT_MS });
      const found = await askSearch(timeline, { ...asked, ...(all ? {} : { visible }) }, index);
      return searchAnswer(found);
    },
  }),
  who: question({
    path: '/v1/who',
    summary: 'Sessions that saw an object, and when',
    parameters: z.strictObject({ object: objectName, session: inSession, ...pin }),
    example: { object: 'src/cart.ts' },
    answer: 'Who',
    ask: async ({ timeline, access }, parameters) => {
      const { id, sightings, damaged } = await askWho(timeline, parameters);
      await access.requireObject(id);
      const visible = { sightings: await access.openable(sightings), damaged: await access.openable(damaged) };
      return whoAnswer(timeline.present.basis, id, visible);
    },
  }),
  query: question({
    path: '/v1/query',
    summary: 'A Datalog query, read-only and limited',
    parameters: z.strictObject({
      query: z.string().min(1).max(20_000).describe('Datalog as EDN'),
      args: z.string().max(20_000).optional().describe('EDN vector with one value for each binding of :in'),
      session: inSession,
      ...clocks,
      limit,
      timeout: z.coerce.number().positive().max(30).optional().describe('Seconds; default 10'),
      storage: z
        .enum(['true', 'false'])
        .optional()
        .describe("Whether to query the stored documents instead of the SSOT's objects"),
    }),
    example: { query: '[:find ?e :where [?e :tool "bash"]]', limit: '20' },
    answer: 'Query',
    ask: async ({ timeline, access }, { query, session, limit, timeout, args, storage, ...when }) => {
      access.requireShared();
      const asked = {
        session,
        limit,
        timeoutMs: milliseconds(timeout),
        args,
        storage: storage === 'true',
        ...moment(when),
      };
      const { point, answer } = await askQuery(timeline, query, asked);
      return queryAnswer(point.basis, answer);
    },
  }),
  verify: question({
    path: '/v1/verify',
    summary:
      'Verify that the database can rebuild every handed-out context of a session, byte for byte; stops if the ' +
      'client disconnects',
    parameters: z.strictObject({
      session: sessionName,
      timeout: z.coerce.number().positive().max(600).optional().describe('Seconds; default 60'),
    }),
    example: { session: 'fix-cart' },
    answer: 'Verify',
    kind: 'long',
    ask: async ({ timeline }, { session, timeout }, signal) => {
      const { askVerify } = await import('../verify/verify-session.js');
      return verifyAnswer(await askVerify(timeline.store, session, { signal, timeoutMs: milliseconds(timeout) }));
    },
  }),
  reportList: question({
    path: '/v1/report/list',
    summary: 'The contexts of a session with their sizes',
    parameters: report,
    example: { session: 'fix-cart' },
    answer: 'ReportList',
    kind: 'long',
    ask: async ({ timeline }, { session, limit, assemble }) => {
      const [{ reportList }, { countHere }] = await counting();
      const asked = { reference: session, limit, assemble: assemble === 'true', count: countHere };
      return reportListAnswer(await reportList(timeline, asked));
    },
  }),
  reportDetail: question({
    path: '/v1/report/detail',
    summary: 'One context by section and object',
    parameters: report,
    example: { session: 'fix-cart@turn:7' },
    answer: 'ReportDetail',
    ask: async ({ timeline }, { session, ...when }) => {
      const [{ reportDetail }, { countHere }] = await counting();
      return reportDetailAnswer(
        await reportDetail(timeline, { reference: session, text: contextMoment(when), count: countHere }),
      );
    },
  }),
};
