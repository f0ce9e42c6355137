import type { Json } from '../../objects/canonical-json.js';
import { defined } from '../../values/defined.js';
import { unlessAborted } from '../../values/promises.js';
import { messageOf } from '../../values/thrown.js';
import { cutText } from './cut-text.js';
import type { Entry, TokenCounter } from './entry.js';
import { criticalIdentifiers, lostIdentifiers } from './identifiers.js';

/** The entries to summarise, and the limits. */
export interface SummaryRequest {
  /** Entries of the session itself, never a summary. */
  readonly entries: readonly Entry[];
  readonly counter: TokenCounter;
  /** Maximum tokens of the summary. */
  readonly limit: number;
  /**
   * Maximum tokens of a digest that exceeds `limit` to keep the requirements of users. Default:
   * `limit`.
   */
  readonly spare?: number;
  /** The part of the limit that required text takes, in tokens. Default: 0. */
  readonly required?: number;
}

/** One attempt of a summariser. */
export interface SummaryTry extends SummaryRequest {
  /** The identifiers that the summary must contain. */
  readonly identifiers: readonly string[];
  /** Counts from 1. `complaint` says what was wrong with the previous attempt. */
  readonly attempt: number;
  readonly complaint: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A summary written in a structured form. `text` is for the model; `form` is stored with it. */
export interface FormedText {
  readonly text: string;
  readonly form: Json;
}

/** Writes summaries, usually by calling a model. If it fails, the digest is used. */
export interface Summariser {
  readonly name: string;
  summarise(request: SummaryTry): Promise<string | FormedText>;
}

/**
 * Makes a summary without a model: a pure function of the request. The summary never exceeds its
 * limit, so it may be empty.
 */
export type Digest = (request: SummaryRequest) => Summary;

/** An audited summary of some entries. */
export interface Summary {
  readonly text: string;
  readonly tokens: number;
  /** The name of the summariser that wrote it; `digest` if no model did. */
  readonly by: string;
  /** The identifiers that the summary had to contain, and those that it lacks. */
  readonly identifiers: readonly string[];
  readonly lost: readonly string[];
  /** The faults of the rejected attempts. */
  readonly refused: readonly string[];
  /** The structured form of the summary, if it has one. */
  readonly form?: Json;
}

/** The name that stands for a summary without a model. */
const DIGEST = 'digest';

const TRIES = 2;
const LONGEST_ASK = 160;
const SHARE_OF_IDENTIFIERS = 0.5;

/** Replaces each run of white space, line breaks included, by one space. */
export const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** Returns the beginning of a text as one line. */
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

/** Returns a line per turn: its request and the tools that it used. */
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

/** Returns the last pieces, as many as fit, in their order. */
export function lastThatFit(pieces: readonly string[], limit: number, counter: TokenCounter): readonly string[] {
  const kept: string[] = [];
  let room = limit;
  for (const piece of pieces.toReversed()) {
    // Adds 1 for the separator.
    room -= counter.count(piece) + 1;
    if (room < 0) break;
    kept.push(piece);
  }
  return kept.toReversed();
}

/** Returns the line that counts the omitted entries. */
export function leftOutLine(entries: readonly Entry[]): string {
  const [first, last] = [entries[0]?.turn ?? 0, entries.at(-1)?.turn ?? 0];
  const turns = first === last ? `turn ${first}` : `turns ${first} to ${last}`;
  return `${entries.length} entries of ${turns} are left out here; the session keeps them whole.`;
}

/** Returns a summary with a text that was made without a model. */
export const digestSummary = (text: string, identifiers: readonly string[], counter: TokenCounter): Summary => ({
  text,
  tokens: counter.count(text),
  by: DIGEST,
  identifiers,
  lost: lostIdentifiers(text, identifiers),
  refused: [],
});

/**
 * Returns the summary made without a model: the number of entries and their turns, the identifiers,
 * and a line per turn. If not all lines fit, the newest stay. The same entries give the same text.
 * Never exceeds its limit, so it may be empty.
 */
export function digestOf({ entries, counter, limit }: SummaryRequest): Summary {
  const identifiers = criticalIdentifiers(entries);
  const head = leftOutLine(entries);
  const room = limit - counter.count(head) - 1;
  const named = lastThatFit(identifiers, room * SHARE_OF_IDENTIFIERS, counter);
  const names = named.length === 0 ? [] : [`Names: ${named.join(', ')}`];
  const left = room - names.reduce((sum, line) => sum + counter.count(line) + 1, 0);
  const lines = [head, ...names, ...lastThatFit(turnLines(entries), left, counter)];
  // Lines that fit one by one can exceed the limit, because joining two lines can add a token.
  while (lines.length > 0 && counter.count(lines.join('\n')) > limit) lines.splice(lines.length > 1 ? 1 : 0, 1);
  const text = lines.join('\n');
  return digestSummary(text, identifiers, counter);
}

/** Returns what is wrong with a summary. Undefined if it is valid. */
function complaintOf(text: string, { identifiers, limit, counter }: SummaryTry): string | undefined {
  if (text.trim() === '') return 'it is empty';
  if (!text.isWellFormed()) return 'it contains a lone surrogate';
  const tokens = counter.count(text);
  if (tokens > limit) return `it has ${tokens} tokens, and the limit is ${limit}`;
  const lost = lostIdentifiers(text, identifiers);
  return lost.length === 0 ? undefined : `it does not name ${lost.join(', ')}`;
}

/**
 * Returns a summariser's summary after an audit: not empty, within the limit, with every critical
 * identifier. The summariser has two attempts; the second gets the fault of the first. If both
 * fail, returns the digest made without a model (default: `digestOf`). Never fails because of the
 * summariser, and ends when the signal aborts.
 */
export async function auditedSummary(
  request: SummaryRequest,
  {
    summariser,
    signal,
    digest = digestOf,
  }: {
    readonly summariser: Summariser | undefined;
    readonly signal?: AbortSignal | undefined;
    readonly digest?: Digest | undefined;
  },
): Promise<Summary> {
  const fallback = digest(request);
  if (summariser === undefined) return fallback;
  // Identifiers that do not fit into the summary are not required.
  const identifiers = lastThatFit(
    fallback.identifiers,
    (request.limit - (request.required ?? 0)) * SHARE_OF_IDENTIFIERS,
    request.counter,
  );
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

/**
 * Wraps a text that no human wrote in reminder tags, for the role of the user. Quoted tags can
 * neither end the reminder nor begin another one.
 */
export const reminderText = (text: string): string =>
  `${OPEN}${text.replace(/<(?=\/?system-reminder)/gi, '(')}${CLOSE}`;

/** Maximum tokens of the reminder tags. */
export const reminderOverhead = (counter: TokenCounter): number => counter.count(OPEN) + counter.count(CLOSE) + 2;

/** Returns a text as a reminder within a limit. Undefined if even the tags do not fit. */
export function reminderWithin(text: string, limit: number, counter: TokenCounter): string | undefined {
  const room = limit - reminderOverhead(counter);
  const cut = room <= 0 || text === '' ? '' : cutText(text, room, counter);
  const whole = reminderText(cut);
  return cut === '' || counter.count(whole) > limit ? undefined : whole;
}
