import { setImmediate } from 'node:timers/promises';
import type { AssemblyProof, BorderReason, Delivery } from '../../objects/assembly-proof.js';
import { chatObjectId, type ObjectId, type SessionId, type Sha256 } from '../../objects/ids.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import { defined } from '../../values/defined.js';
import { isOfEpoch } from '../rebuild/epoch-chain.js';
import { requireSession } from '../rebuild/find-session.js';
import { HistoryError } from '../rebuild/history-error.js';
import type { Moment } from '../rebuild/moment.js';
import { AssemblyRebuilder, type RebuiltAssembly } from '../rebuild/rebuild-assembly.js';
import type { Timeline } from '../rebuild/timeline.js';
import { causeOf, type PrefixCause } from './prefix-cause.js';
import { parseRange } from './reference.js';
import { type CallTexts, callTexts, hasOwnList, listSteps, type RequestPiece, requestPieces } from './request-pieces.js';
import { countTokens, TOKENIZER } from './token-count.js';

/** A size of a part of a request, as it is recorded. */
export interface RequestSize {
  /** Of UTF-8. */
  readonly bytes: number;
  readonly tokens: number;
}

/** One of two requests that are compared. */
export interface RequestSide {
  readonly turn: number;
  /** The last step that it includes. */
  readonly step: number;
  readonly at: Date;
  readonly delivered: Delivery;
  readonly layout: string;
  readonly sha256: Sha256;
  /** Whether the context was made again byte for byte; where not, its difference may be another one. */
  readonly matches: boolean;
  readonly size: RequestSize;
  readonly epoch?: { readonly number: number; readonly reason: BorderReason };
  /** What the provider said that the model's call took. */
  readonly usage?: ModelUsage;
}

/** The first byte at which two requests differ. */
export interface FirstDifference {
  /** From the beginning of the request, and from that of its part. */
  readonly byte: number;
  readonly byteInPart: number;
  /** Of ours, or `list`: the harness's own messages. */
  readonly section: RequestPiece['section'];
  /** Of the part, from 1. */
  readonly line: number;
  readonly object?: ObjectId;
  /** The step of a message or call of the harness's list. */
  readonly step?: number;
}

/**
 * What became of the model's answers that the first request had as the harness's own messages, each of which may hold reasoning: `kept` behind an equal
 * beginning; `lost`, because another beginning stands before them, or because they left in the turn that they belong to; `left` with a closed turn, as is allowed.
 */
export interface Answers {
  readonly kept: number;
  readonly lost: number;
  readonly left: number;
}

/** What the provider read from its cache for the second request, beside what it could have read by our account, in tokens. */
export interface CacheVerdict {
  readonly read: number;
  /** The whole request before it, as the provider counted it, without what stands behind the first difference. */
  readonly expected: number;
  readonly verdict: 'agrees' | 'read-less' | 'read-more';
}

/** How a request begins, compared with another one. */
export interface PrefixDiff {
  readonly session: SessionId;
  readonly from: RequestSide;
  readonly to: RequestSide;
  /** Whether the second begins with the whole first. */
  readonly isPrefix: boolean;
  /** The common beginning. */
  readonly shared: RequestSize;
  /** Tokens of the second behind it, and those of them whose lines the first had too: they are paid for once more. */
  readonly written: number;
  readonly again: number;
  readonly difference: FirstDifference | undefined;
  readonly cause: PrefixCause | undefined;
  /** Undefined where a context is all that there is of a request. */
  readonly answers: Answers | undefined;
  /** Undefined where the provider's counts of both are not known, or where other requests lie between them. */
  readonly cache: CacheVerdict | undefined;
}

/** Comparisons, the newest first. */
export interface PrefixDiffs {
  readonly session: SessionId;
  readonly tokenizer: typeof TOKENIZER;
  readonly compared: readonly PrefixDiff[];
  /** Whether there are older ones. */
  readonly isCut: boolean;
}

/** A request that was made again. */
interface Request {
  readonly rebuilt: RebuiltAssembly;
  readonly pieces: readonly RequestPiece[];
  readonly side: RequestSide;
}

const sizeOf = (texts: readonly string[]): RequestSize => ({
  bytes: texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0),
  tokens: texts.reduce((sum, text) => sum + countTokens(text), 0),
});

const textsOf = (pieces: readonly RequestPiece[]): readonly string[] => pieces.map(({ text }) => text);

/** The object whose line a place in a list of lines belongs to: its short or full id stands first in it. */
function objectOfLine({ section, text }: RequestPiece, at: number, known: readonly ObjectId[]): ObjectId | undefined {
  if (section !== 'pool' && section !== 'notes') return undefined;
  const inside = text[at] === '\n' ? at + 1 : at;
  const line = text.slice(text.lastIndexOf('\n', inside - 1) + 1).split('\n', 1)[0] ?? '';
  const [, shown] = /^id=("(?:[^"\\]|\\.)*"|\S+) type=/.exec(line) ?? [];
  if (shown === undefined) return undefined;
  const name: string = shown.startsWith('"') ? JSON.parse(shown) : shown;
  return known.find((id) => id === name) ?? known.find((id) => id.startsWith(name));
}

/** Two requests up to where they part. */
interface Parting {
  /** The first parts that are not equal. */
  readonly part: number;
  readonly pieceFrom: RequestPiece | undefined;
  readonly pieceTo: RequestPiece | undefined;
  /** The bytes that both parts begin with, and the text of it. */
  readonly bytes: number;
  readonly text: string;
}

/** Whether both are ours, or both the harness's own: what a harness sends as a message of its own is never what we say of it. */
const isAlike = (a: RequestPiece | undefined, b: RequestPiece | undefined): boolean => (a?.section === 'list') === (b?.section === 'list');

function partingOf(from: readonly RequestPiece[], to: readonly RequestPiece[]): Parting | undefined {
  const found = from.findIndex((piece, i) => piece.text !== to[i]?.text || !isAlike(piece, to[i]));
  if (found < 0) return undefined;
  const [pieceFrom, pieceTo] = [from[found], to[found]];
  const [a, b] = isAlike(pieceFrom, pieceTo)
    ? [Buffer.from(pieceFrom?.text ?? ''), Buffer.from(pieceTo?.text ?? '')]
    : [Buffer.of(), Buffer.of()];
  let bytes = 0;
  while (bytes < a.length && a[bytes] === b[bytes]) bytes += 1;
  // Of characters that differ in a later byte nothing is common text.
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(a.subarray(0, bytes), { stream: true });
  return { part: found, pieceFrom, pieceTo, bytes, text };
}

function answersOf(from: Request, to: Request, parting: Parting | undefined): Answers | undefined {
  if (!hasOwnList(from.rebuilt.proof) || !hasOwnList(to.rebuilt.proof)) return undefined;
  const there = new Set(to.pieces.flatMap(({ step }) => step?.seq ?? []));
  const counts = { kept: 0, lost: 0, left: 0 };
  for (const [i, { step }] of from.pieces.entries()) {
    if (step?.message?.role !== 'assistant') continue;
    if (parting === undefined || i < parting.part) counts.kept += 1;
    else if (there.has(step.seq) || step.turn === to.rebuilt.proof.turn) counts.lost += 1;
    else counts.left += 1;
  }
  return counts;
}

/** A provider's cache has blocks of so many tokens, about, and counts by another vocabulary. */
const CACHE_BLOCK = 1_024;
const TOLERANCE = 0.1;

const requestTokens = ({ input = 0, cacheRead = 0, cacheWrite = 0 }: ModelUsage): number => input + cacheRead + cacheWrite;

function cacheVerdict(from: Request, to: Request, behind: number): CacheVerdict | undefined {
  const [before, after] = [from.side.usage, to.side.usage];
  if (before === undefined || after?.cacheRead === undefined) return undefined;
  const whole = requestTokens(before);
  if (whole === 0) return undefined;
  const { cacheRead: read } = after;
  const expected = Math.max(0, whole - behind);
  const off = read - expected;
  const verdict = Math.abs(off) <= CACHE_BLOCK + TOLERANCE * whole ? 'agrees' : off < 0 ? 'read-less' : 'read-more';
  return { read, expected, verdict };
}

/** Tokens of the lines of a text that another one has too. */
function repeatedTokens(text: string, other: string): number {
  const lines = new Map<string, number>();
  for (const line of other.split('\n')) lines.set(line, (lines.get(line) ?? 0) + 1);
  const repeated = text.split('\n').filter((line) => {
    const left = lines.get(line) ?? 0;
    if (left > 0) lines.set(line, left - 1);
    return left > 0 && line !== '';
  });
  return countTokens(repeated.join('\n'));
}

/** Compares the requests of one session. What never changes is read once. */
class RequestReader {
  readonly #timeline: Timeline;
  readonly #session: SessionId;
  readonly #records: readonly AssemblyProof[];
  readonly #steps: readonly Step[];
  readonly #rebuilder: AssemblyRebuilder;
  #calls: CallTexts = new Map();

  constructor(
    timeline: Timeline,
    {
      session,
      records,
      steps,
    }: { readonly session: SessionId; readonly records: readonly AssemblyProof[]; readonly steps: readonly Step[] },
  ) {
    this.#timeline = timeline;
    this.#session = session;
    this.#records = records;
    this.#steps = steps;
    this.#rebuilder = new AssemblyRebuilder(timeline.store, timeline.present);
    // Those that a fork shares are its parent's.
    if (steps[0]?.session === session) this.#rebuilder.know(steps);
  }

  async request(proof: AssemblyProof): Promise<Request> {
    // Counting keeps the thread busy: other work of this process runs between two requests.
    await setImmediate();
    const rebuilt = await this.#rebuilder.rebuild(proof);
    await this.#read(listSteps(rebuilt, this.#steps));
    const pieces = requestPieces(rebuilt, { steps: this.#steps, calls: this.#calls, stepOf: (count) => this.#stepOf(proof, count) });
    const { turn, step, delivered, layout, sha256, epoch } = proof;
    const side: RequestSide = {
      turn,
      step,
      at: new Date(proof.at),
      delivered,
      layout,
      sha256,
      matches: rebuilt.equal,
      size: sizeOf(textsOf(pieces)),
      ...defined({ epoch: epoch === undefined ? undefined : { number: epoch.number, reason: epoch.reason }, usage: this.#usageOf(proof) }),
    };
    return { rebuilt, pieces, side };
  }

  async compare(from: Request, to: Request): Promise<PrefixDiff> {
    const [a, b] = [from.rebuilt.proof, to.rebuilt.proof];
    const parting = partingOf(from.pieces, to.pieces);
    const part = parting?.part ?? from.pieces.length;
    const equal = sizeOf(textsOf(to.pieces.slice(0, part)));
    const before = { bytes: equal.bytes + (parting?.bytes ?? 0), tokens: equal.tokens + countTokens(parting?.text ?? '') };
    const rest = ({ pieces }: Request): readonly string[] => [
      (pieces[part]?.text ?? '').slice(parting?.text.length ?? 0),
      ...textsOf(pieces.slice(part + 1)),
    ];
    const [restFrom, restTo] = [rest(from), rest(to)];
    const behind = sizeOf(restFrom).tokens;
    const isNext = this.#records.indexOf(b) === this.#records.indexOf(a) + 1;
    return {
      session: this.#session,
      from: from.side,
      to: to.side,
      isPrefix: parting === undefined,
      shared: before,
      written: sizeOf(restTo).tokens,
      again: parting === undefined ? 0 : repeatedTokens(restTo.join('\n'), restFrom.join('\n')),
      ...(await this.#difference({ from, to, parting, before })),
      answers: answersOf(from, to, parting),
      cache: isNext ? cacheVerdict(from, to, parting === undefined ? 0 : behind) : undefined,
    };
  }

  async #difference(of: {
    readonly from: Request;
    readonly to: Request;
    readonly parting: Parting | undefined;
    readonly before: RequestSize;
  }): Promise<Pick<PrefixDiff, 'difference' | 'cause'>> {
    const { from, to, parting, before } = of;
    if (parting === undefined) return { difference: undefined, cause: undefined };
    const { pieceFrom, pieceTo, bytes, text } = parting;
    // Of ours and one of the harness's own, ours is what came, went or moved.
    const pieces = [pieceTo, pieceFrom].flatMap((one) => one ?? []);
    const piece = (
      isAlike(pieceFrom, pieceTo) ? pieces[0] : (pieces.find(({ section }) => section !== 'list') ?? pieces[0])
    ) as RequestPiece;
    const known = to.rebuilt.input.pool.map(({ id }) => id);
    const lineObject = objectOfLine(piece, text.length, known);
    const [first, last] = [from.rebuilt.proof.step, to.rebuilt.proof.step].sort((x, y) => x - y) as [number, number];
    const steps = this.#steps.filter(({ seq }) => seq > first && seq <= last);
    await this.#read(steps);
    const { present } = this.#timeline;
    const cause = await causeOf({
      from: from.rebuilt,
      to: to.rebuilt,
      pieceFrom,
      pieceTo,
      lineObject,
      steps,
      calls: this.#calls,
      present,
    });
    const { section, step } = piece;
    const object = section === 'chat' ? chatObjectId(this.#session) : (lineObject ?? piece.object);
    const line = text.split('\n').length;
    const difference = { byte: before.bytes, byteInPart: bytes, section, line, ...defined({ object, step: step?.seq }) };
    return { difference, cause };
  }

  /** What was said of the answer that came before the next request. */
  #usageOf(proof: AssemblyProof): ModelUsage | undefined {
    const next = this.#records[this.#records.indexOf(proof) + 1]?.step ?? Number.POSITIVE_INFINITY;
    return this.#steps.find(({ seq, message }) => seq > proof.step && seq <= next && message?.role === 'assistant')?.usage;
  }

  #stepOf({ epoch }: AssemblyProof, count: number): number | undefined {
    return this.#records.find((one) => isOfEpoch(one) && one.epoch.border === epoch?.border && one.epoch.list?.count === count)?.step;
  }

  async #read(steps: readonly Step[]): Promise<void> {
    const fresh = steps.filter(({ call }) => call !== undefined && !this.#calls.has(call.id));
    if (fresh.length > 0) this.#calls = new Map([...this.#calls, ...(await callTexts(this.#timeline.present, fresh))]);
  }
}

/** The last record up to a moment. */
async function recordAt(
  timeline: Timeline,
  moment: Moment,
  of: { readonly session: SessionId; readonly records: readonly AssemblyProof[] },
): Promise<AssemblyProof> {
  const { session, records } = of;
  if (moment.kind === 'tx') throw new HistoryError('malformed-moment', 'requests are compared by turn, step or time, not by transaction');
  const { place, basis } = await timeline.find({ moment }, session);
  const isThere = ({ step, at }: AssemblyProof): boolean =>
    place !== undefined ? step <= place.seq : moment.kind === 'now' || at <= basis.validTime.getTime();
  const found = records.findLast(isThere);
  if (found !== undefined) return found;
  const [first] = records;
  const has = first === undefined ? 'none was kept' : `the first one was handed out at step ${first.step}`;
  throw new HistoryError('beyond-end', `no context of session ${session} was handed out up to that moment: ${has}`);
}

/** Comparisons that are made where nobody says how many: both requests of each are made again and counted. */
const LISTED = 20;

/**
 * How the requests of a session begin: two of them, each the last one up to its moment, or, without a range, each with the one before it, the newest first.
 * @throws {HistoryError} `unknown-session`, `malformed-moment`, `beyond-end` where there is none to compare, and what a rebuild throws
 */
export async function askPrefixes(
  timeline: Timeline,
  { name, range, limit = LISTED }: { readonly name: string; readonly range?: string | undefined; readonly limit?: number | undefined },
): Promise<PrefixDiffs> {
  const session = await requireSession(timeline.present, name);
  const [records, steps] = await Promise.all([timeline.present.assemblies(session), timeline.steps(session)]);
  const reader = new RequestReader(timeline, { session, records, steps });
  const made = { session, tokenizer: TOKENIZER, isCut: false } as const;
  if (range !== undefined) {
    const moments = parseRange(range);
    const to = await recordAt(timeline, moments.to, { session, records });
    const from =
      moments.from === undefined ? records[records.indexOf(to) - 1] : await recordAt(timeline, moments.from, { session, records });
    if (from === undefined) throw new HistoryError('beyond-end', `the context at step ${to.step} is the first one of session ${session}`);
    const before = await reader.request(from);
    return { ...made, compared: [await reader.compare(before, from === to ? before : await reader.request(to))] };
  }
  const some = records.slice(-limit - 1);
  const compared: PrefixDiff[] = [];
  let before: Request | undefined;
  for (const proof of some) {
    const request = await reader.request(proof);
    if (before !== undefined) compared.unshift(await reader.compare(before, request));
    before = request;
  }
  return { ...made, compared, isCut: some.length < records.length };
}
