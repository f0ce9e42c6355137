import pLimit from 'p-limit';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import { askedMoment, type MomentText, parseReference } from '../../history/ask/reference.js';
import { type RequestItem, requestItems } from '../../history/ask/request-items.js';
import {
  openRequests,
  type Request,
  type RequestReader,
  type RequestSide,
  recordAt,
} from '../../history/ask/request-reader.js';
import { countHere, countTokens } from '../../history/ask/token-count.js';
import { TOKENIZER } from '../../history/ask/tokenizer.js';
import { NOW } from '../../history/rebuild/moment.js';
import type { RebuiltAssembly } from '../../history/rebuild/rebuilt-assembly.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { VersionTimes } from '../../store/queries.js';
import { defined } from '../../values/defined.js';

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

/** A request as sent, part by part. */
export interface RequestView {
  readonly session: SessionId;
  readonly tokenizer: typeof TOKENIZER;
  readonly request: RequestSide;
  readonly basis: RebuiltAssembly['basis'];
  /** The number of the session's requests, and the position of this one, from 1. */
  readonly total: number;
  readonly number: number;
  /** The steps of the requests before and after it. */
  readonly previous?: number;
  readonly next?: number;
  readonly items: readonly ViewedItem[];
  readonly proof: AssemblyProof;
}

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
 * @throws {HistoryError} `unknown-session`, `malformed-moment`; `beyond-end` if there was no
 * request; also the errors of a rebuild
 */
export async function askRequest(timeline: Timeline, reference: string, text: MomentText): Promise<RequestView> {
  const { name, moment } = parseReference(reference);
  const reader = await openRequests(timeline, name);
  const proof = await recordAt(timeline, askedMoment(text, moment).moment ?? NOW, reader);
  return requestView(reader, await reader.request(proof, countHere));
}

/** Returns the parts of a rebuilt request. */
export async function requestView(reader: RequestReader, { rebuilt, pieces, side }: Request): Promise<RequestView> {
  const { session, records } = reader;
  const { proof } = rebuilt;
  const { pool } = rebuilt.input;
  const metadata = new Map(pool.map((one) => [one.id, one]));
  const items = requestItems(pieces, pool);
  const shown = new Set(items.flatMap(({ object, form }) => (object !== undefined && form !== 'line' ? [object] : [])));
  const files = [...shown].filter((id) => metadata.get(id)?.type === 'file');
  const versions = await versionsAt(reader, files, rebuilt.basis);
  const steps = new Map(reader.steps.map((step) => [step.seq, step]));
  const nameOf = ({ object, step, section }: RequestItem): string => {
    const known = object === undefined ? undefined : metadata.get(object);
    if (known !== undefined) return known.type === 'file' ? known.displayPath : known.tool;
    if (object !== undefined) return reader.calls.get(object)?.head.split(' ', 1)[0] ?? object;
    return (step === undefined ? undefined : steps.get(step)?.message?.role) ?? section;
  };
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
