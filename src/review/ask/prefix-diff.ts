import { fallsAmong } from '../../history/rebuild/session-requests.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { type CountTexts, countingOnce, TOKENIZER } from '../../history/rebuild/tokenizer.js';
import { chatObjectId, type ObjectId, type SessionId } from '../../objects/ids.js';
import { commonBytes } from '../../values/common-length.js';
import { defined } from '../../values/defined.js';
import { causeOf, type PrefixCause } from './prefix-cause.js';
import { type ProviderVerdicts, providerVerdicts } from './provider-verdicts.js';
import { objectOfLine } from './request-items.js';
import { ActsBetween, type RequestPair, requestPair, stepsBetween } from './request-pair.js';
import { hasOwnList, type RequestPiece } from './request-pieces.js';
import {
  bytesOf,
  openRequests,
  type Request,
  type RequestReader,
  type RequestSide,
  type RequestSize,
  textsOf,
  tokensOfEach,
} from './request-reader.js';

/** The first byte at which two requests differ. */
export interface FirstDifference {
  /** Offset from the beginning of the request. */
  readonly byte: number;
  readonly byteInPart: number;
  /** A section of the context, or `list` for the harness's own list. */
  readonly section: RequestPiece['section'];
  /** Line in the part, from 1. */
  readonly line: number;
  readonly object?: ObjectId;
  /** For the harness's own list: the step of the message or call. */
  readonly step?: number;
}

/**
 * The model's answers in the harness's list of the first request, counted by their state in the
 * second. An answer may contain reasoning, which the provider checks.
 * - `kept`: the second request has them, after an equal beginning
 * - `lost`: they follow a different beginning, or were removed during their own turn
 * - `left`: they were removed with a closed turn, which is allowed
 */
export interface Answers {
  readonly kept: number;
  readonly lost: number;
  readonly left: number;
}

/**
 * The comparison of two requests' beginnings. Includes the provider's report if the second request
 * directly follows the first.
 */
export interface PrefixDiff extends ProviderVerdicts {
  readonly session: SessionId;
  readonly from: RequestSide;
  readonly to: RequestSide;
  /** Whether the second request begins with the whole first one. */
  readonly isPrefix: boolean;
  /** Size of the common beginning. */
  readonly shared: RequestSize;
  /** Tokens of the second request behind the common beginning. */
  readonly written: number;
  /** The part of `written` that is paid for again: lines that the first request also had. */
  readonly again: number;
  readonly difference: FirstDifference | undefined;
  readonly cause: PrefixCause | undefined;
  /** The model's answers in the harness's own list. Undefined if a request has no such list. */
  readonly answers: Answers | undefined;
  /**
   * Number of tokens by which the provider's count fell, although nothing recorded left the
   * request.
   */
  readonly fewer: number;
}

/** The comparisons of a session, newest first. */
export interface PrefixDiffs {
  readonly session: SessionId;
  readonly tokenizer: typeof TOKENIZER;
  readonly compared: readonly PrefixDiff[];
  /** Whether there are older comparisons. */
  readonly isCut: boolean;
}

/** Where two requests differ first. */
interface Split {
  /** Index of the first parts that differ. */
  readonly part: number;
  readonly pieceFrom: RequestPiece | undefined;
  readonly pieceTo: RequestPiece | undefined;
  /** Number of bytes at the beginning of both parts that are equal. */
  readonly bytes: number;
  /** The text of these bytes, without a cut character. */
  readonly text: string;
}

/** Whether both pieces belong to the context, or both to the harness's own list. */
const isAlike = (a: RequestPiece | undefined, b: RequestPiece | undefined): boolean =>
  (a?.section === 'list') === (b?.section === 'list');

function splitOf(from: readonly RequestPiece[], to: readonly RequestPiece[]): Split | undefined {
  const found = from.findIndex((piece, i) => piece.text !== to[i]?.text || !isAlike(piece, to[i]));
  if (found < 0) return undefined;
  const [pieceFrom, pieceTo] = [from[found], to[found]];
  const [a, b] = isAlike(pieceFrom, pieceTo)
    ? [Buffer.from(pieceFrom?.text ?? ''), Buffer.from(pieceTo?.text ?? '')]
    : [Buffer.of(), Buffer.of()];
  const bytes = commonBytes(a, b);
  // Leaves out a last character whose bytes are only partly equal.
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(a.subarray(0, bytes), { stream: true });
  return { part: found, pieceFrom, pieceTo, bytes, text };
}

function answersOf(from: Request, to: Request, split: Split | undefined): Answers | undefined {
  const hasList = ({ of: { proof } }: Request): boolean => proof === undefined || hasOwnList(proof);
  if (!hasList(from) || !hasList(to)) return undefined;
  const there = new Set(to.pieces.flatMap(({ step }) => step?.seq ?? []));
  const counts = { kept: 0, lost: 0, left: 0 };
  for (const [i, { step }] of from.pieces.entries()) {
    if (step?.message?.role !== 'assistant') continue;
    if (split === undefined || i < split.part) counts.kept += 1;
    else if (there.has(step.seq) || step.turn === to.of.turn) counts.lost += 1;
    else counts.left += 1;
  }
  return counts;
}

/** Returns the lines of a text that another text also has. */
function repeatedLines(text: string, other: string): string {
  const lines = new Map<string, number>();
  for (const line of other.split('\n')) lines.set(line, (lines.get(line) ?? 0) + 1);
  const repeated = text.split('\n').filter((line) => {
    const left = lines.get(line) ?? 0;
    if (left > 0) lines.set(line, left - 1);
    return left > 0 && line !== '';
  });
  return repeated.join('\n');
}

/** Two requests of one session, and where they first differ. */
interface SplitPair extends RequestPair {
  readonly split: Split | undefined;
}

const splitPair = ({ from, to }: RequestPair): SplitPair => ({
  from,
  to,
  split: splitOf(from.pieces, to.pieces),
});

/** A pair with the size of its common beginning. */
interface MeasuredPair extends SplitPair {
  readonly before: RequestSize;
}

/** Returns the first difference of two requests and its cause. */
async function differenceOf(
  { present }: Timeline,
  reader: RequestReader,
  { from, to, split, before }: MeasuredPair,
): Promise<Pick<PrefixDiff, 'difference' | 'cause'>> {
  if (split === undefined) return { difference: undefined, cause: undefined };
  const { pieceFrom, pieceTo, bytes, text } = split;
  // If only one of the pieces belongs to the context, that piece decides.
  const pieces = [pieceTo, pieceFrom].flatMap((one) => one ?? []);
  const piece = (
    isAlike(pieceFrom, pieceTo) ? pieces[0] : (pieces.find(({ section }) => section !== 'list') ?? pieces[0])
  ) as RequestPiece;
  const lineObject = objectOfLine(
    piece,
    text.length,
    to.pool.map(({ id }) => id),
  );
  const acts = await ActsBetween.read(reader, { from, to });
  const cause = await causeOf({ acts, pieceFrom, pieceTo, lineObject, present });
  const { section, step } = piece;
  const object = section === 'chat' ? chatObjectId(reader.session) : (lineObject ?? piece.object);
  const line = text.split('\n').length;
  const difference = { byte: before.bytes, byteInPart: bytes, section, line, ...defined({ object, step: step?.seq }) };
  return { difference, cause };
}

/** Compares the beginnings of two requests of a session. */
export function comparePrefixes(
  timeline: Timeline,
  reader: RequestReader,
  { count, ...pair }: RequestPair & { readonly count: CountTexts },
): Promise<PrefixDiff> {
  return compareSplit(timeline, reader, { ...splitPair(pair), count });
}

async function compareSplit(
  timeline: Timeline,
  reader: RequestReader,
  { from, to, split, count }: SplitPair & { readonly count: CountTexts },
): Promise<PrefixDiff> {
  const part = split?.part ?? from.pieces.length;
  const equal = textsOf(to.pieces.slice(0, part));
  const rest = ({ pieces }: Request): readonly string[] => [
    (pieces[part]?.text ?? '').slice(split?.text.length ?? 0),
    ...textsOf(pieces.slice(part + 1)),
  ];
  const [restFrom, restTo] = [rest(from), rest(to)];
  const lines = split === undefined ? '' : repeatedLines(restTo.join('\n'), restFrom.join('\n'));
  const [shared = 0, behind = 0, written = 0, again = 0] = await tokensOfEach(
    [[...equal, split?.text ?? ''], restFrom, restTo, [lines]],
    count,
  );
  const before = { bytes: bytesOf(equal) + (split?.bytes ?? 0), tokens: shared };
  const isNext = reader.requests.indexOf(to.of) === reader.requests.indexOf(from.of) + 1;
  const { difference, cause } = await differenceOf(timeline, reader, { from, to, split, before });
  const answers = answersOf(from, to, split);
  const usage = { before: from.side.usage, after: isNext ? to.side.usage : undefined };
  const falls = isNext ? fallsAmong(reader.requests, reader.steps) : [];
  return {
    session: reader.session,
    from: from.side,
    to: to.side,
    fewer: falls.find(({ step }) => step === to.of.step)?.fewer ?? 0,
    isPrefix: split === undefined,
    shared: before,
    written,
    again,
    difference,
    cause,
    answers,
    ...providerVerdicts({
      ...usage,
      behind: split === undefined ? 0 : behind,
      differs: difference?.section,
      lost: answers?.lost,
    }),
  };
}

/** Default number of comparisons. Each rebuilds and counts both requests. */
const LISTED = 20;
/** Requests rebuilt and compared concurrently. */
const HELD = 32;

/**
 * Compares the beginnings of a session's requests. With a range, it compares two: the last request
 * up to each moment. Without a range, it compares each request with its predecessor, newest first.
 *
 * @throws {HistoryError} `unknown-session`, `malformed-moment`; `beyond-end` if there is no request
 * to compare; also the errors of a rebuild
 */
export async function askPrefixes(
  timeline: Timeline,
  {
    name,
    range,
    limit = LISTED,
    count,
  }: {
    readonly name: string;
    readonly range?: string | undefined;
    readonly limit?: number | undefined;
    readonly count: CountTexts;
  },
): Promise<PrefixDiffs> {
  const [reader] = await Promise.all([openRequests(timeline, name), count([])]);
  const { session, requests: known } = reader;
  const made = { session, tokenizer: TOKENIZER, isCut: false } as const;
  if (range !== undefined) {
    const pair = await requestPair(timeline, reader, { range, count });
    return { ...made, compared: [await comparePrefixes(timeline, reader, { ...pair, count })] };
  }
  const some = known.slice(-limit - 1);
  const compared: PrefixDiff[] = [];
  let before: Request | undefined;
  // Requests are large, so only `HELD` of them are in memory at a time.
  for (let from = 0; from < some.length; from += HELD) {
    const once = countingOnce(count);
    const requests = await reader.requestsOf(some.slice(from, from + HELD), once);
    const all = before === undefined ? requests : [before, ...requests];
    const pairs = all.slice(1).map((to, i) => splitPair({ from: all[i] as Request, to }));
    // Reads the steps between all differing requests together.
    await reader.read(pairs.flatMap((pair) => (pair.split === undefined ? [] : stepsBetween(reader, pair))));
    const diffs = await Promise.all(pairs.map((pair) => compareSplit(timeline, reader, { ...pair, count: once })));
    compared.push(...diffs);
    before = all.at(-1);
  }
  compared.reverse();
  return { ...made, compared, isCut: some.length < known.length };
}
