import pLimit from 'p-limit';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import { modelCallsOf } from '../../history/rebuild/model-calls.js';
import { askedMoment, type Moment, type MomentText, NOW, parseReference } from '../../history/rebuild/moment.js';
import { NOT_TOLD, reasoningNote } from '../../history/rebuild/not-told.js';
import type { RebuiltAssembly } from '../../history/rebuild/rebuilt-assembly.js';
import type { SessionRequest } from '../../history/rebuild/session-requests.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { TOKENIZER } from '../../history/rebuild/tokenizer.js';
import { countedPrompt } from '../../history/rebuild/transcript-parts.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { describe } from '../../review/ask/described-objects.js';
import { grouped } from '../../review/ask/prefix-sentence.js';
import { type RequestItem, requestItems } from '../../review/ask/request-items.js';
import { knownPieces, shownTokens } from '../../review/ask/request-pieces.js';
import {
  openRequests,
  type Request,
  type RequestReader,
  type RequestSide,
  requestAt,
} from '../../review/ask/request-reader.js';
import { countHere, countTokens } from '../../review/ask/token-count.js';
import type { EditSight } from '../../review/authors/edit-sight.js';
import { editSights } from '../../review/authors/edit-sights.js';
import { readReasoning } from '../../review/rows/import-records.js';
import type { VersionTimes } from '../../store/queries.js';
import { defined } from '../../values/defined.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import { SUMMARY } from './compaction.js';

/** The version of an object that a request shows. */
export interface ShownVersion {
  /** Number from 1, in the order of valid time, among the versions at the request's basis. */
  readonly number: number;
  readonly validTime: Date;
  readonly txId: number;
}

/** A named part of a request. */
export interface ViewedItem extends Omit<RequestItem, 'section'> {
  /** `untold`: text that the provider counted and the transcript lacks. */
  readonly section: RequestItem['section'] | 'untold';
  /** The path or tool of an object, the role of a message, or the section. */
  readonly name: string;
  readonly type?: ObjectMetadata['type'];
  readonly version?: ShownVersion;
  readonly tokens: number;
}

/** A request as sent, part by part. Without a record, it has only the known parts. */
export interface RequestView {
  readonly session: SessionId;
  readonly tokenizer: typeof TOKENIZER;
  /** The size and origin of the request. Undefined without a record. */
  readonly request?: RequestSide;
  /** Why there is no record. */
  readonly why?: string;
  readonly basis: Pick<Basis, 'txId'> & Partial<Pick<Basis, 'validTime'>>;
  /** The number of the session's requests, and the position of this one, from 1. */
  readonly total: number;
  readonly number: number;
  /** The steps of the requests before and after it. */
  readonly previous?: number;
  readonly next?: number;
  readonly items: readonly ViewedItem[];
  /** The calls of its answer that changed files, or tried to, with what the request had of them. */
  readonly edits: readonly { readonly step: number; readonly name: string; readonly sight: EditSight }[];
  readonly proof?: AssemblyProof;
}

/** A view of a request with a record. */
export type RecordedView = RequestView & Required<Pick<RequestView, 'request'>>;

const AT_ONCE = 8;

/** Returns the versions of some files that a basis shows. */
async function versionsAt(
  reader: RequestReader,
  files: readonly ObjectId[],
  { validTime, txId }: RebuiltAssembly['basis'],
): Promise<ReadonlyMap<ObjectId, ShownVersion>> {
  const isKnown = (version: VersionTimes): boolean => version.txId <= txId && version.validTime <= validTime;
  const found = await pLimit(AT_ONCE).map(files, async (id) => {
    const versions = (await reader.versions(id)).filter(isKnown);
    const last = versions.at(-1);
    return last === undefined
      ? []
      : [[id, { number: versions.length, validTime: last.validTime, txId: last.txId }] as const];
  });
  return new Map(found.flat());
}

/**
 * Returns the last request of a session up to a moment, part by part. The context's parts are byte
 * for byte as sent. The harness's own messages come from their recorded texts. Without a record,
 * only the known parts are returned.
 *
 * @throws {HistoryError} `unknown-session`, `malformed-moment`, `beyond-end`; also the errors of a
 * rebuild
 */
export async function askRequest(timeline: Timeline, reference: string, text: MomentText): Promise<RequestView> {
  const { name, moment } = parseReference(reference);
  const reader = await openRequests(timeline, name);
  const asked = askedMoment(text, moment).moment ?? NOW;
  const unseen = await unseenAt(timeline, asked, reader);
  if (unseen !== undefined) return unrecordedView(reader, unseen);
  return requestView(reader, await reader.request(await requestAt(timeline, asked, reader), countHere));
}

/** A step of a session whose request has no record. */
interface UnseenPlace {
  readonly step: number;
  readonly why: string;
  readonly basis: RequestView['basis'];
}

const UNSEEN = {
  bypassed: "the harness sent its own list instead of this session's context, and Palimpsest did not see it",
  early: 'no request up to here was recorded',
  none: 'the agent builds its requests itself, so Palimpsest did not see them',
} as const;

/** Returns the step of a moment if its request is not known. Undefined if the request is known. */
export async function unseenAt(
  timeline: Timeline,
  moment: Moment,
  { session, requests, steps }: Pick<RequestReader, 'session' | 'requests' | 'steps'>,
): Promise<UnseenPlace | undefined> {
  if (moment.kind === 'tx') return undefined;
  const { place, basis } = await timeline.find({ moment }, session);
  const at = basis.validTime.getTime();
  const step = place?.seq ?? steps.findLast((one) => moment.kind === 'now' || one.at <= at)?.seq ?? 0;
  const isBypassed =
    steps.some(({ seq, event }) => event?.kind === 'bypassed' && seq - 1 === step) &&
    !requests.some((request) => request.step === step && request.proof !== undefined);
  if (!isBypassed && (requests[0]?.step ?? Number.POSITIVE_INFINITY) <= step) return undefined;
  const why = isBypassed ? 'bypassed' : requests.length > 0 ? 'early' : 'none';
  return { step, why: UNSEEN[why], basis };
}

/** Returns the known parts of a request without a record: the messages and calls up to it. */
async function unrecordedView(reader: RequestReader, { step, why, basis }: UnseenPlace): Promise<RequestView> {
  const { session, requests } = reader;
  const steps = reader.steps.filter(({ seq }) => seq <= step);
  await reader.read(steps);
  const items = requestItems(knownPieces(steps, reader.calls), []);
  const nameOf = await itemNames(reader, items);
  return {
    session,
    why,
    basis,
    tokenizer: TOKENIZER,
    total: requests.length,
    number: requests.filter((request) => request.step <= step).length,
    ...defined({
      previous: requests.findLast((request) => request.step < step)?.step,
      next: requests.find((request) => request.step > step)?.step,
    }),
    edits: [],
    items: items.map((item) => ({ ...item, name: nameOf(item), tokens: countTokens(item.text) })),
  };
}

/** Names the items of a request: a path, a call, the role of a message, or the section. */
async function itemNames(
  { timeline, steps }: RequestReader,
  items: readonly RequestItem[],
): Promise<(item: RequestItem) => string> {
  const described = await describe(timeline, [...new Set(items.flatMap(({ object }) => object ?? []))]);
  const roles = new Map(
    steps.map(({ seq, message, event }) => [seq, message?.role ?? (event?.kind === 'compacted' ? SUMMARY : undefined)]),
  );
  return ({ object, step, section }) => {
    if (object !== undefined) return described.get(object)?.name ?? object;
    return (step === undefined ? undefined : roles.get(step)) ?? section;
  };
}

/**
 * Returns an item for the tokens that the provider counted beyond the transcript's parts. Its text
 * says what they may be.
 */
function untoldItem({ size: { tokens }, usage }: RequestSide, reasoning: number): ViewedItem {
  const counted = countedPrompt(usage);
  const lacks = `The transcript does not have ${NOT_TOLD}. ${reasoningNote(reasoning)}`;
  const text =
    counted === undefined
      ? `${lacks} The provider's count of this call is not recorded.`
      : `The provider counted ${grouped(counted)} tokens in this request. The parts above have ${grouped(tokens)} ` +
        `by ${TOKENIZER}. ${lacks} The provider's model may also count the same text differently.`;
  const left = counted === undefined ? 0 : Math.max(0, counted - tokens);
  return { section: 'untold', form: 'plain', text, name: 'not in the transcript', tokens: left };
}

/** Returns the edits of an answer, with what its request had of each file. */
async function editsOf(
  { timeline, session, steps }: RequestReader,
  { call, step: last }: SessionRequest,
): Promise<RequestView['edits']> {
  const made = call ?? modelCallsOf(steps).find(({ step }) => step >= last);
  const sights = await editSights(timeline, session, ({ seq }) => made?.answer.includes(seq) === true);
  return [...sights].flatMap(([step, { name, files }]) => [...files.values()].map((sight) => ({ step, name, sight })));
}

/** Returns the parts of a request. */
export async function requestView(reader: RequestReader, request: Request): Promise<RecordedView> {
  const { session, requests } = reader;
  const { rebuilt, pieces, pool, side, of } = request;
  const metadata = new Map(pool.map((one) => [one.id, one]));
  const items = requestItems(pieces, pool);
  const shown = new Set(items.flatMap(({ object, form }) => (object !== undefined && form !== 'line' ? [object] : [])));
  const files = [...shown].filter((id) => metadata.get(id)?.type === 'file');
  const versions = rebuilt === undefined ? new Map() : await versionsAt(reader, files, rebuilt.basis);
  const nameOf = await itemNames(reader, items);
  const at = requests.indexOf(of);
  const viewed = items.map((item): ViewedItem => {
    const known = item.object === undefined ? undefined : metadata.get(item.object);
    const version = item.object === undefined ? undefined : versions.get(item.object);
    return {
      ...item,
      name: nameOf(item),
      tokens: shownTokens(item, countTokens(item.text)),
      ...defined({ type: known?.type, version }),
    };
  });
  const [edits, reasoning] = await Promise.all([
    editsOf(reader, of),
    rebuilt === undefined ? readReasoning(reader.timeline.present, session) : 0,
  ]);
  return {
    edits,
    session,
    tokenizer: TOKENIZER,
    request: side,
    basis: rebuilt?.basis ?? reader.timeline.present.basis,
    total: requests.length,
    number: at + 1,
    ...defined({ proof: of.proof, previous: requests[at - 1]?.step, next: requests[at + 1]?.step }),
    items: rebuilt === undefined ? [...viewed, untoldItem(side, reasoning)] : viewed,
  };
}
