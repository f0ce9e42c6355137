import { parseRange } from '../../history/rebuild/moment.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { TOKENIZER } from '../../history/rebuild/tokenizer.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { describe } from '../../review/ask/described-objects.js';
import { comparePrefixes, type PrefixDiff } from '../../review/ask/prefix-diff.js';
import { prefixSentence } from '../../review/ask/prefix-sentence.js';
import { type RequestItem, requestItems } from '../../review/ask/request-items.js';
import { ActsBetween, type RequestPair, requestPair } from '../../review/ask/request-pair.js';
import { openRequests, type Request, type RequestReader } from '../../review/ask/request-reader.js';
import { countHere, countTokens } from '../../review/ask/token-count.js';
import { defined } from '../../values/defined.js';
import { ownMember } from '../../values/own-member.js';
import { ACTORS, type Actor, type Between, type ChangeKind, toldOf } from './change-causes.js';
import { type Compaction, compactionBetween, SUMMARY } from './compaction.js';
import { countedCalls, fallSentence, lossSentence, uncountedSentence } from './counted-calls.js';
import { unseenAt } from './request-view.js';

/** The change of one object, message or section between two requests. */
export interface CallChange {
  /** The id of an object, `step:N` for a message, or the name of a section. */
  readonly key: string;
  readonly object?: ObjectId;
  /** The path of a file, the name of a call, or the role of a message. */
  readonly name: string;
  readonly kind: ChangeKind;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly actor: Actor;
  /** The step that caused it, counted from the session's beginning. */
  readonly step?: number;
  /** The cause in one phrase. */
  readonly why: string;
}

/** Two requests of a session, compared item by item. */
export interface CallChanges {
  readonly session: SessionId;
  readonly tokenizer: typeof TOKENIZER;
  /** Where the requests diverge. Undefined if one of them has no record. */
  readonly prefix?: PrefixDiff;
  /** Why a request has no record. */
  readonly why?: string;
  /** One sentence about the tokens written again, by the provider's count if known, and why. */
  readonly sentence: string;
  /** The provider's count of the second request, if the first request directly precedes it. */
  readonly counted?: {
    readonly read: number;
    readonly fresh: number;
    readonly again: number;
    /**
     * How many tokens shorter the second request is than the first, although the transcript shows
     * no removal.
     */
    readonly fewer: number;
  };
  /** The last compaction between the two requests. */
  readonly compaction?: Compaction;
  readonly changes: readonly CallChange[];
  /** Number of items that are equal in both requests. */
  readonly stayed: number;
}

/** All parts of one item in one request. */
interface Stated {
  readonly key: string;
  readonly object?: ObjectId;
  readonly section: string;
  readonly hasText: boolean;
  readonly text: string;
}

const keyOf = ({ object, step, form, section }: RequestItem): string =>
  form === 'message' && step !== undefined ? `step:${step}` : (object ?? section);

/** The items of a request by key, in its order. */
function statedIn({ pieces, pool }: Request): ReadonlyMap<string, Stated> {
  const found = new Map<string, Stated>();
  for (const item of requestItems(pieces, pool)) {
    const key = keyOf(item);
    const before = found.get(key);
    const hasText = before?.hasText === true || item.form !== 'line';
    const text = `${before?.text ?? ''}${item.text}`;
    found.set(key, { key, section: item.section, hasText, text, ...defined({ object: item.object }) });
  }
  return found;
}

/** Returns the smallest set of numbers whose removal leaves the others in ascending order. */
export function outOfOrder(numbers: readonly number[]): ReadonlySet<number> {
  const ends: number[] = [];
  const before: (number | undefined)[] = [];
  const places: number[] = [];
  for (const [i, n] of numbers.entries()) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as number) < n) low = middle + 1;
      else high = middle;
    }
    ends[low] = n;
    places[low] = i;
    before[i] = low === 0 ? undefined : places[low - 1];
  }
  const rising = new Set<number>();
  for (let i = places[ends.length - 1]; i !== undefined; i = before[i]) rising.add(numbers[i] as number);
  return new Set(numbers.filter((n) => !rising.has(n)));
}

function kindOf(before: Stated | undefined, after: Stated | undefined, isMoved: boolean): ChangeKind | undefined {
  if (before === undefined) return 'came';
  if (after === undefined) return 'left';
  if (before.hasText !== after.hasText) return after.hasText ? 'loaded' : 'collapsed';
  if (before.text !== after.text) return 'changed';
  return isMoved ? 'moved' : undefined;
}

function nameOf({ key, object, section }: Stated, { named, acts: { reader } }: Between): string {
  if (object !== undefined) return named.get(object)?.name ?? object;
  if (!key.startsWith('step:')) return section;
  const step = reader.steps.find(({ seq }) => `step:${seq}` === key);
  return step?.message?.role ?? (step?.event?.kind === 'compacted' ? SUMMARY : key);
}

function changesBetween(between: Between): Pick<CallChanges, 'changes' | 'stayed'> {
  const [before, after] = [statedIn(between.acts.from), statedIn(between.acts.to)];
  const order = new Map([...before.keys()].map((key, i) => [key, i]));
  const common = [...after.keys()].flatMap((key) => order.get(key) ?? []);
  const misplaced = outOfOrder(common);
  const changes = [...new Set([...before.keys(), ...after.keys()])].flatMap((key): readonly CallChange[] => {
    const [was, is] = [before.get(key), after.get(key)];
    const stated = (is ?? was) as Stated;
    const kind = kindOf(was, is, misplaced.has(order.get(key) ?? -1));
    if (kind === undefined) return [];
    const tokens = (one: Stated | undefined): number => (one === undefined ? 0 : countTokens(one.text));
    const { object } = stated;
    return [
      {
        key,
        ...defined({ object }),
        name: nameOf(stated, between),
        kind,
        tokensBefore: tokens(was),
        tokensAfter: tokens(is),
        ...toldOf(stated, kind, between),
      },
    ];
  });
  const stayed = common.length - changes.filter(({ kind }) => kind !== 'came' && kind !== 'left').length;
  return { changes, stayed };
}

/**
 * Compares two requests of a session: the last one up to each moment of the range. Without a range,
 * it compares the newest request with the previous one.
 *
 * @throws {HistoryError} `unknown-session`, `malformed-moment`; `beyond-end` if there is no request
 * to compare; also the errors of a rebuild
 */
export async function askChanges(
  timeline: Timeline,
  { name, range = '..now' }: { readonly name: string; readonly range?: string | undefined },
): Promise<CallChanges> {
  const reader = await openRequests(timeline, name);
  const unseen = await unseenAt(timeline, parseRange(range).to, reader);
  if (unseen !== undefined) return unrecordedChanges(reader, unseen);
  return changesTo(timeline, reader, await requestPair(timeline, reader, { range, count: countHere }));
}

/**
 * Returns the known changes to a request without a record: the messages and calls since the
 * previous request, or those of its turn.
 */
async function unrecordedChanges(
  reader: RequestReader,
  { step, why }: { readonly step: number; readonly why: string },
): Promise<CallChanges> {
  const { session, requests, timeline } = reader;
  const turn = reader.steps.find(({ seq }) => seq === step)?.turn;
  const first = reader.steps.find((one) => one.turn === turn)?.seq ?? 1;
  const from = Math.max(requests.findLast((request) => request.step < step)?.step ?? 0, first - 1);
  const steps = reader.steps.filter(({ seq }) => seq > from && seq <= step);
  await reader.read(steps);
  const named = await describe(
    timeline,
    steps.flatMap(({ call }) => call?.id ?? []),
  );
  const changes = steps.flatMap(({ seq, message, call }): readonly CallChange[] => {
    const at = { kind: 'came', tokensBefore: 0, step: seq } as const;
    if (message !== undefined) {
      const { role, text } = message;
      const actor = ownMember(ACTORS, role) ?? 'harness';
      const tokensAfter = countTokens(text);
      return [{ ...at, key: `step:${seq}`, name: role, tokensAfter, actor, why: `a message of ${role}, step ${seq}` }];
    }
    const texts = call === undefined ? undefined : reader.calls.get(call.id);
    if (call === undefined || texts === undefined) return [];
    const tokensAfter = countTokens(texts.head) + countTokens(texts.output);
    const name = named.get(call.id)?.name ?? call.id;
    return [{ ...at, key: call.id, object: call.id, name, tokensAfter, actor: 'agent', why: `a call, step ${seq}` }];
  });
  const compaction = await compactionBetween(reader, { from, to: step });
  const sentence = `The request was not recorded: ${why}. These are the messages and calls of its turn.`;
  return { session, tokenizer: TOKENIZER, why, sentence, changes, stayed: 0, ...defined({ compaction }) };
}

/** Compares two rebuilt requests item by item. */
export async function changesTo(timeline: Timeline, reader: RequestReader, pair: RequestPair): Promise<CallChanges> {
  const prefix = await comparePrefixes(timeline, reader, { ...pair, count: countHere });
  const acts = await ActsBetween.read(reader, pair);
  const pool = new Map([pair.from, pair.to].flatMap((request) => request.pool.map((one) => [one.id, one])));
  const objects = [pair.from, pair.to].flatMap((one) => requestItems(one.pieces, one.pool));
  const named = await describe(timeline, [...new Set(objects.flatMap(({ object }) => object ?? []))]);
  const compaction = await compactionBetween(reader, { from: pair.from.side.step, to: pair.to.side.step });
  const { session, requests } = reader;
  const isNext = requests.indexOf(pair.to.of) === requests.indexOf(pair.from.of) + 1;
  const { all, steps } = await countedCalls(timeline, session);
  const call = isNext ? all.find(({ request }) => request === pair.to.side.step) : undefined;
  const told = call === undefined ? undefined : lossSentence(call, steps, prefix);
  const fall = call === undefined ? undefined : fallSentence(call, steps);
  const uncounted = isNext && prefix.isPrefix ? uncountedSentence(pair.to.of) : undefined;
  return {
    session,
    tokenizer: TOKENIZER,
    prefix,
    sentence: [told?.sentence ?? uncounted ?? prefixSentence(prefix), ...(fall === undefined ? [] : [fall])].join(' '),
    ...(call === undefined
      ? {}
      : {
          counted: {
            read: call.usage.cacheRead ?? 0,
            fresh: call.fresh,
            again: call.again,
            fewer: fall === undefined ? 0 : call.fewer,
          },
        }),
    ...changesBetween({ acts, pool, named }),
    ...defined({ compaction }),
  };
}
