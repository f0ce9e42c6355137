import { type ContextRecord, contextRecord, type RecordBody } from '../../objects/context-record.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import { requireSession } from '../rebuild/find-session.js';
import { HistoryError } from '../rebuild/history-error.js';
import type { Point, Timeline } from '../rebuild/timeline.js';
import { requireObject } from './find-object.js';
import { askedMoment, type MomentText, parseReference } from './reference.js';

/** What a reviewer holds of what is reviewed. */
export type Verdict = NonNullable<RecordBody<'review'>['verdict']>;

/** What a reviewer said of a session, a step of it, or an object in it. */
export interface ReviewNote {
  readonly session: SessionId;
  readonly turn: number;
  /** The last step that it is about. */
  readonly seq: number;
  readonly at: Date;
  /** The object; undefined for the session, or for what stood at that step. */
  readonly object: ObjectId | undefined;
  readonly verdict: Verdict | undefined;
  readonly text: string | undefined;
  readonly by: string | undefined;
}

/** What notes are asked for, or what one is about. */
export interface NotedPlace extends MomentText {
  /** A session, perhaps with a moment. */
  readonly session: string;
  readonly object?: string | undefined;
}

interface FoundPlace {
  readonly session: SessionId;
  readonly point: Point;
  readonly object: ObjectId | undefined;
}

async function findPlace(
  timeline: Timeline,
  { session: reference, object, ...moment }: NotedPlace,
): Promise<FoundPlace> {
  const { name, moment: named } = parseReference(reference);
  const session = await requireSession(timeline.present, name);
  const point = await timeline.find(askedMoment(moment, named), session);
  const { paths } = timeline;
  return {
    session,
    point,
    object: object === undefined ? undefined : await requireObject(timeline.present, object, { session, paths }),
  };
}

/** A note as its record says it; of a session where the record has none. */
export const noteOf = ({ owner, turn, seq, at, body }: ContextRecord<'review'>, session: SessionId): ReviewNote => ({
  session: 'session' in owner ? owner.session : session,
  turn,
  seq,
  at: new Date(at),
  object: body.object as ObjectId | undefined,
  verdict: body.verdict,
  text: body.text,
  by: body.by,
});

/**
 * What reviewers said of a session, by step and moment, up to a moment, or of one object in it; of a fork also what was said of the steps that it shares.
 * @throws {HistoryError} `unknown-session`, `ambiguous`, `unknown-object`, `beyond-end`, `malformed-moment`
 */
export async function askNotes(
  timeline: Timeline,
  place: NotedPlace,
): Promise<FoundPlace & { readonly notes: readonly ReviewNote[] }> {
  const found = await findPlace(timeline, place);
  const { session, object, point } = found;
  // A note is written behind the step that it is about, mostly long after it.
  const records = await timeline.present.records(session, {
    kinds: ['review'],
    ...defined({ last: point.place?.seq }),
  });
  const notes = records.map((record) => noteOf(record, session));
  return { ...found, notes: object === undefined ? notes : notes.filter((note) => note.object === object) };
}

/** What a reviewer says. */
export interface SaidNote extends NotedPlace {
  readonly verdict?: Verdict | undefined;
  readonly text?: string | undefined;
  /** Who says it. */
  readonly by?: string | undefined;
}

/**
 * The record of what a reviewer says of a session at a moment, its last step where none is named. It is in no set and in no context.
 * @throws {HistoryError} `empty-note` – neither verdict nor text; and as `askNotes` does
 * @throws {DocumentError} the text is too long
 */
export async function reviewRecord(
  timeline: Timeline,
  { verdict, text, by, ...place }: SaidNote,
  at: number,
): Promise<ContextRecord<'review'>> {
  const said = text?.toWellFormed().trim() ?? '';
  if (verdict === undefined && said === '') throw new HistoryError('empty-note', 'a note needs a verdict or a text');
  const { session, object, point } = await findPlace(timeline, place);
  const steps = await timeline.steps(session);
  const last = point.place ?? steps.at(-1);
  const { validTime, txId } = point.basis;
  const record = {
    kind: 'review',
    owner: { session },
    turn: last?.turn ?? 0,
    seq: last?.seq ?? 0,
    at,
    basis: txId === undefined ? null : { validTime: validTime.getTime(), txId },
    body: defined({ object, verdict, text: said === '' ? undefined : said, by }),
  };
  return contextRecord(record) as ContextRecord<'review'>;
}
