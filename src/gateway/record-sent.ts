import type { ContextSession } from '../client/session/context-session.js';
import type { SentProof } from '../objects/assembly-proof.js';
import { hashText } from '../objects/hashes.js';
import type { ObjectId, Sha256 } from '../objects/ids.js';
import { namesOf } from '../session/chat-places.js';
import type { ChatMark } from '../session/session-fold.js';
import { defined } from '../values/defined.js';
import type { AnswerFacts } from './answer-facts.js';
import type { SentRequest } from './read-log.js';

/** The outcome of recording a sent request. */
export type RecordedSent =
  | { readonly outcome: 'recorded'; readonly step: number }
  /** The session has no step with the request's answer yet. A later attempt may find it. */
  | { readonly outcome: 'unmatched' }
  /**
   * The request is not the context of a model call. It is a side request, an error, or a body that
   * is not text. Or it is the new part of a conversation whose beginning only the provider has.
   */
  | { readonly outcome: 'left-out'; readonly why: 'side' | 'failed' | 'not-text' | 'part' };

/** Minimum characters of a piece of a stored body, so that the list of its pieces stays short. */
const LEAST_PIECE = 4_096;

/**
 * Joins the spans of a body into larger pieces, from the front, so that requests with a common
 * beginning share pieces. A long span is a separate piece. Undefined if the body is not UTF-8.
 */
export function bodyPieces(spans: readonly Buffer[]): readonly string[] | undefined {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const pieces: string[] = [];
  let waiting: Buffer[] = [];
  let size = 0;
  const flush = (): void => {
    if (size > 0) pieces.push(decoder.decode(Buffer.concat(waiting)));
    [waiting, size] = [[], 0];
  };
  try {
    for (const span of spans) {
      if (span.length >= LEAST_PIECE) flush();
      waiting.push(span);
      size += span.length;
      if (size >= LEAST_PIECE) flush();
    }
    flush();
  } catch {
    return undefined;
  }
  return pieces;
}

/** A place in a session's chat. */
interface Place {
  readonly seq: number;
  readonly turn: number;
}

/** Returns the first step of an answer, by the ids of its calls and items. */
function placeById(session: ContextSession, { id, items = [], calls = [] }: AnswerFacts): Place | undefined {
  const { places } = session;
  const messages = [...(id === undefined ? [] : [id]), ...items].flatMap((native) => places.message(native) ?? []);
  const made = calls.flatMap((native) => places.calls(native).at(-1) ?? []);
  return [...messages, ...made].toSorted((a, b) => a.seq - b.seq)[0];
}

/** The places of the requests that this process recorded, and the step of the last one. */
interface Recorded {
  readonly places: Map<SentRequest['id'], Place>;
  last: number;
}

const RECORDED = new WeakMap<ContextSession, Recorded>();

const NONE: Recorded = { places: new Map(), last: 0 };

/**
 * Returns the first step of an answer. Finds a step by the answer's ids, or else by its texts,
 * searching first after the last recorded request. If messages of the same answer directly precede
 * the found step, returns the first of them.
 */
function placeOfAnswer(
  session: ContextSession,
  answer: AnswerFacts,
  { places, last: after }: Recorded = NONE,
): Place | undefined {
  const texts = new Set<Sha256>(answer.texts);
  const marks = session.state.marks;
  const isOfAnswer = (at: number): boolean => {
    const message = marks[at]?.message;
    return message?.role === 'assistant' && (message.text === '' || texts.has(hashText(message.text)));
  };
  let place = placeById(session, answer);
  // A client repeats a request whose answer broke off. If a step's text is followed by a call that
  // the broken answer lacks, the step belongs to the repeated request.
  const lacks = (call: ObjectId | undefined): boolean =>
    answer.isCut === true && call !== undefined && !answer.calls?.some((native) => namesOf(call).has(native));
  const isText = ({ message }: ChatMark, at: number): boolean =>
    message !== undefined && message.text !== '' && isOfAnswer(at) && !lacks(marks[at + 1]?.call);
  place ??= marks.find((mark, at) => mark.seq > after && isText(mark, at));
  // After a restart, the order may differ, so search all steps without a request.
  if (place === undefined) {
    const taken = new Set([...places.values()].map(({ seq }) => seq));
    place = marks.find((mark, at) => !taken.has(mark.seq) && isText(mark, at));
  }
  if (place === undefined) return undefined;
  let at = marks.findIndex(({ seq }) => seq === place.seq);
  while (isOfAnswer(at - 1) && marks[at - 1]?.turn === place.turn) at -= 1;
  return marks[at];
}

/** Returns the facts about a request and its answer for the assembly record. */
export function proofOf({
  wire,
  model,
  compaction,
  answer,
  rebuilt,
}: Pick<SentRequest, 'wire' | 'model' | 'compaction' | 'answer' | 'rebuilt'>): SentProof {
  const { id, stop, usage, blocks, verdicts } = answer ?? {};
  return {
    wire,
    ...defined({ model: answer?.model ?? model, answer: id, stop, usage, blocks, compaction, rebuilt: rebuilt?.from }),
    ...(verdicts === undefined ? {} : { verdicts: verdicts as NonNullable<SentProof['verdicts']> }),
  };
}

/** Returns whether a request sends only the new part of a conversation. */
const isPart = ({ thread, previous, conversation }: SentRequest): boolean =>
  thread?.type === 'continue' || previous !== undefined || conversation !== undefined;

type LeftOut = Extract<RecordedSent, { readonly outcome: 'left-out' }>;
const isPieces = (body: LeftOut | readonly string[]): body is readonly string[] => Array.isArray(body);

/** Returns the pieces of a request's body, or why the request is not a context of a model call. */
function bodyToKeep(request: SentRequest): LeftOut | readonly string[] {
  const { answer, side, spans, rebuilt } = request;
  if (side !== undefined) return { outcome: 'left-out', why: 'side' };
  if (answer === undefined || answer.status >= 400) return { outcome: 'left-out', why: 'failed' };
  // Only the provider has the text before this part, so the body would look like a shorter context.
  if (isPart(request) && rebuilt === undefined) return { outcome: 'left-out', why: 'part' };
  const pieces = bodyPieces(rebuilt?.spans ?? spans) ?? [];
  return pieces.length === 0 ? { outcome: 'left-out', why: 'not-text' } : pieces;
}

/**
 * Records a request as the context at a step, for a client without a transcript. Repeating it
 * records nothing more.
 */
export async function recordSentAt(
  session: ContextSession,
  request: SentRequest,
  { step, turn }: { readonly step: number; readonly turn: number },
): Promise<RecordedSent> {
  const body = bodyToKeep(request);
  if (!isPieces(body)) return body;
  const kept = await session.keepSent({ body, step, turn, at: request.at, sent: proofOf(request) });
  return kept === undefined ? { outcome: 'unmatched' } : { outcome: 'recorded', step };
}

/**
 * Returns whether a session contains the answer to a request, and the request contains the
 * session's user message before that answer. Used for wires whose requests name no session.
 */
export function fitsSession(session: ContextSession, { answer, spans }: SentRequest): boolean {
  const place = answer === undefined ? undefined : placeOfAnswer(session, answer, RECORDED.get(session));
  if (place === undefined) return false;
  const asked = session.state.marks.findLast(({ seq, message }) => seq < place.seq && message?.role === 'user');
  const text = JSON.stringify(asked?.message?.text ?? '').slice(1, -1);
  return text !== '' && Buffer.concat(spans).includes(text);
}

/**
 * Records a request as the context at the step before its answer (decision E7). Finds the answer by
 * its ids, or else by its texts. Repeating it records nothing more.
 */
export async function recordSent(session: ContextSession, request: SentRequest): Promise<RecordedSent> {
  const body = bodyToKeep(request);
  if (!isPieces(body)) return body;
  const { answer = { status: 0 }, at } = request;
  const recorded = RECORDED.get(session) ?? { places: new Map(), last: 0 };
  RECORDED.set(session, recorded);
  const place = recorded.places.get(request.id) ?? placeOfAnswer(session, answer, recorded);
  if (place === undefined) return { outcome: 'unmatched' };
  const step = place.seq - 1;
  const kept = await session.keepSent({ body, step, turn: place.turn, at, sent: proofOf(request) });
  if (kept === undefined) return { outcome: 'unmatched' };
  recorded.places.set(request.id, place);
  // Answers come in order, so the next one is searched for after this step.
  recorded.last = Math.max(recorded.last, place.seq);
  return { outcome: 'recorded', step };
}
