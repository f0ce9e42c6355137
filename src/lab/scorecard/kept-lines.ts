import { usableLines } from '../../session/used-lines.js';
import type { Reach, RequestPart } from '../policies/policy.js';
import type { NeededLine, NeededLines } from '../timeline/needed-lines.js';
import { isVisible, type ModelCall, type TimelineItem } from '../timeline/timeline.js';

/** Counts of a session's needed lines: in the requests, missing but obtainable, or lost. */
export interface NeededCounts {
  readonly lines: number;
  readonly kept: number;
  /** Missing lines whose item the request names, if the policy returns texts by name. */
  readonly activate: number;
  /** Missing lines whose item the request names and whose file has not changed since. */
  readonly readAgain: number;
  readonly lost: number;
  /**
   * Number of calls with needed lines, and number of these calls whose request had all of their
   * lines.
   */
  readonly calls: number;
  readonly callsKept: number;
  /**
   * Number of calls whose request had all needed lines, not counting lines that only the model
   * wrote.
   */
  readonly inputsKept: number;
}

/** Number of characters at the start of an argument by which a model recognises a call. */
const RECOGNISED_CHARS = 24;
/** Number of last segments of a path that identify a file. */
const PATH_SEGMENTS = 2;

const endOf = (path: string): string => path.split('/').slice(-PATH_SEGMENTS).join('/');

/**
 * Returns the texts by which a request can name an item: the ends of its paths and the starts of
 * its arguments.
 */
function namesOf({ files, argumentTexts }: TimelineItem): readonly string[] {
  const paths = [...files.shows, ...files.changes].map(endOf);
  const starts = argumentTexts.flatMap((text) => {
    const [line = ''] = text.trim().split('\n');
    return line.length < 4 ? [] : [line.startsWith('/') ? endOf(line) : line.slice(0, RECOGNISED_CHARS)];
  });
  return [...new Set([...paths, ...starts])].filter((name) => name !== '');
}

/** The call of each result, by id, for each conversation. */
const calls = new WeakMap<readonly TimelineItem[], Map<string, TimelineItem>>();

function callOf(holder: TimelineItem, { items, visible }: ModelCall): TimelineItem | undefined {
  if (holder.kind === 'call') return holder;
  if (holder.callId === undefined) return undefined;
  const known = calls.get(items) ?? new Map<string, TimelineItem>();
  calls.set(items, known);
  const found = known.get(holder.callId);
  if (found !== undefined) return found;
  for (const item of items.slice(0, visible))
    if (item.kind === 'call' && item.callId !== undefined) known.set(item.callId, item);
  return known.get(holder.callId);
}

/**
 * Returns whether a request names a dropped text, so that the model knows of it. The request must
 * contain the call with its arguments, or a text of the policy that names the file or the start of
 * the call. An id alone is not enough.
 */
function isNamedIn(holder: TimelineItem, call: ModelCall, parts: readonly RequestPart[]): boolean {
  const made = callOf(holder, call);
  if (made !== undefined && made !== holder && isVisible(call, made) && parts.some(({ item }) => item === made))
    return true;
  const names = [...new Set([...namesOf(holder), ...(made === undefined ? [] : namesOf(made))])];
  return parts.some(({ item, text }) => item === undefined && names.some((name) => text.includes(name)));
}

/** Counts the needed lines that a policy's requests have or lack, call by call. */
export class KeptLines {
  readonly counts = { lines: 0, kept: 0, activate: 0, readAgain: 0, lost: 0, calls: 0, callsKept: 0, inputsKept: 0 };
  /** Number of texts that the model would have had to fetch. */
  repeats = 0;
  /** The first call whose request lacked a needed line. */
  firstMiss: number | undefined;
  readonly needed: number[] = [];
  readonly missed: number[] = [];
  readonly missedInputs: number[] = [];
  readonly #reach: Reach;
  readonly #lines: NeededLines;
  /** Cache of the lines in the policy's own texts. Most texts recur in every request. */
  #known = new Map<string, ReadonlySet<string>>();
  /** Items that the model would have fetched in the running turn. */
  readonly #fetched = new Set<TimelineItem>();

  constructor(lines: NeededLines, reach: Reach) {
    this.#lines = lines;
    this.#reach = reach;
  }

  /**
   * Counts which needed lines of a call its request contains. Returns the items that the model
   * would have to fetch.
   */
  take(call: ModelCall, parts: readonly RequestPart[]): readonly TimelineItem[] {
    if (call.opensTurn) this.#fetched.clear();
    const needed = this.#lines[call.index] ?? [];
    const missing = needed.length === 0 ? [] : this.#missing(needed, parts);
    const inputs = missing.filter(({ isOwn }) => !isOwn).length;
    this.needed.push(needed.length);
    this.missed.push(missing.length);
    this.missedInputs.push(inputs);
    if (needed.length === 0) return [];
    this.counts.lines += needed.length;
    this.counts.kept += needed.length - missing.length;
    this.counts.calls += 1;
    if (inputs === 0) this.counts.inputsKept += 1;
    if (missing.length === 0) this.counts.callsKept += 1;
    else this.firstMiss ??= call.index;
    return missing.flatMap((one) => this.#miss(one, call, parts));
  }

  #missing(needed: readonly NeededLine[], parts: readonly RequestPart[]): readonly NeededLine[] {
    const items = new Set<TimelineItem>();
    const own = new Map<string, ReadonlySet<string>>();
    for (const { item, text } of parts) {
      if (item !== undefined) items.add(item);
      else if (!own.has(text)) own.set(text, this.#known.get(text) ?? usableLines(text));
    }
    this.#known = own;
    const [texts, lines, all] = [[...own.keys()], [...own.values()], [...items]];
    return needed.filter(
      ({ line, holders, isIn }) =>
        !holders.some((holder) => items.has(holder)) &&
        !lines.some((known) => known.has(line)) &&
        // A path or a command also counts inside a longer line, such as an entry of a list of
        // files.
        !texts.some((text) => text.includes(line)) &&
        !all.some(isIn),
    );
  }

  #miss({ holders }: NeededLine, call: ModelCall, parts: readonly RequestPart[]): readonly TimelineItem[] {
    const named = holders.filter((holder) => isNamedIn(holder, call, parts));
    const isThere = named.some(
      ({ files, staleFrom }) => files.shows.length > 0 && (staleFrom === undefined || staleFrom > call.index),
    );
    if (named.length > 0 && this.#reach === 'activate') this.counts.activate += 1;
    else if (isThere) this.counts.readAgain += 1;
    else this.counts.lost += 1;
    const newest = holders.findLast(({ kind }) => kind !== 'text');
    if (newest === undefined || holders.some((holder) => this.#fetched.has(holder))) return [];
    this.#fetched.add(newest);
    this.repeats += 1;
    return [newest];
  }
}
