import { HistoryError } from '../../history/rebuild/history-error.js';
import { formatMoment, NOW } from '../../history/rebuild/moment.js';
import type { Point, Timeline } from '../../history/rebuild/timeline.js';
import { quoted } from '../../objects/errors.js';
import type { ObjectId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { VersionTimes } from '../../store/queries.js';
import type { FoundVersion, HistoryHead } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { VersionText } from '../../store/texts.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import { holdsAt } from '../../xtdb/entity-names.js';

/**
 * The line of versions that an answer comes from: that of this database, or an import's line, which
 * only the imported session sees.
 */
export interface ObjectLine {
  /** The imported session. Null for this database. */
  readonly session: string | null;
  /** Other imported sessions that have their own line of versions. */
  readonly others: readonly string[];
}

const OWN_LINE: ObjectLine = { session: null, others: [] };

/** Returns the imported session whose line of versions an object has. Null for this database. */
function keptTo({ documents: { names }, basis }: StoreSnapshot, id: ObjectId): string | null {
  return names !== undefined && names.stored(id) !== id && holdsAt(names, basis.txId ?? 0) ? names.of : null;
}

async function lineOf(snapshot: StoreSnapshot, id: ObjectId): Promise<ObjectLine> {
  const session = keptTo(snapshot, id);
  return { session, others: (await snapshot.documents.linesOf(id)).filter((one) => one !== session) };
}

/** One object at a moment. */
export interface ObjectView {
  readonly version: ObjectVersion;
  /** Whether the file is confirmed deleted (decision C3). */
  readonly gone: boolean;
  readonly times: VersionTimes;
  /**
   * The version's number, and the number of versions up to the moment. Chat and session objects
   * have one version for each finished turn.
   */
  readonly number: number;
  /**
   * For a file: its line of versions, and the imported sessions with other lines (decision F10).
   */
  readonly line: ObjectLine;
  readonly point: Point;
  /** Reads the text. Undefined if there is none. */
  readonly text: () => Promise<VersionText | undefined>;
}

async function notYet(timeline: Timeline, id: ObjectId, point: Point): Promise<HistoryError> {
  const [first] = await timeline.present.versions(id);
  const since =
    first === undefined
      ? ''
      : `; its first version holds from ${first.validTime.toISOString()}, known since transaction ${first.txId}`;
  return new HistoryError('not-yet', `there was no object ${quoted(id)} at ${formatMoment(point.moment)}${since}`);
}

/**
 * Returns an object at a point.
 *
 * @throws {HistoryError} `not-yet` if it did not exist then
 */
export async function viewAt(timeline: Timeline, id: ObjectId, point: Point): Promise<ObjectView> {
  const [found, versions] = await Promise.all([point.snapshot.get(id), point.snapshot.versions(id)]);
  const times = versions.at(-1);
  if (found === undefined || times === undefined) throw await notYet(timeline, id, point);
  return {
    version: found.version,
    gone: found.marks.gone === true,
    times,
    number: versions.length,
    line: found.version.type === 'file' ? await lineOf(point.snapshot, id) : OWN_LINE,
    point,
    text: () => point.snapshot.wholeText(found),
  };
}

/** One version of an object, with all versions of that object. */
export interface PlacedVersion {
  readonly head: HistoryHead & { readonly document: StoredDocument };
  readonly history: readonly HistoryHead[];
}

/** Returns objects at given versions. Each view equals that of `viewAt` at the version's times. */
export async function viewsOf({ present }: Timeline, placed: readonly PlacedVersion[]): Promise<readonly ObjectView[]> {
  const found = await present.versionsIn(placed.map(({ head }) => head));
  return placed.map(({ head: { validTime, txTime, txId }, history }, i) => {
    const one = found[i] as FoundVersion;
    const snapshot = present.earlier({ validTime, txId });
    if (snapshot === undefined) throw new Error('BUG: a version that a later transaction wrote');
    return {
      version: one.version,
      gone: one.marks.gone === true,
      times: { validTime, txTime, txId },
      line: { session: keptTo(snapshot, one.version['xt/id']), others: [] },
      number: history.filter((other) => other.validTime <= validTime && other.txId <= txId).length,
      point: { moment: NOW, snapshot, basis: { validTime, txId, txTime }, place: undefined },
      text: () => present.wholeText(one),
    };
  });
}

/**
 * Returns the text of a view.
 *
 * @throws {HistoryError} `no-content` with the reason
 */
export async function requireText(view: ObjectView): Promise<VersionText> {
  const text = await view.text();
  if (text !== undefined) return text;
  const { version, gone } = view;
  const id = quoted(version['xt/id']);
  if (gone) throw new HistoryError('no-content', `${id} was deleted at that moment; name an earlier moment`);
  if (version.type !== 'file')
    throw new HistoryError('no-content', `${id} is a ${version.type}, which has no text; palimpsest show prints it`);
  throw new HistoryError(
    'no-content',
    version.file_hash === null
      ? `${id} had not been read at that moment; name a later moment`
      : `${id} is not text; only its hash was kept`,
  );
}
