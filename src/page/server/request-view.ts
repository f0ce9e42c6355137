import pLimit from 'p-limit';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import { askedMoment, type Moment, type MomentText, NOW, parseReference } from '../../history/rebuild/moment.js';
import type { RebuiltAssembly } from '../../history/rebuild/rebuilt-assembly.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { TOKENIZER } from '../../history/rebuild/tokenizer.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { type RequestItem, requestItems } from '../../review/ask/request-items.js';
import { knownPieces } from '../../review/ask/request-pieces.js';
import {
  openRequests,
  type Request,
  type RequestReader,
  type RequestSide,
  recordAt,
} from '../../review/ask/request-reader.js';
import { countHere, countTokens } from '../../review/ask/token-count.js';
import type { VersionTimes } from '../../store/queries.js';
import { defined } from '../../values/defined.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import { describe } from './described-objects.js';

/** The version of an object that a request shows. */
export interface ShownVersion {
  /** From 1, in the order of valid time, among the versions known at its basis. */
  readonly number: number;
  readonly validTime: Date;
  readonly txId: number;
}

/** A named part of a request. */
export interface ViewedItem extends RequestItem {
  /** The path or tool of an object, the role of a message, or the section. */
  readonly name: string;
  readonly type?: ObjectMetadata['type'];
  readonly version?: ShownVersion;
  readonly tokens: number;
}

/** A request as sent, part by part. Without a record, what is known of it. */
export interface RequestView {
  readonly session: SessionId;
  readonly tokenizer: typeof TOKENIZER;
  /** Undefined without a record. */
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
  readonly proof?: AssemblyProof;
}

/** A view of a request with a record. */
export type RecordedView = RequestView & Required<Pick<RequestView, 'request' | 'proof'>>;

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
 * Returns the last request of a session up to a moment, part by part. Our parts are byte for byte
 * as sent; the harness's own messages come from their recorded texts.
 *
 * Without a record of the request it is what is known of it.
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
  return requestView(reader, await reader.request(await recordAt(timeline, asked, reader), countHere));
}

/** A place of a session whose request has no record. */
interface UnseenPlace {
  readonly step: number;
  readonly why: string;
  readonly basis: RequestView['basis'];
}

const UNSEEN = {
  bypassed: "the harness sent its own list instead of this session's context, and Palimpsest did not see it",
  imported: "the recording has the messages and calls, but not the agent's requests",
  early: 'no request up to here was recorded',
  none: 'the agent builds its requests itself, so Palimpsest did not see them',
} as const;

/** Returns the place of a moment whose request has no record; undefined if it has one. */
export async function unseenAt(
  timeline: Timeline,
  moment: Moment,
  { session, records, steps }: Pick<RequestReader, 'session' | 'records' | 'steps'>,
): Promise<UnseenPlace | undefined> {
  if (moment.kind === 'tx') return undefined;
  const { place, basis } = await timeline.find({ moment }, session);
  const at = basis.validTime.getTime();
  const step = place?.seq ?? steps.findLast((one) => moment.kind === 'now' || one.at <= at)?.seq ?? 0;
  const isBypassed = steps.some(({ seq, event }) => event?.kind === 'bypassed' && seq - 1 === step);
  if (!isBypassed && (records[0]?.step ?? Number.POSITIVE_INFINITY) <= step) return undefined;
  const isImported = records.length === 0 && (await timeline.isImported(session));
  const why = isBypassed ? 'bypassed' : isImported ? 'imported' : records.length > 0 ? 'early' : 'none';
  return { step, why: UNSEEN[why], basis };
}

/** Returns the known parts of a request without a record: the messages and calls up to it. */
async function unrecordedView(reader: RequestReader, { step, why, basis }: UnseenPlace): Promise<RequestView> {
  const { session, records } = reader;
  const steps = reader.steps.filter(({ seq }) => seq <= step);
  await reader.read(steps);
  const items = requestItems(knownPieces(steps, reader.calls), []);
  const nameOf = await itemNames(reader, items);
  return {
    session,
    why,
    basis,
    tokenizer: TOKENIZER,
    total: records.length,
    number: records.filter((record) => record.step <= step).length,
    ...defined({
      previous: records.findLast((record) => record.step < step)?.step,
      next: records.find((record) => record.step > step)?.step,
    }),
    items: items.map((item) => ({ ...item, name: nameOf(item), tokens: countTokens(item.text) })),
  };
}

/** Names the items of a request: a path, a call, the role of a message, or the section. */
async function itemNames(
  { timeline, steps }: RequestReader,
  items: readonly RequestItem[],
): Promise<(item: RequestItem) => string> {
  const described = await describe(timeline, [...new Set(items.flatMap(({ object }) => object ?? []))]);
  const roles = new Map(steps.map(({ seq, message }) => [seq, message?.role]));
  return ({ object, step, section }) => {
    if (object !== undefined) return described.get(object)?.name ?? object;
    return (step === undefined ? undefined : roles.get(step)) ?? section;
  };
}

/** Returns the parts of a rebuilt request. */
export async function requestView(reader: RequestReader, { rebuilt, pieces, side }: Request): Promise<RecordedView> {
  const { session, records } = reader;
  const { proof } = rebuilt;
  const { pool } = rebuilt.input;
  const metadata = new Map(pool.map((one) => [one.id, one]));
  const items = requestItems(pieces, pool);
  const shown = new Set(items.flatMap(({ object, form }) => (object !== undefined && form !== 'line' ? [object] : [])));
  const files = [...shown].filter((id) => metadata.get(id)?.type === 'file');
  const versions = await versionsAt(reader, files, rebuilt.basis);
  const nameOf = await itemNames(reader, items);
  const at = records.indexOf(proof);
  return {
    session,
    proof,
    tokenizer: TOKENIZER,
    request: side,
    basis: rebuilt.basis,
    total: records.length,
    number: at + 1,
    ...defined({ previous: records[at - 1]?.step, next: records[at + 1]?.step }),
    items: items.map((item) => {
      const known = item.object === undefined ? undefined : metadata.get(item.object);
      const version = item.object === undefined ? undefined : versions.get(item.object);
      return {
        ...item,
        name: nameOf(item),
        tokens: countTokens(item.text),
        ...defined({ type: known?.type, version }),
      };
    }),
  };
}
