import type { Entry } from '../../src/contracts/projection/entry.js';

/** The properties of a message that the pair rules use, on any surface. */
export type PairedItem =
  /** A message of the model, with or without calls. */
  | { readonly kind: 'assistant'; readonly calls: readonly string[] }
  | { readonly kind: 'result'; readonly call: string }
  /** A message of a user. A new turn may begin with it. */
  | { readonly kind: 'user' }
  /** Any other message: a prompt, a reminder, a summary. */
  | { readonly kind: 'other' };

/**
 * The ways in which a message list can break the pair rules.
 *
 * - `orphan-result`: no message of the list makes its call
 * - `early-result`: it precedes the message with its call
 * - `late-result`: another item separates it from that message
 * - `wrong-order`: results of one message are not in the order of its calls
 * - `missing-result`: the list continues after a call without a result
 * - `repeated-call`, `repeated-result`: an id occurs twice
 * - `unfinished-turn`: the model does not reply to the last results of a turn
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

/** One violation of the pair rules. */
export interface PairFinding {
  readonly rule: PairRule;
  /** The index of the item, from 0. For a missing result, the message with the call. */
  readonly at: number;
  /** The call concerned. */
  readonly call?: string;
}

/** A message with calls that still lack results. */
interface OpenGroup {
  readonly at: number;
  readonly calls: readonly string[];
  readonly answered: Set<string>;
  /** The index of the call of the last result. */
  last: number;
}

/**
 * Returns the violations of the pair rules in a message list, in item order. Each result needs its
 * call, all results directly follow their message in call order, and ids do not repeat. With
 * `running`, the last turn may be in progress: its last calls may lack results, and the model's
 * reply may be missing.
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
    for (const call of group?.calls ?? [])
      if (!group?.answered.has(call)) missing.push({ at: group?.at ?? 0, call, until });
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
      // If results are missing, that is the violation to report.
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
  // A late result is reported as late, and not as missing too.
  const lost = missing.filter(({ call }) => !answered.has(call));
  for (const { at, call, until } of lost)
    if (!running || until < items.length) found.push({ rule: 'missing-result', at, call });
  if (owesAnswer !== undefined && !running) found.push({ rule: 'unfinished-turn', at: owesAnswer });
  return found.sort((a, b) => a.at - b.at);
}

/** Returns an entry for the pair rules. Undefined for an approval, which is not a message. */
function pairedEntry(entry: Entry): PairedItem | undefined {
  if (entry.kind === 'approval') return undefined;
  if (entry.kind === 'assistant') return { kind: 'assistant', calls: entry.calls.map(({ id }) => id) };
  if (entry.kind === 'result') return { kind: 'result', call: entry.call };
  return { kind: entry.kind === 'user' ? 'user' : 'other' };
}

/** Returns the violations of the pair rules in some entries. `at` counts them without approvals. */
export function entryFindings(
  entries: readonly Entry[],
  options: { readonly running?: boolean } = {},
): readonly PairFinding[] {
  return pairFindings(
    entries.flatMap((entry) => pairedEntry(entry) ?? []),
    options,
  );
}
