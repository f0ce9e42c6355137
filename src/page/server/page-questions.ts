import * as z from 'zod';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { importedSessions } from '../../host/imported-sessions.js';
import { contractEntries, type DataFolders } from '../../http/http-contract.js';
import { ApiError } from '../../http/problem.js';
import { at, clocks, moment, objectName, pin, sessionName } from '../../http/question-parameters.js';
import { wireShape } from '../../http/wire-shape.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import { shownBasis, shownRequest } from '../../review/http/review-answers.js';
import { rowsOf } from '../../review/rows/session-rows.js';
import type { RecordedParents } from '../../review/rows/sub-agents.js';
import type { AssemblyMismatch } from '../../review/verify/verify-assembly.js';
import { VERBS } from '../../session/verb-outcome.js';
import { defined } from '../../values/defined.js';
import type { CallChanges } from './call-changes.js';
import { PAGE_ANSWERS, type PageBody } from './page-schemas.js';
import type { RequestView } from './request-view.js';
import { SORTS } from './session-list.js';
import type { SessionStrip } from './session-strip.js';
import type { StripChange } from './strip-changes.js';
import type { VerbPrice } from './verb-price.js';

/** Returns the imported sessions. A server of several agents has none to show. */
const recordedIn = async (folders: DataFolders | undefined): Promise<RecordedParents> =>
  folders === undefined ? new Map() : importedSessions(folders.dataDir);

const { question } = contractEntries({ requests: {}, answers: PAGE_ANSWERS });

/** Formats the strip of a session. */
export function stripAnswer({ basis, marks, ...strip }: SessionStrip): PageBody<'Strip'> {
  return wireShape(PAGE_ANSWERS.Strip, { ...strip, basis: shownBasis(basis), marks });
}

/** Formats the change of a followed session's strip. */
export function stripChangeAnswer({ basis, ...change }: StripChange): PageBody<'StripChange'> {
  return wireShape(PAGE_ANSWERS.StripChange, { ...change, basis: shownBasis(basis) });
}

/**
 * Formats a request part by part. `unequal` says how its rebuilt text differs from the record;
 * undefined if it is equal.
 */
export function requestAnswer(
  { request, basis, ...view }: RequestView,
  unequal: AssemblyMismatch | undefined,
): PageBody<'Request'> {
  return wireShape(PAGE_ANSWERS.Request, {
    ...view,
    recorded: request !== undefined && request.kind !== 'transcript',
    request: request === undefined ? undefined : shownRequest(request),
    basis: { ...basis, txTime: undefined },
    unequal,
    ...defined({ redacted: view.proof?.redacted }),
  });
}

/** Formats the changes between two requests. */
export function changesAnswer({ prefix, ...found }: CallChanges): PageBody<'Changes'> {
  const shown =
    prefix === undefined ? undefined : { ...prefix, from: shownRequest(prefix.from), to: shownRequest(prefix.to) };
  const recorded = prefix !== undefined && prefix.from.kind === 'sent' && prefix.to.kind === 'sent';
  return wireShape(PAGE_ANSWERS.Changes, { ...found, recorded, prefix: shown });
}

/** Formats the cost of a verb. */
function priceAnswer(price: VerbPrice): PageBody<'VerbPrice'> {
  return wireShape(PAGE_ANSWERS.VerbPrice, price);
}

/** Returns why a rebuilt request differs from the one that was handed out. */
async function mismatchOf(timeline: Timeline, proof: AssemblyProof): Promise<AssemblyMismatch | undefined> {
  const { contexts, present } = await timeline.of(proof.session);
  const [{ verifyAssembly }, { AssemblyRebuilder }] = await Promise.all([
    import('../../review/verify/verify-assembly.js'),
    import('../../history/rebuild/rebuild-assembly.js'),
  ]);
  return verifyAssembly({ rebuilder: new AssemblyRebuilder(contexts, present), present }, proof);
}

const ownersOnly = (): ApiError =>
  new ApiError(
    'forbidden',
    'only the owner of the data folder may list titles and figures of all sessions: run palimpsest review',
  );

const step = z.coerce.number().int().min(0).optional();

/** The questions that only the page asks, by their OpenAPI ids. */
export const PAGE_QUESTIONS = {
  sessionList: question({
    path: '/v1/list',
    summary: 'The sessions with their titles, agents, folders, figures and costs',
    parameters: z.strictObject({
      text: z.string().max(200).optional().describe('Words of the title, or the beginning of an id'),
      agent: z.string().max(100).optional(),
      cwd: z.string().max(5_000).optional().describe('The folder of the session, or one above it'),
      since: z
        .string()
        .max(100)
        .optional()
        .describe('A local day or a time, or 7d (today and six days before), 2w, 24h'),
      sort: z
        .enum([...SORTS, ...SORTS.map((sort) => `-${sort}` as const)])
        .optional()
        .describe('Sorts by this field, the greatest first; with a leading - the least first. Default: used'),
      limit: z.coerce.number().int().min(1).max(1_000).default(100),
      from: z.coerce.number().int().min(0).default(0).describe('Number of rows to skip'),
      ...pin,
    }),
    example: { agent: 'claude', since: '7d' },
    answer: 'SessionList',
    ask: async ({ timeline, ...server }, { tx: _tx, ...asked }) => {
      const rows = rowsOf(server);
      if (rows === undefined) throw ownersOnly();
      const { sessionList } = await import('./session-list.js');
      return sessionList(timeline, rows, asked);
    },
  }),
  strip: question({
    path: '/v1/strip',
    summary: 'A session call by call: the contents of its contexts, and the events between them',
    parameters: z.strictObject({ session: sessionName, ...clocks }),
    example: { session: 'fix-cart' },
    answer: 'Strip',
    pins: true,
    ask: async ({ timeline }, { session, ...when }) => {
      const { sessionStrip } = await import('./session-strip.js');
      return stripAnswer(await sessionStrip(timeline, session, moment(when)));
    },
  }),
  conversation: question({
    path: '/v1/conversation',
    summary: 'A session as a conversation: prompts, answers, calls with results and changes, and what others did',
    parameters: z.strictObject({
      session: sessionName,
      after: step.describe('Rows after this step'),
      before: step.describe('Rows before this step'),
      around: step.describe('Rows around this step'),
      call: step.describe('Rows around this tool call, by its number'),
      limit: z.coerce.number().int().min(1).max(1_000).default(200).describe('Maximum number of steps'),
      ...pin,
    }),
    example: { session: 'fix-cart' },
    answer: 'Conversation',
    ask: async ({ timeline, folders }, { tx: _tx, ...asked }) =>
      (await import('./conversation.js')).conversation(timeline, { ...asked, recorded: await recordedIn(folders) }),
  }),
  stale: question({
    path: '/v1/stale',
    summary: 'Tool calls that changed a file whose newest version the agent had not seen',
    parameters: z.strictObject({ session: sessionName, ...pin }),
    example: { session: 'fix-cart' },
    answer: 'Stale',
    ask: async ({ timeline }, { session }) => (await import('./file-authors.js')).staleCalls(timeline, session),
  }),
  authors: question({
    path: '/v1/authors',
    summary: 'The versions of a file with their authors, as far as the calls of a session show them',
    parameters: z.strictObject({ session: sessionName, object: objectName, ...pin }),
    example: { session: 'fix-cart', object: 'src/cart.ts' },
    answer: 'Authors',
    ask: async ({ timeline, access }, { session, object }) => {
      const { fileAuthors } = await import('./file-authors.js');
      const found = await fileAuthors(timeline, session, object);
      await access.requireObject(found.object as ObjectId);
      return found;
    },
  }),
  money: question({
    path: '/v1/money',
    summary: 'The cost of a session by cause, with its most expensive moments',
    parameters: z.strictObject({ session: sessionName, ...pin }),
    example: { session: 'fix-cart' },
    answer: 'Money',
    ask: async ({ timeline, folders }, { session }) => {
      const { sessionMoney } = await import('./session-money.js');
      return sessionMoney(timeline, session, { recorded: await recordedIn(folders) });
    },
  }),
  request: question({
    path: '/v1/request',
    summary: 'One handed-out request, part by part, rebuilt and verified; without a record, what is known of it',
    parameters: z.strictObject({ session: sessionName, at, ...pin }),
    example: { session: 'fix-cart', at: 'turn:7' },
    answer: 'Request',
    pins: true,
    ask: async ({ timeline }, { session, at }) => {
      const { askRequest } = await import('./request-view.js');
      const view = await askRequest(timeline, session, { at });
      const { request, proof } = view;
      const isEqual = proof === undefined || request?.matches === true;
      return requestAnswer(view, isEqual ? undefined : await mismatchOf(timeline, proof));
    },
  }),
  changes: question({
    path: '/v1/changes',
    summary: 'Objects that came, left, changed or moved between two requests, with the actor and the cost',
    parameters: z.strictObject({
      session: sessionName,
      range: z
        .string()
        .max(250)
        .optional()
        .describe('A..B: two moments, each as `at`. ..B: B and the previous request. Default: the two newest'),
      ...pin,
    }),
    example: { session: 'fix-cart', range: 'turn:6..turn:7' },
    answer: 'Changes',
    ask: async ({ timeline }, { session, range }) => {
      const { askChanges } = await import('./call-changes.js');
      return changesAnswer(await askChanges(timeline, { name: session, range }));
    },
  }),
  compared: question({
    path: '/v1/compared',
    summary: 'Two sessions: their shared past, changed files, last answers and costs',
    parameters: z.strictObject({ session: sessionName, with: sessionName, ...pin }),
    example: { session: 'fix-cart', with: 'fix-cart-again' },
    answer: 'Compared',
    ask: async ({ timeline, access, ...server }, { session, with: other }) => {
      await access.requireNamed(other);
      const { compared } = await import('./compared.js');
      return compared(timeline, { list: rowsOf(server), recorded: await recordedIn(server.folders) }, [session, other]);
    },
  }),
  verbPrice: question({
    path: '/v1/price',
    summary: 'The cost of a verb on an object for the next requests of a session',
    parameters: z.strictObject({
      session: sessionName,
      object: objectName,
      verb: z.enum(VERBS),
    }),
    example: { session: 'fix-cart', verb: 'deactivate', object: 'src/cart.ts' },
    answer: 'VerbPrice',
    ask: async ({ timeline }, asked) => {
      const { verbPrice } = await import('./verb-price.js');
      return priceAnswer(await verbPrice(timeline, asked));
    },
  }),
};
