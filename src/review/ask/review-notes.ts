import type { RecordMask } from '../../client/record-mask.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { askedMoment, type MomentText, parseReference } from '../../history/rebuild/moment.js';
import type { Point, Timeline } from '../../history/rebuild/timeline.js';
import { type ContextRecord, contextRecord, type RecordBody } from '../../objects/context-record.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import { requireObject } from './find-object.js';

/** A reviewer's verdict. */
export type Verdict = NonNullable<RecordBody<'review'>['verdict']>;

/** A reviewer's note about a session, one of its steps, or an object in it. */
export interface ReviewNote {
  readonly session: SessionId;
  readonly turn: number;
  /** The last step that the note covers. */
  readonly seq: number;
  readonly at: Date;
  /** The object of the note. Undefined for a note about the session or its state at the step. */
  readonly object: ObjectId | undefined;
  readonly verdict: Verdict | undefined;
  readonly text: string | undefined;
  readonly by: string | undefined;
}

/** The subject of a note, or a filter for notes. */
export interface NotedPlace extends MomentText {
  /** A session, optionally with a moment. */
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

/** Converts a record to a note. Without an object the note is about the session. */
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
 * Returns the notes on a session up to a moment, or on one object in it, ordered by step and time.
 * For a fork it includes notes on shared steps.
 *
 * @throws {HistoryError} `unknown-session`, `ambiguous`, `unknown-object`, `beyond-end`,
 * `malformed-moment`
 */
export async function askNotes(
  timeline: Timeline,
  place: NotedPlace,
): Promise<FoundPlace & { readonly notes: readonly ReviewNote[] }> {
  const found = await findPlace(timeline, place);
  const { session, object, point } = found;
  // Reads the newest records at any moment, because a note is usually written long after its step.
  const records = await timeline.present.records(session, {
    kinds: ['review'],
    ...defined({ last: point.place?.seq }),
  });
  const notes = records.map((record) => noteOf(record, session));
  return { ...found, notes: object === undefined ? notes : notes.filter((note) => note.object === object) };
}

/** A note to store: its place, its author, and a verdict or a text. */
export interface NewNote extends NotedPlace {
  readonly verdict?: Verdict | undefined;
  readonly text?: string | undefined;
  /** The author of the note. */
  readonly by?: string | undefined;
}

/**
 * Builds the record of a note on a session at a moment, by default at its last step. The note
 * enters no set and no context. Secrets in its texts are masked.
 *
 * @throws {HistoryError} `empty-note` if it has neither verdict nor text; also the errors of
 * `askNotes`
 * @throws {DocumentError} the text is too long
 */
export async function reviewRecord(
  timeline: Timeline,
  { verdict, text, by, ...place }: NewNote,
  { at, mask }: { readonly at: number; readonly mask: RecordMask },
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
    body: defined({
      object,
      verdict,
      text: said === '' ? undefined : mask.text(said),
      by: by === undefined ? undefined : mask.text(by),
    }),
  };
  return contextRecord(record) as ContextRecord<'review'>;
}
