import type { Entry } from './entry.js';

/** What the pair rules look at of a message, on whichever surface it stands. */
export type PairedItem =
  /** A message that makes calls, or none. */
  | { readonly kind: 'assistant'; readonly calls: readonly string[] }
  | { readonly kind: 'result'; readonly call: string }
  /** A message of a user: a new turn may begin with it. */
  | { readonly kind: 'user' }
  /** Neither: a prompt, a reminder, a summary. */
  | { readonly kind: 'other' };

/**
 * How a list of messages can break the pair rules.
 *
 * - `orphan-result`: no message of the list makes its call
 * - `early-result`: it stands before the message that makes its call
 * - `late-result`: something else stands between the message and it
 * - `wrong-order`: results of one message do not stand in the order of its calls
 * - `missing-result`: a call without a result, behind which the list goes on
 * - `repeated-call`, `repeated-result`: an id a second time
 * - `unfinished-turn`: the model says nothing to the last results of a turn
 */
export type PairRule =
  | 'orphan-result'
  | 'early-result'
  | 'late-result'
  | 'wrong-order'
  | 'missing-result'
  | 'repeated-call'
  | 'repeated-result'
  | 'unfinished-turn';

/** One break of the pair rules. */
export interface PairFinding {
  readonly rule: PairRule;
  /** The item that it is found at, from 0: of a missing result the message that makes the call. */
  readonly at: number;
  /** The call that it is about. */
  readonly call?: string;
}

/** A message with calls whose results are awaited. */
interface OpenGroup {
  readonly at: number;
  readonly calls: readonly string[];
  readonly answered: Set<string>;
  /** The place among the calls of the last result. */
  last: number;
}

/**
 * The breaks of the pair rules in a list of messages, in the order of the items: a result never without its call, all results of a message directly behind it and in
 * the order of its calls, nothing twice. With `running` the last turn may be under way: calls of the list's end may wait for their results, and the model may
 * have said nothing to them yet.
 */
export function pairFindings(
  items: readonly PairedItem[],
  { running = false }: { readonly running?: boolean } = {},
): readonly PairFinding[] {
  const found: PairFinding[] = [];
  const makers = new Map<string, number>();
  for (const [at, item] of items.entries()) {
    for (const call of item.kind === 'assistant' ? item.calls : []) {
      if (makers.has(call)) found.push({ rule: 'repeated-call', at, call });
      else makers.set(call, at);
    }
  }
  const answered = new Set<string>();
  let group: OpenGroup | undefined;
  let owesAnswer: number | undefined;
  const missing: { readonly at: number; readonly call: string; readonly until: number }[] = [];
  const close = (until: number): void => {
    for (const call of group?.calls ?? []) if (!group?.answered.has(call)) missing.push({ at: group?.at ?? 0, call, until });
    group = undefined;
  };
  for (const [at, item] of items.entries()) {
    if (item.kind === 'result') {
      const { call } = item;
      const maker = makers.get(call);
      const position = group?.calls.indexOf(call) ?? -1;
      if (answered.has(call)) found.push({ rule: 'repeated-result', at, call });
      else if (maker === undefined) found.push({ rule: 'orphan-result', at, call });
      else if (maker > at) found.push({ rule: 'early-result', at, call });
      else if (group === undefined || position < 0) found.push({ rule: 'late-result', at, call });
      else if (position < group.last) found.push({ rule: 'wrong-order', at, call });
      answered.add(call);
      group?.answered.add(call);
      if (group !== undefined && position >= 0) group.last = position;
      // Where some are missing that is what is wrong.
      if (group !== undefined && group.answered.size === group.calls.length) owesAnswer = at;
      continue;
    }
    if (item.kind === 'user' && owesAnswer !== undefined) found.push({ rule: 'unfinished-turn', at: owesAnswer });
    close(at);
    if (item.kind !== 'other') owesAnswer = undefined;
    if (item.kind === 'assistant' && item.calls.length > 0) {
      group = { at, calls: [...new Set(item.calls)], answered: new Set(), last: -1 };
    }
  }
  close(items.length);
  // A late result is found as such, and not as a missing one too.
  const lost = missing.filter(({ call }) => !answered.has(call));
  for (const { at, call, until } of lost) if (!running || until < items.length) found.push({ rule: 'missing-result', at, call });
  if (owesAnswer !== undefined && !running) found.push({ rule: 'unfinished-turn', at: owesAnswer });
  return found.sort((a, b) => a.at - b.at);
}

/** What the pair rules look at of an entry; undefined of an approval, which is no message. */
function pairedEntry(entry: Entry): PairedItem | undefined {
  if (entry.kind === 'approval') return undefined;
  if (entry.kind === 'assistant') return { kind: 'assistant', calls: entry.calls.map(({ id }) => id) };
  if (entry.kind === 'result') return { kind: 'result', call: entry.call };
  return { kind: entry.kind === 'user' ? 'user' : 'other' };
}

/** The breaks of the pair rules in some entries; `at` counts them without approvals. */
export function entryFindings(entries: readonly Entry[], options: { readonly running?: boolean } = {}): readonly PairFinding[] {
  return pairFindings(
    entries.flatMap((entry) => pairedEntry(entry) ?? []),
    options,
  );
}
