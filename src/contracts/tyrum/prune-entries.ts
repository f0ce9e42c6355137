import type { ObjectId } from '../../objects/ids.js';
import type { AssistantEntry, Entry, EntryCall, EntryId, ResultEntry } from '../projection/entry.js';
import { TyrumError } from './tyrum-error.js';

/** Settings of pruning. */
export interface PruneSettings {
  /** Maximum number of messages to send: at least 8, or 0 for no limit. Default: 0. */
  readonly maxMessages?: number;
  /** Number of newest messages whose calls and results stay: at least 2. Default: 4. */
  readonly keepLastMessages?: number;
}

/** A pruned list. */
export interface PrunedEntries {
  /**
   * The remaining entries in order. An assistant message keeps only calls that are pending or whose
   * results follow.
   */
  readonly entries: readonly Entry[];
  /** Results that were removed with their calls. */
  readonly results: readonly EntryId[];
  /**
   * Other messages that were removed: those over the limit, and assistant messages that had only
   * calls.
   */
  readonly messages: readonly EntryId[];
}

/** The smallest allowed message limit. */
const LEAST_MESSAGES = 8;
const LEAST_KEPT = 2;
const KEPT_LAST = 4;

/** A message and its results, which are kept or removed together. */
interface Group {
  readonly entries: readonly Entry[];
  /** The number of messages in the group. Approvals are not counted. */
  readonly size: number;
  /** True for pending entries and the user's newest message. */
  readonly stays: boolean;
}

function checked(settings: PruneSettings): Required<PruneSettings> {
  const { maxMessages = 0, keepLastMessages = KEPT_LAST } = settings;
  if (!Number.isInteger(maxMessages) || (maxMessages !== 0 && maxMessages < LEAST_MESSAGES))
    throw new TyrumError(
      'invalid-settings',
      `max_messages is ${maxMessages}: give 0 for no limit, or at least ${LEAST_MESSAGES}`,
    );
  if (!Number.isInteger(keepLastMessages) || keepLastMessages < LEAST_KEPT)
    throw new TyrumError(
      'invalid-settings',
      `tool_prune_keep_last_messages is ${keepLastMessages}: give ${LEAST_KEPT} or more`,
    );
  return { maxMessages, keepLastMessages };
}

const isMessage = ({ kind }: Entry): boolean => kind !== 'approval';
const isPending = ({ state }: EntryCall): boolean => state === 'pending';

/**
 * Returns the calls that stay: those that wait for a result or an approval, and those made or
 * answered in the newest messages.
 */
function keptCalls(entries: readonly Entry[], keepLast: number): ReadonlySet<ObjectId> {
  const last = new Set(entries.filter(isMessage).slice(-keepLast));
  const asked = new Set(
    entries.flatMap((entry) => (entry.kind === 'approval' && entry.state === 'pending' ? (entry.native ?? []) : [])),
  );
  const kept = new Set<ObjectId>();
  for (const entry of entries) {
    if (entry.kind === 'result' && last.has(entry)) kept.add(entry.call);
    if (entry.kind !== 'assistant') continue;
    for (const call of entry.calls) if (last.has(entry) || isPending(call) || asked.has(call.native)) kept.add(call.id);
  }
  return kept;
}

/**
 * Removes every call that is not in `kept`, with its result. Renumbers the remaining calls of each
 * message.
 */
function withoutCalls(entries: readonly Entry[], kept: ReadonlySet<ObjectId>): readonly Entry[] {
  const left: Entry[] = [];
  const makers = new Map<EntryId, AssistantEntry>();
  for (const entry of entries) {
    if (entry.kind === 'assistant') {
      const calls = entry.calls.filter(({ id }) => kept.has(id));
      const maker = calls.length === entry.calls.length ? entry : { ...entry, calls };
      makers.set(entry.id, maker);
      if (entry.calls.length === 0 || calls.length > 0 || entry.text !== '') left.push(maker);
    } else if (entry.kind === 'result') {
      const position = makers.get(entry.of)?.calls.findIndex(({ id }) => id === entry.call) ?? -1;
      if (position >= 0) left.push(position === entry.position ? entry : { ...entry, position });
    } else left.push(entry);
  }
  return left;
}

const belongsTo = (entry: Entry, first: Entry | undefined): boolean =>
  (entry.kind === 'result' && entry.of === first?.id) || entry.kind === 'approval';

function groupsOf(entries: readonly Entry[]): readonly Group[] {
  const groups: Entry[][] = [];
  for (const entry of entries) {
    const group = groups.at(-1);
    if (group !== undefined && belongsTo(entry, group[0])) group.push(entry);
    else groups.push([entry]);
  }
  const newest = entries.findLast(({ kind }) => kind === 'user');
  const waits = (entry: Entry): boolean =>
    entry === newest ||
    (entry.kind === 'assistant' && entry.calls.some(isPending)) ||
    (entry.kind === 'approval' && entry.state === 'pending');
  return groups.map((group) => ({ entries: group, size: group.filter(isMessage).length, stays: group.some(waits) }));
}

/**
 * Returns the groups within a message limit. The groups up to the first assistant message stay, and
 * so do pending groups and the user's newest message. The remaining room goes to the newest groups,
 * backwards up to the first that does not fit. Only pending groups can exceed the limit.
 */
function capped(groups: readonly Group[], most: number): readonly Group[] {
  const firstOfModel = groups.findIndex(
    ({ entries: [first] }) => first?.kind === 'assistant' || first?.kind === 'result',
  );
  const head = firstOfModel < 0 ? groups.length : firstOfModel;
  const kept = new Set(groups.filter(({ stays }) => stays));
  let room = most - [...kept].reduce((sum, { size }) => sum + size, 0);
  for (const group of groups.slice(0, head)) {
    if (kept.has(group)) continue;
    // Half of the room is reserved for the newest groups, however long the beginning is.
    if (room - group.size < most / 2) break;
    kept.add(group);
    room -= group.size;
  }
  for (const group of groups.toReversed()) {
    if (kept.has(group)) continue;
    if (group.size > room) break;
    kept.add(group);
    room -= group.size;
  }
  return groups.filter((group) => kept.has(group));
}

/**
 * Prunes old tool results, as Tyrum prunes its requests. Calls before the newest messages are
 * removed with their results. With a message limit, the beginning up to the first assistant message
 * and the newest messages stay. The newest messages never begin with a result. Pending entries and
 * the user's newest message always stay.
 *
 * Without a limit, all user and system messages stay. Only assistant messages that had nothing but
 * removed calls are removed. Pure: equal input gives an equal result.
 * @throws {TyrumError} `invalid-settings`
 */
export function pruneEntries(entries: readonly Entry[], settings: PruneSettings = {}): PrunedEntries {
  const { maxMessages, keepLastMessages } = checked(settings);
  const left = withoutCalls(entries, keptCalls(entries, keepLastMessages));
  const size = left.filter(isMessage).length;
  const pruned =
    maxMessages === 0 || size <= maxMessages
      ? left
      : capped(groupsOf(left), maxMessages).flatMap((group) => group.entries);
  const there = new Set(pruned.map(({ id }) => id));
  const gone = entries.filter(({ id }) => !there.has(id));
  const isResult = (entry: Entry): entry is ResultEntry => entry.kind === 'result';
  return {
    entries: pruned,
    results: gone.filter(isResult).map(({ id }) => id),
    messages: gone.filter((entry) => !isResult(entry)).map(({ id }) => id),
  };
}
