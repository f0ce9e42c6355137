import * as z from 'zod';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { AssemblyMismatch } from '../../history/verify/verify-assembly.js';
import { contractEntries } from '../../http/http-contract.js';
import { at, clocks, moment, objectName, pin, sessionName } from '../../http/question-parameters.js';
import { shownBasis, shownRequest } from '../../http/review-answers.js';
import { wireShape } from '../../http/wire-shape.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { VERBS } from '../../session/verb-outcome.js';
import { defined } from '../../values/defined.js';
import type { CallChanges } from './call-changes.js';
import { PAGE_ANSWERS, type PageBody } from './page-schemas.js';
import type { RequestView } from './request-view.js';
import type { SessionStrip } from './session-strip.js';
import type { StripChange } from './strip-changes.js';
import type { VerbPrice } from './verb-price.js';

const { question } = contractEntries({ requests: {}, answers: PAGE_ANSWERS });

/** Formats a session call by call. */
export function stripAnswer({ basis, marks, ...strip }: SessionStrip): PageBody<'Strip'> {
  return wireShape(PAGE_ANSWERS.Strip, { ...strip, basis: shownBasis(basis), marks });
}

/** Formats a change of a followed session. */
export function stripChangeAnswer({ basis, ...change }: StripChange): PageBody<'StripChange'> {
  return wireShape(PAGE_ANSWERS.StripChange, { ...change, basis: shownBasis(basis) });
}

/**
 * Formats a request part by part, with the reason if its rebuilt text differs; undefined if it is
 * equal.
 */
export function requestAnswer(
  { request, basis, ...view }: RequestView,
  unequal: AssemblyMismatch | undefined,
): PageBody<'Request'> {
  return wireShape(PAGE_ANSWERS.Request, {
    ...view,
    recorded: request !== undefined,
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
  return wireShape(PAGE_ANSWERS.Changes, { ...found, recorded: prefix !== undefined, prefix: shown });
}

/** Formats the cost of a verb. */
function priceAnswer(price: VerbPrice): PageBody<'VerbPrice'> {
  return wireShape(PAGE_ANSWERS.VerbPrice, price);
}

/** Returns why a rebuilt request differs from the delivered one. */
async function mismatchOf(timeline: Timeline, proof: AssemblyProof): Promise<AssemblyMismatch | undefined> {
  const { contexts, present } = await timeline.of(proof.session);
  const [{ verifyAssembly }, { AssemblyRebuilder }] = await Promise.all([
    import('../../history/verify/verify-assembly.js'),
    import('../../history/rebuild/rebuild-assembly.js'),
  ]);
  return verifyAssembly({ rebuilder: new AssemblyRebuilder(contexts, present), present }, proof);
}

/** The questions that only the page asks, by their OpenAPI ids. */
export const PAGE_QUESTIONS = {
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
  request: question({
    path: '/v1/request',
    summary: 'One delivered request, part by part, rebuilt and verified; without a record, what is known of it',
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
        .describe(
          'A..B, each as `at`; ..B: B and the request before it; where absent the newest and the one before it',
        ),
      ...pin,
    }),
    example: { session: 'fix-cart', range: 'turn:6..turn:7' },
    answer: 'Changes',
    ask: async ({ timeline }, { session, range }) => {
      const { askChanges } = await import('./call-changes.js');
      return changesAnswer(await askChanges(timeline, { name: session, range }));
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
