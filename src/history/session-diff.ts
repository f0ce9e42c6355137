import type { ObjectId, SessionId } from '../objects/ids.js';
import { EMPTY_SETS, type SessionSets, SetsFold } from '../objects/sets.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import { diffTexts, type TextDiff } from './text-diff.js';
import type { Point, Timeline } from './timeline.js';

/** What entered and left a set, each in the order of the set. */
export interface SetDiff {
  readonly added: readonly ObjectId[];
  readonly removed: readonly ObjectId[];
}

/** An active object whose text differs, came, or went. */
export interface ActiveDiff {
  readonly id: ObjectId;
  readonly change: 'added' | 'removed' | 'changed';
  readonly charsBefore: number;
  readonly charsAfter: number;
  /** Only for `changed`: what came or went is there in whole under its id. */
  readonly diff: TextDiff | undefined;
}

/** How a session changed between two moments: its sets [§3.1] and what was active. */
export interface SessionDiff {
  readonly session: SessionId;
  readonly from: Point;
  readonly to: Point;
  readonly sets: { readonly index: SetDiff; readonly pool: SetDiff; readonly active: SetDiff; readonly pinned: SetDiff };
  readonly active: readonly ActiveDiff[];
}

/** The sets of a session at a point: after its place, or as they stood. */
export async function setsAt(timeline: Timeline, session: SessionId, { place, snapshot }: Point): Promise<SessionSets> {
  if (place === undefined) {
    const head = await snapshot.heads([`session:${session}`]);
    return head.size === 0 ? EMPTY_SETS : (await snapshot.sets(session)).sets;
  }
  const fold = new SetsFold();
  for (const { seq, changes } of await timeline.steps(session)) if (seq <= place.seq) fold.apply(changes);
  return fold.sets();
}

function setDiff(before: readonly ObjectId[], after: readonly ObjectId[]): SetDiff {
  const [was, is] = [new Set(before), new Set(after)];
  return { added: after.filter((id) => !was.has(id)), removed: before.filter((id) => !is.has(id)) };
}

async function contents(snapshot: StoreSnapshot, ids: readonly ObjectId[]): Promise<ReadonlyMap<ObjectId, string | null>> {
  const found = await snapshot.getMany(ids);
  return new Map([...found].map(([id, { version }]) => [id, version.content]));
}

/** How a session changed from one point to another. The index is the pool: nothing demotes today [§3.2]. */
export async function diffSession(timeline: Timeline, session: SessionId, from: Point, to: Point): Promise<SessionDiff> {
  const [before, after] = await Promise.all([setsAt(timeline, session, from), setsAt(timeline, session, to)]);
  const active = setDiff(before.active, after.active);
  const [textsBefore, textsAfter] = await Promise.all([contents(from.snapshot, before.active), contents(to.snapshot, after.active)]);
  const chars = (texts: ReadonlyMap<ObjectId, string | null>, id: ObjectId): number => texts.get(id)?.length ?? 0;
  const ids = [...new Set([...before.active, ...after.active])];
  const changes = ids.flatMap((id): readonly ActiveDiff[] => {
    const sizes = { id, charsBefore: chars(textsBefore, id), charsAfter: chars(textsAfter, id) };
    if (active.added.includes(id)) return [{ ...sizes, change: 'added', diff: undefined }];
    if (active.removed.includes(id)) return [{ ...sizes, change: 'removed', diff: undefined }];
    const diff = diffTexts(textsBefore.get(id) ?? '', textsAfter.get(id) ?? '');
    return diff.equal ? [] : [{ ...sizes, change: 'changed', diff }];
  });
  const index = setDiff(before.index, after.index);
  return { session, from, to, sets: { index, pool: index, active, pinned: setDiff(before.pinned, after.pinned) }, active: changes };
}
