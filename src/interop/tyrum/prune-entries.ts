import type { ObjectId } from '../../objects/ids.js';
import type { AssistantEntry, Entry, EntryCall, EntryId, ResultEntry } from '../../projection/entry.js';
import { TyrumError } from './tyrum-error.js';

/** How a list is pruned. */
export interface PruneSettings {
  /** The most messages that are sent; 0 for as many as there are, else 8 or more. 0 if left out. */
  readonly maxMessages?: number;
  /** Calls and results before the last so many messages are left out; 2 or more, 4 if left out. */
  readonly keepLastMessages?: number;
}

/** A pruned list. */
export interface PrunedEntries {
  /** In their order; a message of the model has the calls alone whose results stand behind it, or that wait for theirs. */
  readonly entries: readonly Entry[];
  /** Results that are left out with their calls. */
  readonly results: readonly EntryId[];
  /** Other messages that are left out: those over the limit, and those of the model that had nothing but calls. */
  readonly messages: readonly EntryId[];
}

/** The least limit of messages, where there is one. */
const LEAST_MESSAGES = 8;
const LEAST_KEPT = 2;
const KEPT_LAST = 4;

/** A message with its results, which stay or go together. */
interface Group {
  readonly entries: readonly Entry[];
  /** How many messages it sends: an approval is none. */
  readonly size: number;
  /** It waits for an answer, or is the user's newest message. */
  readonly stays: boolean;
}

function checked(settings: PruneSettings): Required<PruneSettings> {
  const { maxMessages = 0, keepLastMessages = KEPT_LAST } = settings;
  if (!Number.isInteger(maxMessages) || (maxMessages !== 0 && maxMessages < LEAST_MESSAGES))
    throw new TyrumError('invalid-settings', `max_messages is ${maxMessages}: give 0 for no limit, or ${LEAST_MESSAGES} or more`);
  if (!Number.isInteger(keepLastMessages) || keepLastMessages < LEAST_KEPT)
    throw new TyrumError('invalid-settings', `tool_prune_keep_last_messages is ${keepLastMessages}: give ${LEAST_KEPT} or more`);
  return { maxMessages, keepLastMessages };
}

const isMessage = ({ kind }: Entry): boolean => kind !== 'approval';
const isPending = ({ state }: EntryCall): boolean => state === 'pending';

/** Calls that stay: those that wait for a result or an approval, and those that a message at the end makes or a result there answers. */
function keptCalls(entries: readonly Entry[], keepLast: number): ReadonlySet<ObjectId> {
  const last = new Set(entries.filter(isMessage).slice(-keepLast));
  const asked = new Set(entries.flatMap((entry) => (entry.kind === 'approval' && entry.state === 'pending' ? (entry.native ?? []) : [])));
  const kept = new Set<ObjectId>();
  for (const entry of entries) {
    if (entry.kind === 'result' && last.has(entry)) kept.add(entry.call);
    if (entry.kind !== 'assistant') continue;
    for (const call of entry.calls) if (last.has(entry) || isPending(call) || asked.has(call.native)) kept.add(call.id);
  }
  return kept;
}

/** The list without the other calls and their results; what is left of a message counts its calls anew. */
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
 * The groups within a limit of messages: those up to the first message of the model, what waits for an answer, the user's newest message, and then the newest as far as
 * they fit, without a gap between them. More than the limit only where what waits takes more.
 */
function capped(groups: readonly Group[], most: number): readonly Group[] {
  const firstOfModel = groups.findIndex(({ entries: [first] }) => first?.kind === 'assistant' || first?.kind === 'result');
  const head = firstOfModel < 0 ? groups.length : firstOfModel;
  const kept = new Set(groups.filter(({ stays }) => stays));
  let room = most - [...kept].reduce((sum, { size }) => sum + size, 0);
  for (const group of groups.slice(0, head)) {
    if (kept.has(group)) continue;
    // Half of the room belongs to the end, however long the beginning is.
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
 * A list with old tool results left out, as Tyrum prunes what it sends: calls and their results before the last messages go in pairs; with a limit of messages the
 * beginning up to the first message of the model stays, then the newest, which never begin with a result. What waits for an answer stays, and so does the
 * newest message of the user. Without a limit no message of a user or of the system goes, and of the model's only those that had nothing but calls. Changes nothing that is given; the same list and
 * settings give the same value.
 * @throws {TyrumError} `invalid-settings`
 */
export function pruneEntries(entries: readonly Entry[], settings: PruneSettings = {}): PrunedEntries {
  const { maxMessages, keepLastMessages } = checked(settings);
  const left = withoutCalls(entries, keptCalls(entries, keepLastMessages));
  const size = left.filter(isMessage).length;
  const pruned = maxMessages === 0 || size <= maxMessages ? left : capped(groupsOf(left), maxMessages).flatMap((group) => group.entries);
  const there = new Set(pruned.map(({ id }) => id));
  const gone = entries.filter(({ id }) => !there.has(id));
  const isResult = (entry: Entry): entry is ResultEntry => entry.kind === 'result';
  return {
    entries: pruned,
    results: gone.filter(isResult).map(({ id }) => id),
    messages: gone.filter((entry) => !isResult(entry)).map(({ id }) => id),
  };
}
