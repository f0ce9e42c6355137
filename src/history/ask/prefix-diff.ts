import { chatObjectId, type ObjectId, type SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { commonBytes } from '../../values/common-length.js';
import { defined } from '../../values/defined.js';
import { HistoryError } from '../rebuild/history-error.js';
import type { Timeline } from '../rebuild/timeline.js';
import { causeOf, type PrefixCause } from './prefix-cause.js';
import { type ProviderVerdicts, providerVerdicts } from './provider-verdicts.js';
import { parseRange } from './reference.js';
import { objectOfLine } from './request-items.js';
import { hasOwnList, type RequestPiece } from './request-pieces.js';
import {
  bytesOf,
  openRequests,
  type Request,
  type RequestReader,
  type RequestSide,
  type RequestSize,
  recordAt,
  textsOf,
  tokensOfEach,
} from './request-reader.js';
import { type CountTexts, countingOnce, TOKENIZER } from './tokenizer.js';

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

/** How a request begins, compared with another one, and what the provider said of it where that is the next one. */
export interface PrefixDiff extends ProviderVerdicts {
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
}

/** Comparisons, the newest first. */
export interface PrefixDiffs {
  readonly session: SessionId;
  readonly tokenizer: typeof TOKENIZER;
  readonly compared: readonly PrefixDiff[];
  /** Whether there are older ones. */
  readonly isCut: boolean;
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
const isAlike = (a: RequestPiece | undefined, b: RequestPiece | undefined): boolean =>
  (a?.section === 'list') === (b?.section === 'list');

function partingOf(from: readonly RequestPiece[], to: readonly RequestPiece[]): Parting | undefined {
  const found = from.findIndex((piece, i) => piece.text !== to[i]?.text || !isAlike(piece, to[i]));
  if (found < 0) return undefined;
  const [pieceFrom, pieceTo] = [from[found], to[found]];
  const [a, b] = isAlike(pieceFrom, pieceTo)
    ? [Buffer.from(pieceFrom?.text ?? ''), Buffer.from(pieceTo?.text ?? '')]
    : [Buffer.of(), Buffer.of()];
  const bytes = commonBytes(a, b);
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

/** The lines of a text that another one has too. */
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

/** Two requests of one session. */
interface ComparedRequests {
  readonly from: Request;
  readonly to: Request;
}

/** Two requests of one session, and where they part. */
interface PartedPair extends ComparedRequests {
  readonly parting: Parting | undefined;
}

const partedPair = ({ from, to }: ComparedRequests): PartedPair => ({
  from,
  to,
  parting: partingOf(from.pieces, to.pieces),
});

/** The steps between two requests. */
function stepsBetween({ steps }: RequestReader, { from, to }: ComparedRequests): readonly Step[] {
  const [first, last] = [from.rebuilt.proof.step, to.rebuilt.proof.step].sort((x, y) => x - y) as [number, number];
  return steps.filter(({ seq }) => seq > first && seq <= last);
}

/** The same, with what is equal in front of it. */
interface PartedRequests extends PartedPair {
  /** The common beginning. */
  readonly before: RequestSize;
}

/** Where two requests part, and why. */
async function differenceOf(
  { present }: Timeline,
  reader: RequestReader,
  { from, to, parting, before }: PartedRequests,
): Promise<Pick<PrefixDiff, 'difference' | 'cause'>> {
  if (parting === undefined) return { difference: undefined, cause: undefined };
  const { pieceFrom, pieceTo, bytes, text } = parting;
  // Of ours and one of the harness's own, ours is what came, went or moved.
  const pieces = [pieceTo, pieceFrom].flatMap((one) => one ?? []);
  const piece = (
    isAlike(pieceFrom, pieceTo) ? pieces[0] : (pieces.find(({ section }) => section !== 'list') ?? pieces[0])
  ) as RequestPiece;
  const lineObject = objectOfLine(
    piece,
    text.length,
    to.rebuilt.input.pool.map(({ id }) => id),
  );
  const steps = stepsBetween(reader, { from, to });
  await reader.read(steps);
  const cause = await causeOf({
    from: from.rebuilt,
    to: to.rebuilt,
    pieceFrom,
    pieceTo,
    lineObject,
    steps,
    calls: reader.calls,
    present,
  });
  const { section, step } = piece;
  const object = section === 'chat' ? chatObjectId(reader.session) : (lineObject ?? piece.object);
  const line = text.split('\n').length;
  const difference = { byte: before.bytes, byteInPart: bytes, section, line, ...defined({ object, step: step?.seq }) };
  return { difference, cause };
}

/** How two requests of a session begin. */
export function comparePrefixes(
  timeline: Timeline,
  reader: RequestReader,
  { count, ...pair }: ComparedRequests & { readonly count: CountTexts },
): Promise<PrefixDiff> {
  return compareParted(timeline, reader, { ...partedPair(pair), count });
}

async function compareParted(
  timeline: Timeline,
  reader: RequestReader,
  { from, to, parting, count }: PartedPair & { readonly count: CountTexts },
): Promise<PrefixDiff> {
  const [a, b] = [from.rebuilt.proof, to.rebuilt.proof];
  const part = parting?.part ?? from.pieces.length;
  const equal = textsOf(to.pieces.slice(0, part));
  const rest = ({ pieces }: Request): readonly string[] => [
    (pieces[part]?.text ?? '').slice(parting?.text.length ?? 0),
    ...textsOf(pieces.slice(part + 1)),
  ];
  const [restFrom, restTo] = [rest(from), rest(to)];
  const lines = parting === undefined ? '' : repeatedLines(restTo.join('\n'), restFrom.join('\n'));
  const [shared = 0, behind = 0, written = 0, again = 0] = await tokensOfEach(
    [[...equal, parting?.text ?? ''], restFrom, restTo, [lines]],
    count,
  );
  const before = { bytes: bytesOf(equal) + (parting?.bytes ?? 0), tokens: shared };
  const isNext = reader.records.indexOf(b) === reader.records.indexOf(a) + 1;
  const { difference, cause } = await differenceOf(timeline, reader, { from, to, parting, before });
  const answers = answersOf(from, to, parting);
  const told = { before: from.side.usage, after: isNext ? to.side.usage : undefined };
  return {
    session: reader.session,
    from: from.side,
    to: to.side,
    isPrefix: parting === undefined,
    shared: before,
    written,
    again,
    difference,
    cause,
    answers,
    ...providerVerdicts({
      ...told,
      behind: parting === undefined ? 0 : behind,
      differs: difference?.section,
      lost: answers?.lost,
    }),
  };
}

/** Comparisons that are made where nobody says how many: both requests of each are made again and counted. */
const LISTED = 20;
/** Requests that are made and compared at once. */
const HELD = 32;

/**
 * How the requests of a session begin: two of them, each the last one up to its moment, or, without a range, each with the one before it, the newest first.
 * @throws {HistoryError} `unknown-session`, `malformed-moment`, `beyond-end` where there is none to compare, and what a rebuild throws
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
  const { session, records } = reader;
  const made = { session, tokenizer: TOKENIZER, isCut: false } as const;
  if (range !== undefined) {
    const moments = parseRange(range);
    const to = await recordAt(timeline, moments.to, reader);
    const from =
      moments.from === undefined ? records[records.indexOf(to) - 1] : await recordAt(timeline, moments.from, reader);
    if (from === undefined)
      throw new HistoryError('beyond-end', `the context at step ${to.step} is the first one of session ${session}`);
    const before = await reader.request(from, count);
    const after = from === to ? before : await reader.request(to, count);
    return { ...made, compared: [await comparePrefixes(timeline, reader, { from: before, to: after, count })] };
  }
  const some = records.slice(-limit - 1);
  const compared: PrefixDiff[] = [];
  let before: Request | undefined;
  // Requests are large: of a long list only some are held.
  for (let from = 0; from < some.length; from += HELD) {
    const once = countingOnce(count);
    const requests = await reader.requests(some.slice(from, from + HELD), once);
    const all = before === undefined ? requests : [before, ...requests];
    const pairs = all.slice(1).map((to, i) => partedPair({ from: all[i] as Request, to }));
    // What happened between those that part, of all of them at once.
    await reader.read(pairs.flatMap((pair) => (pair.parting === undefined ? [] : stepsBetween(reader, pair))));
    const diffs = await Promise.all(pairs.map((pair) => compareParted(timeline, reader, { ...pair, count: once })));
    compared.push(...diffs);
    before = all.at(-1);
  }
  compared.reverse();
  return { ...made, compared, isCut: some.length < records.length };
}
