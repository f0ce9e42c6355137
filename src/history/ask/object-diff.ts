import type { ObjectId } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import type { Point, Timeline } from '../rebuild/timeline.js';
import { type ObjectView, viewAt } from './object-view.js';
import { diffTexts, type TextDiff } from './text-diff.js';

/** One side of a comparison; no view where the object did not exist then. */
export interface DiffSide {
  readonly point: Point;
  readonly view: ObjectView | undefined;
  /** The text, empty where there was none. */
  readonly text: string;
}

/** How an object's text changed between two moments. */
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

/** What stood just before the version that is current at a point; the point itself where there was none before. */
export async function pointBefore(timeline: Timeline, id: ObjectId, point: Point): Promise<Point> {
  const versions = await point.snapshot.versions(id);
  const previous = versions.at(-2);
  if (previous === undefined) return point;
  const { txId } = point.basis;
  return timeline.find({ validTime: previous.validTime, ...defined({ tx: txId }) }, undefined);
}

/** How an object's text changed from one point to another. */
export async function diffObject(timeline: Timeline, id: ObjectId, from: Point, to: Point, context?: number): Promise<ObjectDiff> {
  const [before, after] = await Promise.all([side(timeline, id, from), side(timeline, id, to)]);
  return { id, before, after, diff: diffTexts(before.text, after.text, context) };
}
