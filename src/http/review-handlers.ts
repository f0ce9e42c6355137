import type { FindHiddenTexts } from '../bundle/hidden-texts.js';
import type { ContextClient } from '../client/session/context-client.js';
import { askContext, askDiff, askObject, askQuery, askTurns, askVersions, askWho } from '../history/ask/ask.js';
import { requireText } from '../history/ask/object-view.js';
import { askNotes } from '../history/ask/review-notes.js';
import { HistoryError } from '../history/rebuild/history-error.js';
import type { Timeline } from '../history/rebuild/timeline.js';
import type { AssemblyMismatch } from '../history/verify/verify-assembly.js';
import type { AssemblyProof } from '../objects/assembly-proof.js';
import { sessionObjectId } from '../objects/ids.js';
import { planFiles } from './person-routes.js';
import type { ReviewAccess } from './review-access.js';
import {
  changesAnswer,
  logAnswer,
  notesAnswer,
  objectDiffAnswer,
  pastContextAnswer,
  planAnswer,
  prefixAnswer,
  priceAnswer,
  queryAnswer,
  reportDetailAnswer,
  reportListAnswer,
  requestAnswer,
  searchAnswer,
  sessionDiffAnswer,
  showAnswer,
  stripAnswer,
  verifyAnswer,
  whoAnswer,
} from './review-answers.js';
import type { REVIEW_OPERATIONS, ReviewOperationId } from './review-operations.js';
import type { ReviewParameters } from './review-parameters.js';
import type { ReviewAnswer, ReviewAnswerName } from './review-schemas.js';

type AnswerOf<Id extends ReviewOperationId> = (typeof REVIEW_OPERATIONS)[Id]['answer'] extends infer Name extends
  ReviewAnswerName
  ? ReviewAnswer<Name>
  : (typeof REVIEW_OPERATIONS)[Id] extends { readonly media: string }
    ? AsyncIterable<string>
    : string;

/** The sources of an answer and the access rules. */
export interface Asked {
  readonly timeline: Timeline;
  readonly access: ReviewAccess;
  readonly client: ContextClient;
  readonly all: boolean;
  /** Finds what the redaction rules of a session hide. */
  readonly hiddenTexts: FindHiddenTexts;
}

type Handlers = {
  readonly [Id in ReviewOperationId]: (
    asked: Asked,
    parameters: ReviewParameters<Id>,
    signal: AbortSignal,
  ) => Promise<AnswerOf<Id>>;
};

/** Default number of turns and versions in one answer. */
const LISTED = 100;

const moment = ({ at, valid_time: validTime, tx }: Omit<ReviewParameters<'strip'>, 'session'>) => ({
  at,
  validTime,
  tx,
});

const contextMoment = ({ assemble, ...when }: Omit<ReviewParameters<'pastContext'>, 'session'>) => ({
  ...moment(when),
  assemble: assemble === 'true',
});

const milliseconds = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : seconds * 1_000;

/** Dependencies of reports; the vocabulary loads with the first one. */
const counting = () =>
  Promise.all([import('../history/ask/context-report.js'), import('../history/ask/token-count.js')]);

/** Returns why a rebuilt request differs from the delivered one. */
async function mismatchOf(timeline: Timeline, proof: AssemblyProof): Promise<AssemblyMismatch | undefined> {
  const { contexts, present } = await timeline.of(proof.session);
  const [{ verifyAssembly }, { AssemblyRebuilder }] = await Promise.all([
    import('../history/verify/verify-assembly.js'),
    import('../history/rebuild/rebuild-assembly.js'),
  ]);
  return verifyAssembly({ rebuilder: new AssemblyRebuilder(contexts, present), present }, proof);
}

/** The handlers of all questions by their OpenAPI ids. */
export const REVIEW_HANDLERS: Handlers = {
  log: async ({ timeline, access }, { session, object, limit = LISTED, ...when }) => {
    if (session === undefined && object !== undefined) {
      const { id, point, versions } = await askVersions(timeline, { object, limit, ...moment(when) });
      await access.requireObject(id);
      return logAnswer(point.basis, { versions });
    }
    const { point, turns } = await askTurns(timeline, { session, object, limit, ...moment(when) });
    return logAnswer(point.basis, { turns: session === undefined ? await access.openable(turns) : turns });
  },
  show: async ({ timeline, access }, { object, session, ...when }) => {
    const view = await askObject(timeline, { object, session, ...moment(when) });
    await access.requireObject(view.version['xt/id']);
    return showAnswer(view, await view.text(), timeline.paths);
  },
  cat: async ({ timeline, access }, { object, session, ...when }) => {
    const view = await askObject(timeline, { object, session, ...moment(when) });
    await access.requireObject(view.version['xt/id']);
    return (await requireText(view)).text;
  },
  diff: async ({ timeline, access }, { object, session, range, context }) => {
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
  diffPrefix: async ({ timeline }, { session, range, limit }) => {
    const [{ askPrefixes }, { countHere }] = await Promise.all([
      import('../history/ask/prefix-diff.js'),
      import('../history/ask/token-count.js'),
    ]);
    return prefixAnswer(await askPrefixes(timeline, { name: session, range, limit, count: countHere }));
  },
  pastContext: async ({ timeline }, { session, ...when }) =>
    pastContextAnswer(await askContext(timeline, session, contextMoment(when))),
  strip: async ({ timeline }, { session, ...when }) => {
    const { sessionStrip } = await import('../history/ask/session-strip.js');
    return stripAnswer(await sessionStrip(timeline, session, moment(when)));
  },
  request: async ({ timeline }, { session, at }) => {
    const { askRequest } = await import('../history/ask/request-view.js');
    const view = await askRequest(timeline, session, { at });
    return requestAnswer(view, view.request.matches ? undefined : await mismatchOf(timeline, view.proof));
  },
  changes: async ({ timeline }, { session, range }) => {
    const { askChanges } = await import('../history/ask/call-changes.js');
    return changesAnswer(await askChanges(timeline, { name: session, range }));
  },
  search: async ({ timeline }, { session, text, limit, ...when }) => {
    const { askSearch } = await import('../history/ask/search-session.js');
    return searchAnswer(await askSearch(timeline, { session, text, limit, ...moment(when) }));
  },
  verbPrice: async ({ timeline }, asked) => {
    const { verbPrice } = await import('../history/ask/verb-price.js');
    return priceAnswer(await verbPrice(timeline, asked));
  },
  restorePlan: async ({ timeline, client, all }, { session, at }) => {
    const { countStates, hindrances } = await import('../history/restore/restore-plan.js');
    const plan = await planFiles(client, timeline, { session, at, all });
    return planAnswer(plan, { counts: countStates(plan), inTheWay: hindrances(plan) });
  },
  who: async ({ timeline, access }, parameters) => {
    const { id, sightings } = await askWho(timeline, parameters);
    await access.requireObject(id);
    return whoAnswer(timeline.present.basis, id, await access.openable(sightings));
  },
  bundle: async ({ timeline, access, hiddenTexts }, { id, with_redacted: withRedacted }) => {
    await access.requireNamed(id);
    const { bundleOf } = await import('./stream-bundle.js');
    return bundleOf(timeline, id, withRedacted === 'true' ? undefined : hiddenTexts);
  },
  notes: async ({ timeline }, { session, object, ...when }) =>
    notesAnswer((await askNotes(timeline, { session, object, ...moment(when) })).notes),
  query: async ({ timeline, access }, { query, session, limit, timeout, args, storage, ...when }) => {
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
  verify: async ({ timeline }, { session, timeout }, signal) => {
    const { askVerify } = await import('../history/verify/verify-session.js');
    return verifyAnswer(await askVerify(timeline.store, session, { signal, timeoutMs: milliseconds(timeout) }));
  },
  reportList: async ({ timeline }, { session, limit, assemble }) => {
    const [{ reportList }, { countHere }] = await counting();
    const asked = { reference: session, limit, assemble: assemble === 'true', count: countHere };
    return reportListAnswer(await reportList(timeline, asked));
  },
  reportDetail: async ({ timeline }, { session, ...when }) => {
    const [{ reportDetail }, { countHere }] = await counting();
    return reportDetailAnswer(
      await reportDetail(timeline, { reference: session, text: contextMoment(when), count: countHere }),
    );
  },
};
