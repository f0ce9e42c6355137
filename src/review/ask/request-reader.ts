import type { ObjectMetadata } from '../../assembly/metadata.js';
import { type ContextKind, kindOfRecord } from '../../history/rebuild/context-kind.js';
import { isOfEpoch } from '../../history/rebuild/epoch-chain.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import type { Moment } from '../../history/rebuild/moment.js';
import type { AssemblyRebuilder } from '../../history/rebuild/rebuild-assembly.js';
import type { RebuiltAssembly } from '../../history/rebuild/rebuilt-assembly.js';
import type { SessionRequest } from '../../history/rebuild/session-requests.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { CountTexts } from '../../history/rebuild/tokenizer.js';
import { transcriptText } from '../../history/rebuild/transcript-parts.js';
import type { AssemblyProof, BorderReason, Delivery } from '../../objects/assembly-proof.js';
import { hashText } from '../../objects/hashes.js';
import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import type { VersionTimes } from '../../store/queries.js';
import { defined } from '../../values/defined.js';
import { askOnce } from '../../values/promises.js';
import {
  type CallTexts,
  callTexts,
  listSteps,
  type RequestPiece,
  requestPieces,
  shownTokens,
} from './request-pieces.js';

/** The size of a request, or of a part of one, from its recorded texts. */
export interface RequestSize {
  /** Number of bytes in UTF-8. */
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
  readonly delivered: Delivery | 'transcript';
  readonly layout: string;
  /** For a request of a transcript: the hash of the text that the transcript shows. */
  readonly sha256: Sha256;
  /**
   * Whether the context was rebuilt byte for byte. If not, the shown difference may be wrong. A
   * transcript has no record that its request could differ from.
   */
  readonly matches: boolean;
  /** Number of earlier requests whose messages complete it. Undefined if it was sent whole. */
  readonly rebuiltFrom?: number;
  readonly size: RequestSize;
  readonly epoch?: { readonly number: number; readonly reason: BorderReason };
  /** The provider's usage of the model call. */
  readonly usage?: ModelUsage;
}

/** A request in parts. */
export interface Request {
  readonly of: SessionRequest;
  /** The rebuilt context. Undefined for a request that only a transcript shows. */
  readonly rebuilt?: RebuiltAssembly;
  readonly pieces: readonly RequestPiece[];
  /** The objects that its lines may name. */
  readonly pool: readonly ObjectMetadata[];
  readonly side: RequestSide;
}

/** Returns the total bytes of some texts. */
export const bytesOf = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);

/** Returns the total tokens of each list of texts, with a single call of `count`. */
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

/** The known requests of a session and its steps, both oldest first. */
export interface KnownRequests {
  readonly session: SessionId;
  /** Recorded requests, and requests that only a transcript shows. */
  readonly requests: readonly SessionRequest[];
  readonly steps: readonly Step[];
}

/** A reader that holds more UTF-16 units of outputs than this is replaced by a new one. */
const MOST_UNITS = 16 * 1_048_576;

/** Rebuilds the requests of one session. Reads each immutable part once. */
export class RequestReader {
  readonly timeline: Timeline;
  readonly session: SessionId;
  readonly requests: readonly SessionRequest[];
  readonly steps: readonly Step[];
  readonly #rebuilder: AssemblyRebuilder;
  readonly #versions = new Map<ObjectId, Promise<readonly VersionTimes[]>>();
  #calls: CallTexts = new Map();
  #units = 0;

  constructor(timeline: Timeline, { session, requests, steps }: KnownRequests) {
    this.timeline = timeline;
    this.session = session;
    this.requests = requests;
    this.steps = steps;
    this.#rebuilder = timeline.rebuilder;
    // The steps that a fork shares belong to its parent.
    if (steps[0]?.session === session) this.#rebuilder.know(steps);
  }

  async request(of: SessionRequest, count: CountTexts): Promise<Request> {
    return of.proof === undefined
      ? this.#told(of, count)
      : this.#requestOf(of, await this.#rebuilder.rebuild(of.proof), count);
  }

  /** Rebuilds some requests and keeps their order. Reads several recorded requests at a time. */
  async requestsOf(some: readonly SessionRequest[], count: CountTexts): Promise<readonly Request[]> {
    const byProof = new Map(some.flatMap((of) => (of.proof === undefined ? [] : [[of.proof, of] as const])));
    const rebuilt = await this.#rebuilder.rebuildEach([...byProof.keys()], (one) =>
      this.#requestOf(byProof.get(one.proof) as SessionRequest, one, count),
    );
    const known = new Map(rebuilt.map((request) => [request.of, request]));
    const all: Request[] = [];
    for (const of of some) all.push(known.get(of) ?? (await this.#told(of, count)));
    return all;
  }

  /** Reads a request as the transcript has it. */
  async #told(of: SessionRequest, count: CountTexts): Promise<Request> {
    const { turn, step, at, kind, usage } = of;
    const parts = await (await this.timeline.transcript(this.session)).at(of.call?.step ?? step);
    const pieces = parts.map(({ section, text, object, step: own, chars }): RequestPiece => {
      if (own === undefined) return { section, text };
      return { section, text, object, step: own, ...defined({ chars: chars === text.length ? undefined : chars }) };
    });
    const counts = await count(textsOf(pieces));
    const tokens = pieces.reduce((sum, piece, i) => sum + shownTokens(piece, counts[i] ?? 0), 0);
    const side: RequestSide = {
      turn,
      step,
      at: new Date(at),
      kind,
      delivered: 'transcript',
      layout: 'transcript',
      sha256: hashText(transcriptText(parts)),
      matches: true,
      size: { bytes: bytesOf(textsOf(pieces)), tokens },
      ...defined({ usage }),
    };
    return { of, pieces, side, pool: [] };
  }

  async #requestOf(of: SessionRequest, rebuilt: RebuiltAssembly, count: CountTexts): Promise<Request> {
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
        usage: of.usage,
        rebuiltFrom: proof.sent?.rebuilt,
      }),
    };
    return { of, rebuilt, pieces, side, pool: rebuilt.input.pool };
  }

  /** Whether this reader holds too many texts. The next question then gets a new reader. */
  get isFull(): boolean {
    return this.#units > MOST_UNITS;
  }

  /** The arguments and outputs of the calls read so far. */
  get calls(): CallTexts {
    return this.#calls;
  }

  /** Returns the times of each version of an object that the database has now. */
  versions(id: ObjectId): Promise<readonly VersionTimes[]> {
    return askOnce(this.#versions, id, () => this.timeline.present.versions(id));
  }

  #stepOf({ epoch }: AssemblyProof, count: number): number | undefined {
    const isOf = (one: AssemblyProof | undefined): boolean =>
      one !== undefined && isOfEpoch(one) && one.epoch.border === epoch?.border && one.epoch.list?.count === count;
    return this.requests.find(({ proof }) => isOf(proof))?.step;
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
 * Returns the last known request up to a moment.
 *
 * @throws {HistoryError} `malformed-moment`, `beyond-end` if there is none
 */
export async function requestAt(
  timeline: Timeline,
  moment: Moment,
  { session, requests }: Pick<KnownRequests, 'session' | 'requests'>,
): Promise<SessionRequest> {
  if (moment.kind === 'tx')
    throw new HistoryError(
      'malformed-moment',
      'requests are compared by turn, step or time, not by transaction: name one of those',
    );
  const { place, basis } = await timeline.find({ moment }, session);
  const isThere = ({ step, at }: SessionRequest): boolean =>
    place !== undefined ? step <= place.seq : moment.kind === 'now' || at <= basis.validTime.getTime();
  const found = requests.findLast(isThere);
  if (found !== undefined) return found;
  const [first] = requests;
  const has = first === undefined ? 'none is recorded' : `the first one was handed out at step ${first.step}`;
  throw new HistoryError('beyond-end', `no context of session ${session} was handed out up to that moment: ${has}`);
}

const readers = new WeakMap<Timeline, Map<SessionId, RequestReader>>();

/** Opens the requests of a session for reading. Questions of one timeline share one reader. */
export async function openRequests(asked: Timeline, name: string): Promise<RequestReader> {
  const session = await requireSession(asked.present, name);
  const timeline = await asked.of(session);
  const [all, steps] = await Promise.all([
    timeline.requests(session),
    timeline.steps(session),
    // Throws the error of a damaged record.
    timeline.records(session),
  ]);
  const requests = all.filter(({ kind }) => kind !== 'unseen');
  const known = readers.get(timeline) ?? new Map<SessionId, RequestReader>();
  readers.set(timeline, known);
  const before = known.get(session);
  const reader =
    before === undefined || before.isFull ? new RequestReader(timeline, { session, requests, steps }) : before;
  known.set(session, reader);
  return reader;
}
