import pLimit from 'p-limit';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { IndexClosed, IndexDamage } from '../../text-index/index-damage.js';
import type { TextIndex } from '../../text-index/text-index.js';
import { defined } from '../../values/defined.js';
import { askOnce } from '../../values/promises.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import { storedCallName } from '../rebuild/call-names.js';
import type { CountedFall } from '../rebuild/counted-fall.js';
import { requireSession } from '../rebuild/find-session.js';
import { askedMoment, type MomentText, parseReference, type When } from '../rebuild/moment.js';
import type { Timeline } from '../rebuild/timeline.js';
import { candidateTexts } from './candidate-texts.js';
import type { CallRange, Exposure } from './exposure.js';
import { type FoundText, linesOf } from './found-lines.js';
import { type ComparedTexts, IndexedPlaces, type OpenScopes } from './indexed-search.js';
import type { SearchedKind } from './kinds.js';
import { everyPlace, mergedPlaces, type PlaceFilter, pathOf, type SearchedPlace, textsOf } from './searched-texts.js';
import { SessionScope } from './session-scope.js';
import { pathFilter, type TextPattern, textPattern } from './text-pattern.js';

/** A session with the contexts that had a text. */
export interface SeenIn extends Exposure {
  readonly session: SessionId;
  /** Calls at which the provider counted fewer tokens, while the transcript still has the text. */
  readonly falls: readonly CountedFall[];
}

/** The description of a searched text. */
export interface SearchedText {
  readonly kind: SearchedKind;
  /** Role of a message, tool of a call, or path of a file. */
  readonly name: string;
  /** The session whose paths and contexts the answer uses. */
  readonly session: SessionId;
  readonly object?: ObjectId;
  /** For a call, whether its arguments or its output matched. */
  readonly part?: 'content' | 'arguments';
  /** The step of a message or a call. */
  readonly step?: number;
  readonly turn?: number;
  /** Beginning of its valid time, and the transaction that recorded it. */
  readonly at: Date;
  readonly txId?: number;
  readonly version?: { readonly number: number; readonly validTime: Date; readonly txId: number };
  /** The contexts of `session` that had the text in full. */
  readonly whole: readonly CallRange[];
  readonly inPart: readonly CallRange[];
  readonly asLine: readonly CallRange[];
  /** The contexts of each session that has the text, for at most eight sessions. */
  readonly seen: readonly SeenIn[];
}

/** A matching text. */
export interface SearchHit extends SearchedText, FoundText {}

/** The result of a search. */
export interface SearchAnswer {
  /** The searched session. Absent if every session was searched. */
  readonly session?: SessionId;
  readonly basis: Basis;
  /** The matching texts, in the order of the search. */
  readonly hits: readonly SearchHit[];
  /** Number of texts searched. */
  readonly texts: number;
  /** Number of UTF-16 units searched. */
  readonly chars: number;
  /** Number of matching texts among those searched. `hits` lists at most the limit of them. */
  readonly matches: number;
  /** Whether more texts exist than were searched or listed. */
  readonly isCut: boolean;
  /** Whether an index proposed the texts to compare. If not, all texts were compared. */
  readonly isIndexed: boolean;
}

/** The scope of a search. */
export interface SearchScope extends MomentText {
  /** The session to search. Default: every session. */
  readonly session?: string | undefined;
  readonly kind?: SearchedKind | undefined;
  /** A path, a folder or a glob of files. */
  readonly path?: string | undefined;
  /** Leaves out the calls of a tool. */
  readonly exceptTool?: string | undefined;
  /** Returns the sessions that the caller may see. Default: all. */
  readonly visible?: ((sessions: readonly SessionId[]) => Promise<readonly SessionId[]>) | undefined;
}

/** A search. */
export interface AskedSearch extends SearchScope {
  /** A text, or an expression as `/…/`. */
  readonly pattern: string;
  readonly limit?: number | undefined;
  /** Number of lines shown before and after a match. */
  readonly around?: number | undefined;
  readonly order?: SearchOrder | undefined;
  /** Whether to search all texts for `matches`, even if more match than are listed. */
  readonly countsAll?: boolean | undefined;
}

/** The order of matches. `first`: the oldest text first. Default: the newest. */
export type SearchOrder = 'newest' | 'first';

const LISTED = 100;
/** Maximum UTF-16 units of one search. */
const MOST_CHARS = 100_000_000;
/** Number of texts that are in memory at a time. */
const BATCH = 64;
/** Number of sessions that are read concurrently. */
const SESSIONS_AT_ONCE = 4;
/** Maximum number of sessions whose contexts a match reports. */
const MOST_SEEN = 8;

/** The searched places and their basis. */
export interface SearchedPlaces {
  readonly session: SessionId | undefined;
  readonly basis: Basis;
  /** Newest first. */
  readonly places: readonly SearchedPlace[];
}

/** The moment and the scope of a search, without its texts. */
interface Scope {
  readonly session: SessionId | undefined;
  readonly when: When;
  readonly filter: PlaceFilter;
}

async function scopeOf(timeline: Timeline, scope: SearchScope): Promise<Scope> {
  const { session: reference, kind, path, exceptTool, visible: _visible, ...text } = scope;
  const { name, moment } = reference === undefined ? {} : parseReference(reference);
  const session = name === undefined ? undefined : await requireSession(timeline.present, name);
  const filter = { kind, exceptTool, path: path === undefined ? undefined : pathFilter(path) };
  return { session, when: askedMoment(text, moment), filter };
}

async function scopesOf(
  timeline: Timeline,
  when: When,
  { session, visible }: { readonly session: SessionId | undefined; readonly visible?: SearchScope['visible'] },
): Promise<readonly SessionScope[]> {
  if (session !== undefined) return [await SessionScope.open(timeline, session, { when })];
  const { snapshot } = await timeline.find(when, undefined);
  const all = (await snapshot.sessions()).map(({ id }) => id);
  const shown = [...(visible === undefined ? all : await visible(all))].sort();
  const at = { when, shared: new Map() };
  return pLimit(SESSIONS_AT_ONCE).map(shown, (id) => SessionScope.open(timeline, id, at));
}

/**
 * Finds the texts in the scope of a search: every message and every version known at the moment.
 *
 * @throws {HistoryError} `unknown-session`, `malformed-moment`, `which-session`
 */
export async function searchedPlaces(timeline: Timeline, scope: SearchScope): Promise<SearchedPlaces> {
  const { session, when, filter } = await scopeOf(timeline, scope);
  const scopes = await scopesOf(timeline, when, { session, visible: scope.visible });
  const found = await pLimit(SESSIONS_AT_ONCE).map(scopes, (one) => everyPlace(one, filter));
  const basis = scopes[0]?.basis ?? timeline.present.basis;
  return { session, basis, places: mergedPlaces(found.flat()) };
}

/**
 * Returns a source of the sessions of a search. Opens each session once, when it is first needed.
 */
function openScopes(timeline: Timeline, { session, when }: Scope, visible: SearchScope['visible']): OpenScopes {
  const opened = new Map<SessionId, Promise<SessionScope | undefined>>();
  const at = { when, shared: new Map() };
  const open = async (id: SessionId): Promise<SessionScope | undefined> => {
    if (visible !== undefined && session === undefined && !(await visible([id])).includes(id)) return undefined;
    const scope = await SessionScope.open(timeline, id, at);
    const [head, isArriving] = await Promise.all([
      scope.snapshot.sessionHead(id),
      scope.snapshot.documents.isArriving(id),
    ]);
    return head === undefined || isArriving ? undefined : scope;
  };
  return {
    session,
    open: async (ids) =>
      (await Promise.all(ids.map((id) => askOnce(opened, id, () => open(id))))).filter((scope) => scope !== undefined),
  };
}

const callNameOf = (document: StoredDocument | undefined, { paths }: SessionScope): string | undefined =>
  document?.type === 'toolcall' ? storedCallName(document, paths.plainCalls) : undefined;

/** Describes a place, with the contexts that had its text. */
export async function describePlace(place: SearchedPlace): Promise<SearchedText> {
  const [scope] = place.scopes;
  if (scope === undefined) throw new TypeError('a searched place has no session');
  const { kind, at } = place;
  const exposure = (one: SessionScope): Promise<Exposure> =>
    place.object === undefined ? one.messageExposure(place.step.seq) : one.versionExposure(place.object, place.head);
  const seen = await Promise.all(
    place.scopes.slice(0, MOST_SEEN).map(async (one) => {
      const [shown, all] = await Promise.all([exposure(one), one.falls()]);
      const ranges = [...shown.whole, ...shown.inPart];
      const falls = all.filter(({ step }) => ranges.some(({ from, to }) => step > from && step <= to));
      return { session: one.session, ...shown, falls };
    }),
  );
  const { session } = scope;
  const { whole = [], inPart = [], asLine = [] } = seen[0] ?? {};
  const common = { kind, session, at: new Date(at), whole, inPart, asLine, seen };
  if (place.object === undefined) {
    const { step } = place;
    const times = (await scope.snapshot.stepTimes(session, [step.seq])).get(step.seq);
    const name = step.message?.role ?? 'message';
    return { ...common, name, step: step.seq, turn: step.turn, ...defined({ txId: times?.txId }) };
  }
  const { object, head, part } = place;
  const { number, validTime, txId, document } = head;
  const name = pathOf(head, scope) ?? callNameOf(document, scope) ?? String(document?.type);
  const step = kind === 'toolcall' ? (await scope.steps()).find(({ call }) => call?.id === object) : undefined;
  return {
    ...common,
    name,
    object,
    txId,
    ...defined({ step: step?.seq, turn: step?.turn, part: kind === 'toolcall' ? part : undefined }),
    version: { number, validTime, txId },
  };
}

/** A place and its text. */
interface ReadPlace {
  readonly place: SearchedPlace;
  readonly text: string;
}

/** Yields the texts of places in batches. Versions without text are left out. */
export async function* readPlaces(places: readonly SearchedPlace[]): AsyncGenerator<readonly ReadPlace[]> {
  for (let i = 0; i < places.length; i += BATCH) {
    const batch = places.slice(i, i + BATCH);
    // Texts are stored under their hashes, so any session's snapshot has them.
    const [scope] = batch[0]?.scopes ?? [];
    if (scope === undefined) return;
    const texts = await textsOf(scope.snapshot, batch);
    yield batch.flatMap((place, j) => {
      const text = texts[j];
      return text === undefined ? [] : [{ place, text }];
    });
  }
}

/** Compares texts and returns the matches. `others` are known not to match. */
async function matching(
  batches: AsyncIterable<readonly ReadPlace[] | { readonly others: readonly string[] }>,
  { ranges }: TextPattern,
  {
    limit,
    around,
    countsAll,
  }: { readonly limit: number; readonly around: number; readonly countsAll?: boolean | undefined },
): Promise<Pick<SearchAnswer, 'hits' | 'texts' | 'chars' | 'matches' | 'isCut'>> {
  const found: { readonly place: SearchedPlace; readonly lines: FoundText }[] = [];
  let [texts, chars, matches, isCut] = [0, 0, 0, false];
  for await (const batch of batches) {
    const others = 'others' in batch ? batch.others : [];
    const places = 'others' in batch ? [] : batch;
    const isFull = (matches > limit && countsAll !== true) || chars >= MOST_CHARS;
    isCut = isFull && places.length + others.length > 0;
    if (isCut) break;
    texts += others.length;
    chars += others.reduce((sum, { length }) => sum + length, 0);
    for (const { place, text } of places) {
      texts += 1;
      chars += text.length;
      const lines = linesOf(text, ranges(text), around);
      if (lines.count === 0) continue;
      matches += 1;
      if (matches <= limit) found.push({ place, lines });
    }
  }
  // Texts are in the order of their places, so the first matches are those within the limit.
  const hits = await Promise.all(
    found.map(async ({ place, lines }) => ({ ...(await describePlace(place)), ...lines })),
  );
  return { hits, texts, chars, matches, isCut: isCut || matches > limit };
}

const inOrder = (places: readonly SearchedPlace[], order: SearchOrder): readonly SearchedPlace[] =>
  order === 'first' ? places.toReversed() : places;

/** Yields the texts that an index proposes. Undefined if the index cannot look up the pattern. */
function proposed(
  places: IndexedPlaces,
  { required, ranges }: TextPattern,
  {
    order,
    limit,
    present,
  }: { readonly order: SearchOrder; readonly limit: number; readonly present: Timeline['present'] },
): Parameters<typeof matching>[0] | undefined {
  const candidates = places.candidates(required, order);
  if (candidates === undefined) return undefined;
  const compared: ComparedTexts = {
    read: (lines) => candidateTexts(present, lines),
    matches: (text) => ranges(text)[Symbol.iterator]().next().done !== true,
  };
  return (async function* () {
    // One more than the limit shows whether more texts exist.
    for await (const { places: found, others } of places.places(candidates, compared, limit + 1)) {
      yield* readPlaces(inOrder(found, order));
      yield { others };
    }
  })();
}

/** Searches all texts in a scope for a pattern, without an index. */
export async function searchTexts(
  timeline: Timeline,
  wanted: TextPattern,
  { order = 'newest', limit = LISTED, around = 0, countsAll, ...scope }: Omit<AskedSearch, 'pattern'>,
): Promise<SearchAnswer> {
  const { session, basis, places } = await searchedPlaces(timeline, scope);
  const answer = await matching(readPlaces(inOrder(places, order)), wanted, { limit, around, countsAll });
  return { ...defined({ session }), basis, ...answer, isIndexed: false };
}

/**
 * Searches every message and every version that the database knew at a moment. Each match lists the
 * contexts that had its text. An index that covers the moment proposes the texts to compare.
 * Without such an index, all texts are compared.
 *
 * @throws {HistoryError} `malformed-pattern`, `unknown-session`, `malformed-moment`,
 * `which-session`
 */
export async function askSearch(
  timeline: Timeline,
  { pattern, limit = LISTED, around = 0, order = 'newest', ...scope }: AskedSearch,
  index?: TextIndex,
): Promise<SearchAnswer> {
  const wanted = textPattern(pattern);
  if (index !== undefined) {
    try {
      const found = await scopeOf(timeline, scope);
      const { basis } = await timeline.find(found.when, found.session);
      const places = new IndexedPlaces(index, openScopes(timeline, found, scope.visible), found.filter);
      const texts = proposed(places, wanted, { order, limit, present: timeline.present });
      if (texts !== undefined) {
        const answer = await matching(texts, wanted, { limit, around });
        return { ...defined({ session: found.session }), basis, ...answer, isIndexed: true };
      }
    } catch (error) {
      if (!(error instanceof IndexDamage || error instanceof IndexClosed)) throw error;
      // The next search builds the index again; this one reads all texts.
      if (error instanceof IndexDamage) await index.discard();
    }
  }
  return searchTexts(timeline, wanted, { ...scope, limit, around, order });
}
