import { askedMoment, type MomentText, parseReference } from '../../history/ask/reference.js';
import { openRequests } from '../../history/ask/request-reader.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import { parseSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import { contentPartHash } from '../../store/head.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import { defined } from '../../values/defined.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import { type FoundText, linesWith } from './found-lines.js';
import { type BandState, bandWays } from './session-strip.js';

/** A range of consecutive calls, by the steps of the first and the last one. */
export interface CallRange {
  readonly from: number;
  readonly to: number;
  readonly calls: number;
}

/** A matching text: a message, or a version of an object. */
export interface SearchHit extends FoundText {
  readonly kind: 'message' | 'toolcall' | 'file';
  readonly name: string;
  readonly object?: ObjectId;
  /** For a message or a call. */
  readonly step?: number;
  readonly turn?: number;
  readonly version?: { readonly number: number; readonly validTime: Date; readonly txId: number };
  /**
   * The calls whose context contained the whole text, and those whose context had only the object's
   * line.
   */
  readonly whole: readonly CallRange[];
  readonly asLine: readonly CallRange[];
}

/** The result of a search. */
export interface SearchAnswer {
  readonly session: SessionId;
  readonly basis: Basis;
  readonly hits: readonly SearchHit[];
  readonly texts: number;
  /** UTF-16 units searched. */
  readonly chars: number;
  /** Whether more texts exist than were searched or listed. */
  readonly isCut: boolean;
}

const LISTED = 100;
/** Maximum UTF-16 units of one search. */
const MOST_CHARS = 100_000_000;
/** Objects whose versions are read concurrently. */
const BATCH = 64;

/** Groups consecutive calls into ranges. */
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

/** The data of a session for a search. */
interface Searched {
  readonly records: readonly AssemblyProof[];
  readonly ways: ReturnType<typeof bandWays>;
  readonly steps: readonly Step[];
}

const stateAt = (
  way: readonly { readonly step: number; readonly state: BandState }[] = [],
  step: number,
): BandState | undefined => way.findLast((one) => one.step <= step)?.state;

/**
 * Returns whether a record's context used a version of an object, given all its versions by valid
 * time.
 */
function heldBy(record: AssemblyProof, heads: readonly HistoryHead[], place: number): boolean {
  const hash = heads[place]?.document?.object_hash;
  const ahead = record.ahead?.find(({ id }) => id === heads[place]?.document?.['xt/id']);
  if (ahead !== undefined) return ahead.object_hash === hash;
  const [at, txId] = [record.basis?.validTime ?? record.at, record.basis?.txId ?? Number.POSITIVE_INFINITY];
  return heads.findLastIndex((head) => head.txId <= txId && head.validTime.getTime() <= at) === place;
}

function inContexts(
  { records, ways }: Searched,
  {
    object,
    heads,
    place,
  }: { readonly object: ObjectId; readonly heads: readonly HistoryHead[]; readonly place: number },
): Pick<SearchHit, 'whole' | 'asLine'> {
  const way = ways.get(object);
  const steps = records.map(({ step }) => step);
  const held = new Set(records.filter((record) => heldBy(record, heads, place)).map(({ step }) => step));
  const isShown = (step: number): boolean => held.has(step) && (stateAt(way, step) ?? 'line') !== 'line';
  const isLine = (step: number): boolean => held.has(step) && stateAt(way, step) === 'line';
  return { whole: callRanges(steps, isShown), asLine: callRanges(steps, isLine) };
}

/** Every context from its step on contains a message. */
function messageTexts({ steps, records }: Searched): readonly SearchedText[] {
  const calls = records.map(({ step }) => step);
  return steps.flatMap(({ seq, turn, message }): readonly SearchedText[] => {
    if (message === undefined) return [];
    const place = { kind: 'message', name: message.role, step: seq, turn } as const;
    return [
      { text: message.text, about: () => ({ ...place, whole: callRanges(calls, (step) => step >= seq), asLine: [] }) },
    ];
  });
}

/** Reads the texts of some versions by hash. */
async function textsOf(
  { present }: Timeline,
  heads: readonly HistoryHead[],
): Promise<(head: HistoryHead) => string | undefined> {
  const hashOf = ({ document }: HistoryHead): Sha256 | undefined =>
    document === undefined ? undefined : contentPartHash(document);
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

/** A message or version to search, and the details to report if it matches. */
export interface SearchedText {
  readonly text: string;
  about(): Omit<SearchHit, keyof FoundText>;
}

/**
 * The search space of a session: its basis, and its texts in batches. Messages come first, then
 * objects, latest first.
 */
export interface SearchedSession {
  readonly session: SessionId;
  readonly basis: Basis;
  batches(): AsyncGenerator<readonly SearchedText[]>;
}

/**
 * Yields every message of a session and every version of its index's objects, each with the
 * contexts that contained it. It derives these from the sets and versions at each call, by the
 * layouts of §4.1. A context of an epoch keeps its initial versions until the next epoch.
 *
 * @throws {HistoryError} `unknown-session`, `malformed-moment`
 */
export async function searchedSession(
  asked: Timeline,
  { session: reference, ...when }: MomentText & { readonly session: string },
): Promise<SearchedSession> {
  const { name, moment } = parseReference(reference);
  const { session, records, steps } = await openRequests(asked, name);
  const timeline = await asked.of(session);
  const { basis } = await timeline.find(askedMoment(when, moment), session);
  const searched: Searched = { records, steps, ways: bandWays(steps) };
  const byCall = new Map(steps.flatMap((step) => (step.call === undefined ? [] : [[step.call.id, step] as const])));
  const objects = [...searched.ways.keys()].toReversed();
  async function* batches(): AsyncGenerator<readonly SearchedText[]> {
    yield messageTexts(searched);
    for (let place = 0; place < objects.length; place += BATCH) {
      const batch = objects.slice(place, place + BATCH);
      const histories = await Promise.all(
        batch.map(async (object) => ({ object, heads: await timeline.present.historyOfHeads(object) })),
      );
      const textOf = await textsOf(
        timeline,
        histories.flatMap(({ heads }) => heads),
      );
      yield histories.flatMap(({ object, heads }) =>
        heads.flatMap((head, i): readonly SearchedText[] => {
          const text = textOf(head);
          if (text === undefined || head.txId > (basis.txId ?? Number.POSITIVE_INFINITY)) return [];
          const step = byCall.get(object);
          const { number, validTime, txId } = head;
          const about = (): ReturnType<SearchedText['about']> => ({
            kind: head.document?.type === 'file' ? 'file' : 'toolcall',
            name: nameOf(head, timeline),
            object,
            ...defined({ step: step?.seq, turn: step?.turn }),
            version: { number, validTime, txId },
            ...inContexts(searched, { object, heads, place: i }),
          });
          return [{ text, about }];
        }),
      );
    }
  }
  return { session, basis, batches };
}

/**
 * Searches the texts of a session. Reports for each match the contexts that contained it.
 *
 * @throws {HistoryError} `unknown-session`, `malformed-moment`
 */
export async function askSearch(
  timeline: Timeline,
  {
    text: wanted,
    limit = LISTED,
    ...asked
  }: MomentText & { readonly session: string; readonly text: string; readonly limit?: number | undefined },
): Promise<SearchAnswer> {
  const { session, basis, batches } = await searchedSession(timeline, asked);
  const hits: SearchHit[] = [];
  let [texts, chars, isCut] = [0, 0, false];
  for await (const batch of batches()) {
    isCut = (hits.length >= limit || chars >= MOST_CHARS) && batch.length > 0;
    if (isCut) break;
    for (const { text, about } of batch) {
      texts += 1;
      chars += text.length;
      const found = linesWith(text, wanted);
      if (found.count > 0) hits.push({ ...about(), ...found });
    }
  }
  return { session, basis, hits: hits.slice(0, limit), texts, chars, isCut: isCut || hits.length > limit };
}
