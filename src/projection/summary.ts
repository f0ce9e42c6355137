import type { Json } from '../objects/canonical-json.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import { unlessAborted } from '../values/unless-aborted.js';
import { cutText } from './cut-text.js';
import type { Entry, TokenCounter } from './entry.js';
import { criticalIdentifiers, lostIdentifiers } from './identifiers.js';

/** What is to be summarised, and within which bounds. */
export interface SummaryRequest {
  /** Of the session itself, never a summary. */
  readonly entries: readonly Entry[];
  readonly counter: TokenCounter;
  /** The most tokens that the summary may have. */
  readonly limit: number;
  /** A digest may go beyond its limit to there for what users demanded; the limit if left out. */
  readonly spare?: number;
  /** The tokens of the limit that what must be said takes; 0 if left out. */
  readonly required?: number;
}

/** One try of a summariser. */
export interface SummaryTry extends SummaryRequest {
  /** What the summary must name. */
  readonly identifiers: readonly string[];
  /** From 1; what was wrong with the try before stands in `complaint`. */
  readonly attempt: number;
  readonly complaint: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A summary that was written in a form of its own: what a model reads of it, and the form, which is kept beside it. */
export interface FormedText {
  readonly text: string;
  readonly form: Json;
}

/** Whoever writes summaries, mostly by asking a model. May fail: then the deterministic digest stands in for it. */
export interface Summariser {
  readonly name: string;
  summarise(request: SummaryTry): Promise<string | FormedText>;
}

/** A summary without a model: a function of what is asked, never over its limit, so that it may be empty. */
export type Digest = (request: SummaryRequest) => Summary;

/** A summary of some entries, as it was audited. */
export interface Summary {
  readonly text: string;
  readonly tokens: number;
  /** The name of the summariser that wrote it; `digest` for the deterministic one. */
  readonly by: string;
  /** The identifiers that it was to name, and those of them that it does not. */
  readonly identifiers: readonly string[];
  readonly lost: readonly string[];
  /** What was wrong with each try that was not taken. */
  readonly refused: readonly string[];
  /** The form in which it was written, where it has one of its own. */
  readonly form?: Json;
}

/** The name of the deterministic summariser. */
export const DIGEST = 'digest';

const TRIES = 2;
const LONGEST_ASK = 160;
const SHARE_OF_IDENTIFIERS = 0.5;

/** A text without line breaks or other runs of white space. */
export const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** The beginning of a text in one line. */
export function shownLine(text: string, most = LONGEST_ASK): string {
  const line = oneLine(text);
  if (line.length <= most) return line;
  const cut = line.slice(0, most);
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)} …`;
}

function toolCounts(entries: readonly Entry[]): string {
  const counts = new Map<string, number>();
  for (const entry of entries) if (entry.kind === 'result') counts.set(entry.tool, (counts.get(entry.tool) ?? 0) + 1);
  return [...counts].map(([tool, count]) => (count === 1 ? oneLine(tool) : `${oneLine(tool)} x${count}`)).join(', ');
}

/** A line for each turn: what was asked, with which tools it was worked on. */
export function turnLines(entries: readonly Entry[]): readonly string[] {
  const turns = new Map<number, Entry[]>();
  for (const entry of entries) {
    const own = turns.get(entry.turn);
    if (own === undefined) turns.set(entry.turn, [entry]);
    else own.push(entry);
  }
  return [...turns].map(([turn, own]) => {
    const ask = own.find(({ kind }) => kind === 'user');
    const tools = toolCounts(own);
    const asked = ask?.kind === 'user' ? ` ${shownLine(ask.text)}` : ' (goes on)';
    return `Turn ${turn}:${asked}${tools === '' ? '' : ` [${tools}]`}`;
  });
}

/** As many of some pieces as fit, the last ones first, in their order. */
export function lastThatFit(pieces: readonly string[], limit: number, counter: TokenCounter): readonly string[] {
  const kept: string[] = [];
  let room = limit;
  for (const piece of pieces.toReversed()) {
    // The separator too.
    room -= counter.count(piece) + 1;
    if (room < 0) break;
    kept.push(piece);
  }
  return kept.toReversed();
}

/** Says how much is left out. */
export function leftOutLine(entries: readonly Entry[]): string {
  const [first, last] = [entries[0]?.turn ?? 0, entries.at(-1)?.turn ?? 0];
  const turns = first === last ? `turn ${first}` : `turns ${first} to ${last}`;
  return `${entries.length} entries of ${turns} are left out here; the session keeps them whole.`;
}

/**
 * The deterministic summary: how many entries of which turns, the identifiers, a line for each turn, the newest first to stay where not all fit. Needs no model
 * and gives the same text for the same entries; never over its limit, so that it may be empty.
 */
export function digestOf({ entries, counter, limit }: SummaryRequest): Summary {
  const identifiers = criticalIdentifiers(entries);
  const head = leftOutLine(entries);
  const room = limit - counter.count(head) - 1;
  const named = lastThatFit(identifiers, room * SHARE_OF_IDENTIFIERS, counter);
  const names = named.length === 0 ? [] : [`Names: ${named.join(', ')}`];
  const left = room - names.reduce((sum, line) => sum + counter.count(line) + 1, 0);
  const lines = [head, ...names, ...lastThatFit(turnLines(entries), left, counter)];
  // What fits line by line may be over by a token where two lines meet.
  while (lines.length > 0 && counter.count(lines.join('\n')) > limit) lines.splice(lines.length > 1 ? 1 : 0, 1);
  const text = lines.join('\n');
  return { text, tokens: counter.count(text), by: DIGEST, identifiers, lost: lostIdentifiers(text, identifiers), refused: [] };
}

/** What is wrong with a summary; undefined where nothing is. */
function complaintOf(text: string, { identifiers, limit, counter }: SummaryTry): string | undefined {
  if (text.trim() === '') return 'it is empty';
  if (!text.isWellFormed()) return 'it holds half a surrogate pair';
  const tokens = counter.count(text);
  if (tokens > limit) return `it has ${tokens} tokens of ${limit}`;
  const lost = lostIdentifiers(text, identifiers);
  return lost.length === 0 ? undefined : `it does not name ${lost.join(', ')}`;
}

/**
 * A summary by a summariser, audited: not empty, within the limit, with every critical identifier. It has two tries, the second with what was wrong with the
 * first; then the deterministic digest is taken, `digestOf` if no other one is given. Never fails because of the summariser, and ends when the signal aborts it.
 */
export async function auditedSummary(
  request: SummaryRequest,
  {
    summariser,
    signal,
    digest = digestOf,
  }: { readonly summariser: Summariser | undefined; readonly signal?: AbortSignal | undefined; readonly digest?: Digest | undefined },
): Promise<Summary> {
  const fallback = digest(request);
  if (summariser === undefined) return fallback;
  // What has no room in the summary cannot be asked of it.
  const identifiers = lastThatFit(fallback.identifiers, (request.limit - (request.required ?? 0)) * SHARE_OF_IDENTIFIERS, request.counter);
  const refused: string[] = [];
  for (let attempt = 1; attempt <= TRIES && signal?.aborted !== true; attempt++) {
    const one: SummaryTry = { ...request, identifiers, attempt, complaint: refused.at(-1), signal };
    try {
      const asked = Promise.resolve(summariser.summarise(one));
      const written = signal === undefined ? await asked : await unlessAborted(asked, signal);
      const { text, form } = typeof written === 'string' ? { text: written, form: undefined } : written;
      const complaint = complaintOf(text, one);
      if (complaint === undefined) {
        const tokens = request.counter.count(text);
        return { text, tokens, by: summariser.name, identifiers, lost: [], refused, ...defined({ form }) };
      }
      refused.push(complaint);
    } catch (error) {
      refused.push(messageOf(error));
    }
  }
  return { ...fallback, refused };
}

const OPEN = '<system-reminder>\n';
const CLOSE = '\n</system-reminder>';

/** A text as it stands in the chat where no human wrote it: in the role of the user, between the tags of a reminder. What it quotes cannot end it, nor begin another one. */
export const reminderText = (text: string): string => `${OPEN}${text.replace(/<(?=\/?system-reminder)/gi, '(')}${CLOSE}`;

/** The tokens that the tags of a reminder take at most. */
export const reminderOverhead = (counter: TokenCounter): number => counter.count(OPEN) + counter.count(CLOSE) + 2;

/** A text within a limit as a reminder; undefined where not even its tags fit. */
export function reminderWithin(text: string, limit: number, counter: TokenCounter): string | undefined {
  const room = limit - reminderOverhead(counter);
  const cut = room <= 0 || text === '' ? '' : cutText(text, room, counter);
  const whole = reminderText(cut);
  return cut === '' || counter.count(whole) > limit ? undefined : whole;
}
