import { type ContextKind, kindOfRecord } from '../../history/rebuild/context-kind.js';
import { isOfEpoch } from '../../history/rebuild/epoch-chain.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import type { Moment } from '../../history/rebuild/moment.js';
import type { AssemblyRebuilder } from '../../history/rebuild/rebuild-assembly.js';
import type { RebuiltAssembly } from '../../history/rebuild/rebuilt-assembly.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { CountTexts } from '../../history/rebuild/tokenizer.js';
import type { AssemblyProof, BorderReason, Delivery } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import type { VersionTimes } from '../../store/queries.js';
import { defined } from '../../values/defined.js';
import { askOnce } from '../../values/promises.js';
import { type CallTexts, callTexts, listSteps, type RequestPiece, requestPieces } from './request-pieces.js';

/** The recorded size of a part of a request. */
export interface RequestSize {
  /** Bytes of UTF-8. */
  readonly bytes: number;
  readonly tokens: number;
}

/** One of two compared requests. */
export interface RequestSide {
  readonly turn: number;
  /** The last step that it includes. */
  readonly step: number;
  readonly at: Date;
  /** Whether it was sent to the model or comes from a transcript (decision E12). */
  readonly kind: ContextKind;
  readonly delivered: Delivery;
  readonly layout: string;
  readonly sha256: Sha256;
  /** Whether the context was rebuilt byte for byte. If not, the shown difference may be wrong. */
  readonly matches: boolean;
  /** Number of earlier requests that it is made of. Undefined if it went out as it is. */
  readonly rebuiltFrom?: number;
  readonly size: RequestSize;
  readonly epoch?: { readonly number: number; readonly reason: BorderReason };
  /** The provider's usage of the model call. */
  readonly usage?: ModelUsage;
}

/** A rebuilt request. */
export interface Request {
  readonly rebuilt: RebuiltAssembly;
  readonly pieces: readonly RequestPiece[];
  readonly side: RequestSide;
}

/** Returns the total bytes of some texts. */
export const bytesOf = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);

/** Returns the total tokens of each list of texts, with one count for all. */
export async function tokensOfEach(
  lists: readonly (readonly string[])[],
  count: CountTexts,
): Promise<readonly number[]> {
  const counts = await count(lists.flat());
  let at = 0;
  return lists.map(({ length }) => {
    at += length;
    return counts.slice(at - length, at).reduce((sum, tokens) => sum + tokens, 0);
  });
}

/** Returns the texts of some pieces. */
export const textsOf = (pieces: readonly RequestPiece[]): readonly string[] => pieces.map(({ text }) => text);

/**
 * Maps each request to the usage that the provider reported for its answer: the first answer
 * between it and the next request.
 */
export function usagesOf({
  records,
  steps,
}: Pick<SessionRequests, 'records' | 'steps'>): ReadonlyMap<AssemblyProof, ModelUsage> {
  const answers = steps.filter(({ message }) => message?.role === 'assistant');
  const found = new Map<AssemblyProof, ModelUsage>();
  let at = 0;
  for (const [i, proof] of records.entries()) {
    while ((answers[at]?.seq ?? Number.POSITIVE_INFINITY) <= proof.step) at += 1;
    const answer = answers[at];
    const isBeforeNext = answer !== undefined && answer.seq <= (records[i + 1]?.step ?? Number.POSITIVE_INFINITY);
    if (proof.sent?.usage !== undefined) found.set(proof, proof.sent.usage);
    else if (isBeforeNext && answer.usage !== undefined) found.set(proof, answer.usage);
  }
  return found;
}

/** The records of a session's requests and its steps, oldest first. */
export interface SessionRequests {
  readonly session: SessionId;
  readonly records: readonly AssemblyProof[];
  readonly steps: readonly Step[];
}

/** A reader that holds more UTF-16 units of outputs than this is replaced by a new one. */
const MOST_UNITS = 16 * 1_048_576;

/** Rebuilds the requests of one session. Reads each immutable part once. */
export class RequestReader {
  readonly timeline: Timeline;
  readonly session: SessionId;
  readonly records: readonly AssemblyProof[];
  readonly steps: readonly Step[];
  readonly #rebuilder: AssemblyRebuilder;
  readonly #versions = new Map<ObjectId, Promise<readonly VersionTimes[]>>();
  readonly #usages: ReadonlyMap<AssemblyProof, ModelUsage>;
  #calls: CallTexts = new Map();
  #units = 0;

  constructor(timeline: Timeline, { session, records, steps }: SessionRequests) {
    this.timeline = timeline;
    this.session = session;
    this.records = records;
    this.steps = steps;
    this.#rebuilder = timeline.rebuilder;
    this.#usages = usagesOf({ records, steps });
    // Shared steps of a fork belong to its parent.
    if (steps[0]?.session === session) this.#rebuilder.know(steps);
  }

  async request(proof: AssemblyProof, count: CountTexts): Promise<Request> {
    return this.#requestOf(await this.#rebuilder.rebuild(proof), count);
  }

  /** Rebuilds some requests in the order of their records, several at a time. */
  requests(proofs: readonly AssemblyProof[], count: CountTexts): Promise<readonly Request[]> {
    return this.#rebuilder.rebuildEach(proofs, (rebuilt) => this.#requestOf(rebuilt, count));
  }

  async #requestOf(rebuilt: RebuiltAssembly, count: CountTexts): Promise<Request> {
    const { proof } = rebuilt;
    await this.read(listSteps(rebuilt, this.steps));
    const pieces = requestPieces(rebuilt, {
      steps: this.steps,
      calls: this.#calls,
      stepOf: (count) => this.#stepOf(proof, count),
    });
    const texts = textsOf(pieces);
    const [tokens = 0] = await tokensOfEach([texts], count);
    const { turn, step, delivered, layout, sha256, epoch } = proof;
    const side: RequestSide = {
      turn,
      step,
      at: new Date(proof.at),
      kind: kindOfRecord(proof),
      delivered,
      layout,
      sha256,
      matches: rebuilt.equal,
      size: { bytes: bytesOf(texts), tokens },
      ...defined({
        epoch: epoch === undefined ? undefined : { number: epoch.number, reason: epoch.reason },
        usage: this.#usages.get(proof),
        rebuiltFrom: proof.sent?.rebuilt,
      }),
    };
    return { rebuilt, pieces, side };
  }

  /** Whether this reader holds too much. The next question then gets a new one. */
  get isFull(): boolean {
    return this.#units > MOST_UNITS;
  }

  /** The arguments and outputs of the calls read so far. */
  get calls(): CallTexts {
    return this.#calls;
  }

  /** Returns the time of each version of an object, as known now. */
  versions(id: ObjectId): Promise<readonly VersionTimes[]> {
    return askOnce(this.#versions, id, () => this.timeline.present.versions(id));
  }

  #stepOf({ epoch }: AssemblyProof, count: number): number | undefined {
    return this.records.find(
      (one) => isOfEpoch(one) && one.epoch.border === epoch?.border && one.epoch.list?.count === count,
    )?.step;
  }

  /** Reads the texts of the calls of some steps. */
  async read(steps: readonly Step[]): Promise<void> {
    const fresh = steps.filter(({ call }) => call !== undefined && !this.#calls.has(call.id));
    if (fresh.length === 0) return;
    const texts = await callTexts(this.timeline.present, fresh);
    this.#calls = new Map([...this.#calls, ...texts]);
    for (const { output } of texts.values()) this.#units += output.length;
  }
}

/**
 * Returns the last record up to a moment.
 *
 * @throws {HistoryError} `malformed-moment`, `beyond-end` if there is none
 */
export async function recordAt(
  timeline: Timeline,
  moment: Moment,
  { session, records }: Pick<SessionRequests, 'session' | 'records'>,
): Promise<AssemblyProof> {
  if (moment.kind === 'tx')
    throw new HistoryError(
      'malformed-moment',
      'requests are compared by turn, step or time, not by transaction: name one of those',
    );
  const { place, basis } = await timeline.find({ moment }, session);
  const isThere = ({ step, at }: AssemblyProof): boolean =>
    place !== undefined ? step <= place.seq : moment.kind === 'now' || at <= basis.validTime.getTime();
  const found = records.findLast(isThere);
  if (found !== undefined) return found;
  const [first] = records;
  const has = first === undefined ? 'none was kept' : `the first one was handed out at step ${first.step}`;
  throw new HistoryError('beyond-end', `no context of session ${session} was delivered up to that moment: ${has}`);
}

const readers = new WeakMap<Timeline, Map<SessionId, RequestReader>>();

/** Opens the requests of a session for reading. Questions of one timeline share one reader. */
export async function openRequests(asked: Timeline, name: string): Promise<RequestReader> {
  const session = await requireSession(asked.present, name);
  const timeline = await asked.of(session);
  const [records, steps] = await Promise.all([timeline.records(session), timeline.steps(session)]);
  const known = readers.get(timeline) ?? new Map<SessionId, RequestReader>();
  readers.set(timeline, known);
  const before = known.get(session);
  const reader =
    before === undefined || before.isFull ? new RequestReader(timeline, { session, records, steps }) : before;
  known.set(session, reader);
  return reader;
}
