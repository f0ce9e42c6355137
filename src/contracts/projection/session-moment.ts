import { HistoryError } from '../../history/rebuild/history-error.js';
import { formatMoment, type When } from '../../history/rebuild/moment.js';
import type { Point, Timeline } from '../../history/rebuild/timeline.js';
import type { ContextRecord, RecordKind } from '../../objects/context-record.js';
import type { SessionId } from '../../objects/ids.js';
import type { Lineage } from '../../store/lineage.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { Projection } from './project-session.js';
import { ProjectionReader } from './read-projection.js';

/** A session at a moment, with its steps. */
interface ReadSession {
  readonly projection: Projection;
  readonly point: Point;
  readonly lineage: Lineage;
}

/** A session at a moment, with the records up to that moment. */
export class SessionMoment {
  readonly projection: Projection;
  readonly point: Point;
  /** The sessions to which the steps belong. */
  readonly lineage: Lineage;
  readonly #present: StoreSnapshot;

  private constructor({ projection, point, lineage }: ReadSession, present: StoreSnapshot) {
    this.projection = projection;
    this.point = point;
    this.lineage = lineage;
    this.#present = present;
  }

  /**
   * Reads a session at a moment.
   *
   * @throws {HistoryError} `beyond-end`, `not-yet`
   * @throws {StoreError} `missing-part`, `corrupt-part`
   * @throws {XtdbError}
   */
  static async read(timeline: Timeline, session: SessionId, when: When = {}): Promise<SessionMoment> {
    const point = await timeline.find(when, session);
    const [projection, lineage] = await Promise.all([
      new ProjectionReader().readAt(timeline, session, point),
      timeline.present.lineage(session),
    ]);
    if (lineage === undefined)
      throw new HistoryError(
        'not-yet',
        `session ${session} did not exist at ${formatMoment(point.moment)}; palimpsest log ${session} shows its turns`,
      );
    return new SessionMoment({ projection, point, lineage }, timeline.present);
  }

  /**
   * The snapshot with all records and contexts of the moment. If the moment is a turn or step, this
   * is the present, because records are written after their step.
   */
  get written(): StoreSnapshot {
    const { place, snapshot } = this.point;
    return place === undefined ? snapshot : this.#present;
  }

  /** Returns the records of some kinds, up to the last step of the projection. */
  records<Kind extends RecordKind>(kinds: readonly Kind[]): Promise<readonly ContextRecord<Kind>[]> {
    return this.written.records(this.lineage, { kinds, last: this.projection.seq });
  }
}
