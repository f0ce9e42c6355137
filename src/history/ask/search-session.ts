import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import { parseSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import { contentPartHash } from '../../store/head.js';
import type { HistoryHead } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import type { Timeline } from '../rebuild/timeline.js';
import { askedMoment, type MomentText, parseReference } from './reference.js';
import { openRequests } from './request-reader.js';
import { type BandState, bandWays } from './session-strip.js';

/** A place where a text stands. */
export interface FoundLine {
  /** From 1. */
  readonly line: number;
  /** The line, or what of it stands around the text. */
  readonly excerpt: string;
}

/** Calls of a session in a row, by the steps of the first and the last of them. */
export interface CallRange {
  readonly from: number;
  readonly to: number;
  readonly calls: number;
}

/** A text that holds what is looked for: a message, or a version of an object. */
export interface SearchHit {
  readonly kind: 'message' | 'toolcall' | 'file';
  readonly name: string;
  readonly object?: ObjectId;
  /** Of a message or a call. */
  readonly step?: number;
  readonly turn?: number;
  readonly version?: { readonly number: number; readonly validTime: Date; readonly txId: number };
  /** How often it stands there. */
  readonly count: number;
  /** The first of these. */
  readonly lines: readonly FoundLine[];
  /** The calls in whose context it stood whole, and those where its object was a line alone. */
  readonly whole: readonly CallRange[];
  readonly asLine: readonly CallRange[];
}

/** What a search found. */
export interface SearchAnswer {
  readonly session: SessionId;
  readonly basis: Basis;
  readonly hits: readonly SearchHit[];
  readonly texts: number;
  /** UTF-16 units that were looked through. */
  readonly chars: number;
  /** Whether there is more than was looked through or listed. */
  readonly isCut: boolean;
}

const LISTED = 100;
const MOST_LINES = 5;
/** UTF-16 units that one search looks through. */
const MOST_CHARS = 100_000_000;
const AROUND = 80;
/** Objects whose versions are read at once. */
const BATCH = 64;

/** Whether and where a text holds another one; letters match whatever their case where the one that is looked for has no capital. */
export function linesWith(text: string, wanted: string): Pick<SearchHit, 'count' | 'lines'> {
  const anyCase = wanted === wanted.toLowerCase();
  // Lower case of some letters is longer: then places would be others.
  const lowered = anyCase ? text.toLowerCase() : text;
  const searched = lowered.length === text.length ? lowered : text;
  const lines: FoundLine[] = [];
  let [count, line, counted] = [0, 1, 0];
  for (let at = searched.indexOf(wanted); at >= 0; at = searched.indexOf(wanted, at + wanted.length)) {
    count += 1;
    if (lines.length >= MOST_LINES) continue;
    for (let end = text.indexOf('\n', counted); end >= 0 && end < at; end = text.indexOf('\n', end + 1)) {
      line += 1;
      counted = end + 1;
    }
    const start = Math.max(text.lastIndexOf('\n', at - 1) + 1, at - AROUND);
    const stop = text.indexOf('\n', at + wanted.length);
    const excerpt = text.slice(at === 0 ? 0 : start, Math.min(stop < 0 ? text.length : stop, at + wanted.length + AROUND));
    if (lines.at(-1)?.line !== line) lines.push({ line, excerpt: excerpt.toWellFormed() });
  }
  return { count, lines };
}

/** Calls that follow one another, as ranges. */
export function callRanges(calls: readonly number[], isIn: (step: number) => boolean): readonly CallRange[] {
  const ranges: { from: number; to: number; calls: number }[] = [];
  let running = false;
  for (const step of calls) {
    const last = ranges.at(-1);
    if (!isIn(step)) running = false;
    else if (running && last !== undefined) Object.assign(last, { to: step, calls: last.calls + 1 });
    else {
      ranges.push({ from: step, to: step, calls: 1 });
      running = true;
    }
  }
  return ranges;
}

/** What is known of a session while it is searched. */
interface Searched {
  readonly records: readonly AssemblyProof[];
  readonly ways: ReturnType<typeof bandWays>;
  readonly steps: readonly Step[];
}

const stateAt = (way: readonly { readonly step: number; readonly state: BandState }[] = [], step: number): BandState | undefined =>
  way.findLast((one) => one.step <= step)?.state;

/** Whether a record's context was read at a version of an object, of all its versions by valid time. */
function heldBy(record: AssemblyProof, heads: readonly HistoryHead[], place: number): boolean {
  const hash = heads[place]?.document?.object_hash;
  const ahead = record.ahead?.find(({ id }) => id === heads[place]?.document?.['xt/id']);
  if (ahead !== undefined) return ahead.object_hash === hash;
  const [at, txId] = [record.basis?.validTime ?? record.at, record.basis?.txId ?? Number.POSITIVE_INFINITY];
  return heads.findLastIndex((head) => head.txId <= txId && head.validTime.getTime() <= at) === place;
}

function inContexts(
  { records, ways }: Searched,
  { object, heads, place }: { readonly object: ObjectId; readonly heads: readonly HistoryHead[]; readonly place: number },
): Pick<SearchHit, 'whole' | 'asLine'> {
  const way = ways.get(object);
  const steps = records.map(({ step }) => step);
  const held = new Set(records.filter((record) => heldBy(record, heads, place)).map(({ step }) => step));
  const isShown = (step: number): boolean => held.has(step) && (stateAt(way, step) ?? 'line') !== 'line';
  const isLine = (step: number): boolean => held.has(step) && stateAt(way, step) === 'line';
  return { whole: callRanges(steps, isShown), asLine: callRanges(steps, isLine) };
}

/** A message stands in every context from its step on. */
function messageHits({ steps, records }: Searched, wanted: string): readonly SearchHit[] {
  const calls = records.map(({ step }) => step);
  return steps.flatMap(({ seq, turn, message }): readonly SearchHit[] => {
    if (message === undefined) return [];
    const found = linesWith(message.text, wanted);
    if (found.count === 0) return [];
    const whole = callRanges(calls, (step) => step >= seq);
    return [{ kind: 'message', name: message.role, step: seq, turn, ...found, whole, asLine: [] }];
  });
}

/** The texts of some versions under their own hashes. */
async function textsOf({ present }: Timeline, heads: readonly HistoryHead[]): Promise<(head: HistoryHead) => string | undefined> {
  const hashOf = ({ document }: HistoryHead): Sha256 | undefined => (document === undefined ? undefined : contentPartHash(document));
  const contents = await present.contents([...new Set(heads.flatMap((head) => hashOf(head) ?? []))]);
  return (head) => {
    const hash = hashOf(head);
    const content = head.document?.content;
    return hash === undefined ? (typeof content === 'string' ? content : undefined) : contents.get(hash);
  };
}

function nameOf({ document }: HistoryHead, { paths }: Timeline): string {
  const source = document?.type === 'file' ? parseSource(document.source) : null;
  return source === null ? String(document?.tool ?? document?.type) : paths.display(source);
}

/**
 * Looks through every message of a session and every version of every object of its index, and says of each that holds a text in which contexts it stood: by the sets
 * and versions of each call, as the layouts of §4.1 show them (a context of an epoch keeps what it began with until the next one).
 * @throws {HistoryError} `unknown-session`, `malformed-moment`
 */
export async function askSearch(
  timeline: Timeline,
  {
    session: reference,
    text,
    limit = LISTED,
    ...when
  }: MomentText & { readonly session: string; readonly text: string; readonly limit?: number | undefined },
): Promise<SearchAnswer> {
  const { name, moment } = parseReference(reference);
  const reader = await openRequests(timeline, name);
  const { session, records, steps } = reader;
  const { basis } = await timeline.find(askedMoment(when, moment), session);
  const searched: Searched = { records, steps, ways: bandWays(steps) };
  const hits: SearchHit[] = [...messageHits(searched, text)];
  let [texts, chars] = [steps.length, steps.reduce((sum, { message }) => sum + (message?.text.length ?? 0), 0)];
  const byCall = new Map(steps.flatMap((step) => (step.call === undefined ? [] : [[step.call.id, step] as const])));
  const objects = [...searched.ways.keys()].toReversed();
  let place = 0;
  for (; place < objects.length && hits.length < limit && chars < MOST_CHARS; place += BATCH) {
    const batch = objects.slice(place, place + BATCH);
    const histories = await Promise.all(batch.map(async (object) => ({ object, heads: await timeline.present.historyOfHeads(object) })));
    const textOf = await textsOf(
      timeline,
      histories.flatMap(({ heads }) => heads),
    );
    for (const { object, heads } of histories) {
      for (const [i, head] of heads.entries()) {
        const whole = textOf(head);
        if (whole === undefined || head.txId > (basis.txId ?? Number.POSITIVE_INFINITY)) continue;
        texts += 1;
        chars += whole.length;
        const found = linesWith(whole, text);
        if (found.count === 0) continue;
        const step = byCall.get(object);
        const { number, validTime, txId } = head;
        hits.push({
          kind: head.document?.type === 'file' ? 'file' : 'toolcall',
          name: nameOf(head, timeline),
          object,
          ...defined({ step: step?.seq, turn: step?.turn }),
          version: { number, validTime, txId },
          ...found,
          ...inContexts(searched, { object, heads, place: i }),
        });
      }
    }
  }
  const isCut = place < objects.length || hits.length > limit;
  return { session, basis, hits: hits.slice(0, limit), texts, chars, isCut };
}
