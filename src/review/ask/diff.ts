import type { Point, Timeline } from '../../history/rebuild/timeline.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { EMPTY_SETS, foldSets, type SessionSets } from '../../objects/sets.js';
import type { Head } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { StoredValue } from '../../xtdb/documents.js';
import { type ObjectView, viewAt } from './object-view.js';
import { diffTexts, type TextDiff } from './text-diff.js';

/** One side of a comparison. It has no view if the object did not exist at that point. */
export interface DiffSide {
  readonly point: Point;
  readonly view: ObjectView | undefined;
  /** The text; empty if there was none. */
  readonly text: string;
}

/**
 * Two points to compare, and the number of context lines around each difference (default three).
 */
export interface Compared {
  readonly from: Point;
  readonly to: Point;
  readonly context?: number | undefined;
}

/** The change of an object's text between two moments. */
export interface ObjectDiff {
  readonly id: ObjectId;
  readonly before: DiffSide;
  readonly after: DiffSide;
  readonly diff: TextDiff;
}

async function side(timeline: Timeline, id: ObjectId, point: Point): Promise<DiffSide> {
  if (!(await point.snapshot.heads([id])).has(id)) return { point, view: undefined, text: '' };
  const view = await viewAt(timeline, id, point);
  return { point, view, text: (await view.text())?.text ?? '' };
}

/**
 * Returns the point just before the version that is current at `point`. Returns `point` itself if
 * there was no earlier version.
 */
export async function pointBefore(timeline: Timeline, id: ObjectId, point: Point): Promise<Point> {
  const versions = await point.snapshot.versions(id);
  const previous = versions.at(-2);
  if (previous === undefined) return point;
  const { txId } = point.basis;
  return timeline.find({ validTime: previous.validTime, ...defined({ tx: txId }) }, undefined);
}

/** Compares an object's text at two points. */
export async function diffObject(
  timeline: Timeline,
  id: ObjectId,
  { from, to, context }: Compared,
): Promise<ObjectDiff> {
  const [before, after] = await Promise.all([side(timeline, id, from), side(timeline, id, to)]);
  return { id, before, after, diff: diffTexts(before.text, after.text, context) };
}

/** The members that entered and left a set, each in the order of the set. */
export interface SetDiff {
  readonly added: readonly ObjectId[];
  readonly removed: readonly ObjectId[];
}

/** An object that entered or left the active set, or whose text changed. */
export interface ActiveDiff {
  readonly id: ObjectId;
  readonly change: 'added' | 'removed' | 'changed';
  readonly charsBefore: number;
  readonly charsAfter: number;
  /** The difference of the texts. Undefined unless `change` is `changed`. */
  readonly diff: TextDiff | undefined;
}

/** The change of a session between two moments: its sets [§3.1] and its active content. */
export interface SessionDiff {
  readonly session: SessionId;
  readonly from: Point;
  readonly to: Point;
  readonly sets: {
    readonly index: SetDiff;
    readonly pool: SetDiff;
    readonly active: SetDiff;
    readonly pinned: SetDiff;
  };
  readonly active: readonly ActiveDiff[];
}

/** Returns the sets of a session at a point: after its step, or as of its moment. */
async function setsAt(timeline: Timeline, session: SessionId, { place, snapshot }: Point): Promise<SessionSets> {
  if (place === undefined) {
    const head = await snapshot.heads([`session:${session}`]);
    return head.size === 0 ? EMPTY_SETS : (await snapshot.sets(session)).sets;
  }
  const steps = (await timeline.steps(session)).filter(({ seq }) => seq <= place.seq);
  return foldSets(
    EMPTY_SETS,
    steps.map(({ changes }) => changes),
  );
}

function setDiff(before: readonly ObjectId[], after: readonly ObjectId[]): SetDiff {
  const [was, is] = [new Set(before), new Set(after)];
  return { added: after.filter((id) => !was.has(id)), removed: before.filter((id) => !is.has(id)) };
}

type Heads = ReadonlyMap<string, Head>;

async function contents(
  snapshot: StoreSnapshot,
  heads: Heads,
  ids: readonly ObjectId[],
): Promise<ReadonlyMap<ObjectId, string | null>> {
  const found = await snapshot.versionsOf(ids.flatMap((id) => heads.get(id) ?? []));
  return new Map([...found].map(([id, { version }]) => [id, version.content]));
}

const contentHash = (heads: Heads, id: ObjectId): StoredValue | undefined => heads.get(id)?.document.content_hash;

/**
 * Returns the objects that stayed active with the same text. Their hashes are equal, so no text is
 * read.
 */
function unchanged(ids: readonly ObjectId[], before: Heads, after: Heads): ReadonlySet<ObjectId> {
  return new Set(
    ids.filter((id) => before.has(id) && after.has(id) && contentHash(before, id) === contentHash(after, id)),
  );
}

/**
 * Compares a session at two points. Shows the index as the pool, because no object is demoted today
 * [§3.2].
 */
export async function diffSession(
  timeline: Timeline,
  session: SessionId,
  { from, to }: Compared,
): Promise<SessionDiff> {
  const [before, after] = await Promise.all([setsAt(timeline, session, from), setsAt(timeline, session, to)]);
  const active = setDiff(before.active, after.active);
  const [headsBefore, headsAfter] = await Promise.all([
    from.snapshot.heads(before.active),
    to.snapshot.heads(after.active),
  ]);
  const [added, removed] = [new Set(active.added), new Set(active.removed)];
  const all = [...new Set([...before.active, ...after.active])];
  const same = unchanged(all, headsBefore, headsAfter);
  const ids = all.filter((id) => !same.has(id));
  const [textsBefore, textsAfter] = await Promise.all([
    contents(from.snapshot, headsBefore, ids),
    contents(to.snapshot, headsAfter, ids),
  ]);
  const chars = (texts: ReadonlyMap<ObjectId, string | null>, id: ObjectId): number => texts.get(id)?.length ?? 0;
  const changes = ids.flatMap((id): readonly ActiveDiff[] => {
    const sizes = { id, charsBefore: chars(textsBefore, id), charsAfter: chars(textsAfter, id) };
    if (added.has(id)) return [{ ...sizes, change: 'added', diff: undefined }];
    if (removed.has(id)) return [{ ...sizes, change: 'removed', diff: undefined }];
    const diff = diffTexts(textsBefore.get(id) ?? '', textsAfter.get(id) ?? '');
    return diff.equal ? [] : [{ ...sizes, change: 'changed', diff }];
  });
  const index = setDiff(before.index, after.index);
  return {
    session,
    from,
    to,
    sets: { index, pool: index, active, pinned: setDiff(before.pinned, after.pinned) },
    active: changes,
  };
}
