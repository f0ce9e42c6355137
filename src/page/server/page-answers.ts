import pLimit from 'p-limit';
import type { DisplayPaths } from '../../assembly/metadata.js';
import { type CollectedSession, objectsOf } from '../../bundle/collect-session.js';
import type { ObjectMask } from '../../bundle/masked-names.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import type { When } from '../../history/rebuild/moment.js';
import { type PastContext, PastContexts, pastContextOf } from '../../history/rebuild/past-context.js';
import { AssemblyRebuilder } from '../../history/rebuild/rebuild-assembly.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { describePlace, readPlaces, type SearchHit, searchedPlaces } from '../../history/search/search.js';
import { type ObjectId, type SessionId, sessionId, systemPromptObjectId } from '../../objects/ids.js';
import { askTurns } from '../../review/ask/ask.js';
import { withLedger } from '../../review/ask/context-report.js';
import { loggedVersions } from '../../review/ask/object-log.js';
import { viewsOf } from '../../review/ask/object-view.js';
import { openRequests, type Request } from '../../review/ask/request-reader.js';
import { askNotes } from '../../review/ask/review-notes.js';
import { SightedSessions, seenIn } from '../../review/ask/seen-by.js';
import { countHere } from '../../review/ask/token-count.js';
import { failedEdits } from '../../review/authors/failed-edits.js';
import {
  logAnswer,
  notesAnswer,
  pastContextAnswer,
  reportDetailAnswer,
  searchAnswer,
  showAnswer,
  whoAnswer,
} from '../../review/http/review-answers.js';
import { verifyAssembly } from '../../review/verify/verify-assembly.js';
import { changesTo } from './call-changes.js';
import { conversation } from './conversation.js';
import { fileAuthors, staleCalls } from './file-authors.js';
import type { AnswerParameters, PageScope } from './page-format.js';
import { changesAnswer, requestAnswer, stripAnswer } from './page-questions.js';
import { requestView } from './request-view.js';
import { sessionMoney } from './session-money.js';
import { sessionStrip } from './session-strip.js';

/** An answer of `/v1` for a page. */
export interface PageAnswer {
  readonly path: string;
  readonly parameters: AnswerParameters;
  readonly body: object;
}

/** The content of a page: a session up to a step, read at that step's transaction. */
export interface PagedSession {
  readonly timeline: Timeline;
  readonly collected: CollectedSession;
  /** The last step, unless the page reaches the session's end. */
  readonly upto: number | undefined;
  /** The mask that will be applied to the answers. Calls are then named only by their tools. */
  readonly mask?: ObjectMask | undefined;
  readonly onProgress?: ((what: 'calls' | 'objects', done: number, total: number) => void) | undefined;
}

/** The answers of a page, and their common basis. */
export interface PageAnswers {
  readonly scope: PageScope;
  readonly objects: number;
  /** The first words of the user; empty if there are none. */
  readonly title: string;
  answers(): AsyncGenerator<PageAnswer>;
}

/** A session whose answers are produced in sequence, with the data that the answers share. */
interface WalkedSession extends PagedSession {
  readonly sighted: SightedSessions;
}

/** Number of objects queried in parallel. */
const AT_ONCE = 8;
/** Number of versions whose texts are in memory at a time. */
const VERSIONS_AT_ONCE = 16;
/** Maximum versions of one object; the page requests no more. */
const MOST_VERSIONS = 1_000;

/**
 * Returns the objects of a session, with the valid times of their versions that belong to the
 * session.
 */
async function objectsIn({
  timeline,
  collected,
  upto,
}: PagedSession): Promise<ReadonlyMap<ObjectId, ReadonlySet<number>>> {
  const { session, sessions, transactions } = collected;
  const named = objectsOf((await timeline.steps(session)).slice(0, upto));
  const prompts = new Set<string>(sessions.map(systemPromptObjectId));
  const found = new Map<ObjectId, Set<number>>();
  for (const { id, validTime } of transactions.flatMap(({ places }) => places)) {
    if (!named.has(id) && !prompts.has(id)) continue;
    const times = found.get(id as ObjectId) ?? new Set();
    found.set(id as ObjectId, times.add(validTime.getTime()));
  }
  return found;
}

/** Returns the context of a moment. Undefined if its request is not known. */
function seenContext(contexts: PastContexts, session: SessionId, when: When): Promise<PastContext | undefined> {
  return contexts.at(session, when).catch((error: unknown) => {
    if (error instanceof HistoryError && error.code === 'not-seen') return undefined;
    throw error;
  });
}

/** Yields requests, contexts, ledgers and changes of each call. */
async function* callAnswers(
  { timeline, onProgress }: PagedSession,
  { session, calls }: PageScope,
): AsyncGenerator<PageAnswer> {
  const reader = await openRequests(timeline, session);
  const contexts = new PastContexts(timeline, timeline.rebuilder);
  const { requests } = reader;
  let before: Request | undefined;
  for (const [done, step] of calls.entries()) {
    onProgress?.('calls', done, calls.length);
    const parameters = { session, at: `step:${step}` };
    const at = requests.findLastIndex((one) => one.step <= step);
    const [of, last] = [requests[at], requests[at - 1]];
    const request = of === undefined ? undefined : await reader.request(of, countHere);
    const when = { moment: { kind: 'step', seq: step } } as const;
    const context =
      request?.rebuilt === undefined
        ? await seenContext(contexts, session as SessionId, when)
        : pastContextOf(request.rebuilt);
    if (context === undefined) continue;
    // Answers that define a hash come before answers that repeat it.
    yield { path: '/v1/context', parameters, body: pastContextAnswer(context) };
    if (request !== undefined) {
      const { proof } = request.of;
      const unequal =
        request.side.matches || proof === undefined
          ? undefined
          : await verifyAssembly(
              { rebuilder: new AssemblyRebuilder(timeline.contexts, timeline.present), present: timeline.present },
              proof,
            );
      yield { path: '/v1/request', parameters, body: requestAnswer(await requestView(reader, request), unequal) };
      if (last !== undefined) {
        const from = before?.of === last ? before : await reader.request(last, countHere);
        const changes = await changesTo(timeline, reader, { from, to: request });
        yield { path: '/v1/changes', parameters: { session, range: `..step:${step}` }, body: changesAnswer(changes) };
      }
    }
    yield { path: '/v1/report/detail', parameters, body: reportDetailAnswer(await withLedger(context, countHere)) };
    before = request;
  }
}

/** Yields the session's versions of some objects, and the sightings of each. */
async function* objectAnswers(
  { timeline, collected, sighted }: WalkedSession,
  objects: readonly (readonly [ObjectId, ReadonlySet<number>])[],
): AsyncGenerator<PageAnswer> {
  const { present } = timeline;
  const read = await pLimit(AT_ONCE).map(objects, async ([id, times]) => {
    const history = await present.historyOfHeads(id);
    return {
      id,
      history,
      ours: history.slice(-MOST_VERSIONS).filter(({ validTime }) => times.has(validTime.getTime())),
    };
  });
  const placed = read.flatMap(({ history, ours }) =>
    ours.flatMap(({ document, ...head }) => (document === undefined ? [] : [{ history, head: { ...head, document } }])),
  );
  for (let i = 0; i < placed.length; i += VERSIONS_AT_ONCE) {
    for (const view of await viewsOf(timeline, placed.slice(i, i + VERSIONS_AT_ONCE))) {
      const { validTime, txId } = view.times;
      const parameters = { object: view.version['xt/id'], valid_time: validTime.toISOString(), tx: txId };
      yield { path: '/v1/show', parameters, body: showAnswer(view, await view.text(), timeline.paths) };
    }
  }
  for (const { id, history, ours } of read) {
    const versions = await loggedVersions(present, ours);
    yield { path: '/v1/log', parameters: { object: id }, body: logAnswer(present.basis, { versions }) };
    if (id.startsWith('system_prompt:')) continue;
    const sightings = await seenIn(sighted, { object: id, versions: history }, collected.sessions);
    yield {
      path: '/v1/who',
      parameters: { object: id },
      body: whoAnswer(present.basis, id, { sightings, damaged: [] }),
    };
  }
}

/** Returns the corpus of a search: each text with its metadata at each place. */
async function corpusAnswer(
  { timeline }: PagedSession,
  {
    session,
    at,
    held,
  }: {
    readonly session: string;
    readonly at: string | undefined;
    readonly held: ReadonlyMap<ObjectId, ReadonlySet<number>>;
  },
): Promise<object> {
  const { basis, places } = await searchedPlaces(timeline, { session, at });
  const ours = places.filter((place) => place.object === undefined || held.get(place.object)?.has(place.at) === true);
  const hits: SearchHit[] = [];
  const texts: string[] = [];
  for await (const batch of readPlaces(ours)) {
    for (const { place, text } of batch) {
      const { seen, ...hit } = await describePlace(place);
      hits.push({ ...hit, seen: seen.filter((one) => one.session === hit.session), count: 1, lines: [] });
      texts.push(text);
    }
  }
  const id = sessionId(session);
  return {
    found: searchAnswer({
      session: id,
      basis,
      hits,
      texts: hits.length,
      chars: 0,
      matches: hits.length,
      isCut: false,
      isIndexed: false,
    }),
    texts,
  };
}

/**
 * Produces the answers that the review page requests for one session, with the functions of the
 * server. They contain no data beyond the session: no later version of its files and no other
 * session.
 * @throws {HistoryError}
 * @throws {StoreError}
 * @throws {XtdbError}
 */
export async function pageAnswers(paged: PagedSession): Promise<PageAnswers> {
  const { collected, upto, onProgress } = paged;
  const last = Math.max(0, ...collected.transactions.map(({ here }) => here));
  const known = await (paged.timeline.upTo(last) ?? paged.timeline).of(collected.session);
  const { paths } = known;
  const plain = { display: (source: Parameters<typeof paths.display>[0]) => paths.display(source), plainCalls: true };
  const timeline = paged.mask !== undefined ? known.shownBy(plain as DisplayPaths) : known;
  const own = { ...paged, timeline, sighted: new SightedSessions(timeline) };
  const { session } = collected;
  const at = upto === undefined ? undefined : `step:${upto}`;
  const strip = stripAnswer(await sessionStrip(timeline, session, { at }));
  const scope: PageScope = { session, tx: strip.basis.tx_id, calls: [...new Set(strip.calls.map(({ step }) => step))] };
  const held = await objectsIn(own);
  const lastStep = upto ?? Number.POSITIVE_INFINITY;
  const talk = await conversation(timeline, { session, limit: Number.POSITIVE_INFINITY }, paged.mask);
  async function* answers(): AsyncGenerator<PageAnswer> {
    const parameters = { session };
    yield* callAnswers(own, scope);
    const objects = [...held];
    for (const one of collected.sessions) await own.sighted.read(one);
    for (let i = 0; i < objects.length; i += AT_ONCE) {
      onProgress?.('objects', i, objects.length);
      yield* objectAnswers(own, objects.slice(i, i + AT_ONCE));
    }
    // The following answers repeat hashes of the earlier ones.
    yield { path: '/v1/strip', parameters, body: strip };
    yield { path: '/v1/money', parameters, body: await sessionMoney(timeline, session, { upto: lastStep }) };
    const stale = await staleCalls(timeline, session);
    yield {
      path: '/v1/stale',
      parameters,
      body: { ...stale, calls: stale.calls.filter(({ step }) => step <= lastStep) },
    };
    const files = new Set(strip.bands.filter(({ type }) => type === 'file').map(({ id }) => id));
    for (const [id, times] of objects) {
      if (!files.has(id)) continue;
      const authors = await fileAuthors(timeline, session, id);
      yield {
        path: '/v1/authors',
        parameters: { ...parameters, object: id },
        body: {
          ...authors,
          versions: authors.versions.filter(({ valid_time: at }) => times.has(Date.parse(at))),
          calls: authors.calls.filter(({ step }) => step <= lastStep),
        },
      };
    }
    const rows = talk.rows.filter(({ step }) => step <= lastStep);
    yield { path: '/v1/conversation', parameters, body: { ...talk, rows, after: null } };
    const { point, turns } = await askTurns(timeline, { session, at });
    const sights = await failedEdits(timeline, turns);
    yield { path: '/v1/log', parameters, body: logAnswer(point.basis, { turns, sights }) };
    yield { path: '/v1/notes', parameters, body: notesAnswer((await askNotes(timeline, { session, at })).notes) };
    yield { path: '/v1/search', parameters, body: await corpusAnswer(own, { session, at, held }) };
  }
  return { scope, objects: held.size, title: talk.title, answers };
}
