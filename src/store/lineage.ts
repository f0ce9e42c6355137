import { canonicalJson } from '../objects/canonical-json.js';
import { type SessionId, sessionObjectId } from '../objects/ids.js';
import { ownMember } from '../values/own-member.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { EntityNames } from '../xtdb/entity-names.js';
import { StoreError } from './errors.js';
import { type ForkPoint, marksOf } from './head.js';
import { ARRIVING, fromImportPart, type ImportState, importId } from './import-parts.js';
import { partId } from './part-id.js';
import { idsFrom } from './queries.js';

/** Steps of one session that belong to a fork's history: from `first` to `last`, both included. */
export interface LineageSegment {
  readonly session: SessionId;
  readonly first: number;
  /** `Infinity` for the session itself, which still grows. */
  readonly last: number;
}

/**
 * The owners of a session's steps (decision F2): segments of its ancestors, oldest first, then its
 * own.
 */
export interface Lineage {
  readonly session: SessionId;
  readonly segments: readonly LineageSegment[];
}

/** A range of steps, both ends included. Absent ends mean all steps. */
export interface StepRange {
  readonly first?: number;
  readonly last?: number;
}

/** Returns the session that wrote a step of a lineage. Undefined if no segment holds the step. */
export function ownerOf({ segments }: Lineage, seq: number): SessionId | undefined {
  return segments.find(({ first, last }) => first <= seq && seq <= last)?.session;
}

/**
 * Returns the fork point in a session's head. Undefined if the session is not a fork or the
 * database does not hold it.
 */
export async function forkPointOf(db: DbSnapshot, session: SessionId): Promise<ForkPoint | undefined> {
  const head = await db.entity(sessionObjectId(session));
  return head === undefined ? undefined : marksOf(head).parent;
}

/**
 * Returns the lineage of a session without a parent, or of a session that the database does not
 * hold.
 */
export function withoutParent(session: SessionId): Lineage {
  return { session, segments: [{ session, first: 1, last: Number.POSITIVE_INFINITY }] };
}

/**
 * Returns the lineage of a session from the fork point in its head. It is the same at every basis
 * that holds the session. A fork's parent may be a fork itself, so this makes one look-up per
 * ancestor.
 *
 * @throws {StoreError} `missing-part` if an ancestor is absent; `corrupt-part` if a session is its
 *   own ancestor
 */
export async function lineageFrom(db: DbSnapshot, session: SessionId, parent: ForkPoint | undefined): Promise<Lineage> {
  const segments: LineageSegment[] = [];
  const visited = new Set<SessionId>([session]);
  let [current, point, last]: [SessionId, ForkPoint | undefined, number] = [session, parent, Number.POSITIVE_INFINITY];
  while (point !== undefined) {
    segments.unshift({ session: current, first: point.seq + 1, last });
    if (visited.has(point.session)) throw new StoreError('corrupt-part', `session ${session} is its own ancestor`);
    visited.add(point.session);
    const fork = current;
    // A fork may begin before the point at which its parent left its own parent.
    last = Math.min(last, point.seq);
    current = point.session;
    const head = await db.entity(sessionObjectId(current));
    if (head === undefined) {
      throw new StoreError(
        'missing-part',
        `session ${fork} continues session ${current}, which the database does not hold`,
      );
    }
    point = marksOf(head).parent;
  }
  const all = [{ session: current, first: 1, last }, ...segments];
  return { session, segments: all.filter((segment) => segment.first <= segment.last) };
}

/** Maximum number of imports listed for one file. */
const MOST_LINES = 100;

/** The line of file versions of an import, which only its sessions see. */
type KeptLine = NonNullable<ImportState['line']>;

/**
 * Returns the part that stores a file version on the line of an import. Readers find it only
 * through the imported session, never by the file's id (decision F10).
 */
export function toLinePart(session: SessionId, document: StoredDocument): StoredDocument {
  return { 'xt/id': partId('line', document['xt/id'], session), type: 'line', text: canonicalJson(document) };
}

const namesOf = ({ of, files }: KeptLine, range: Pick<EntityNames, 'from' | 'until'>): EntityNames => {
  const own = new Set(files);
  return {
    ...range,
    of,
    stored: (id) => (own.has(id) ? partId('line', id, of) : id),
    read: ({ type, text }) => (type === 'line' ? (JSON.parse(String(text)) as StoredDocument) : undefined),
  };
};

/** Returns the sessions whose imports have a line of versions of a file, sorted by name. */
export async function linesOf(db: DbSnapshot, file: string): Promise<readonly SessionId[]> {
  const prefix = `line:${file}:`;
  const found = await idsFrom(db, prefix, { types: ['line'], most: MOST_LINES });
  const sessions = found.map((id) => id.slice(prefix.length, -1) as SessionId).sort();
  const arriving = await db.entities(sessions.map((session) => importId(session)));
  return sessions.filter((session) => arriving.get(importId(session))?.type === 'import');
}

/**
 * A session, the sessions that it was forked from (nearest first), and the term of its newest
 * head.
 */
export type LineQuestion = [
  session: SessionId,
  of: { readonly ancestors: readonly SessionId[]; readonly term: number },
];

/**
 * Returns the names by which a session finds file versions on the line of its import, or of an
 * ancestor's import. Undefined if there is no such line.
 *
 * The names apply from the first transaction of the import. If a client of this database has opened
 * or forked the session, they end with the import's last transaction. From then on, the session
 * sees the database's own versions.
 */
export async function lineNames(
  db: DbSnapshot,
  importPart: (session: SessionId) => Promise<StoredDocument | undefined>,
  ...[session, { ancestors, term }]: LineQuestion
): Promise<EntityNames | undefined> {
  const asked = [session, ...ancestors];
  const parts = await Promise.all(asked.map(importPart));
  for (const [i, one] of asked.entries()) {
    const part = parts[i];
    const line = part === undefined || part.type === ARRIVING ? undefined : fromImportPart(part).line;
    if (line === undefined || line.files.length === 0) continue;
    const from = (await db.history(importId(line.of, 1)))[0]?.txId ?? 0;
    if (one === session && term <= (ownMember(line.epochs, one) ?? 0)) return namesOf(line, { from });
    const written = await db.history(importId(one), { withDocs: true });
    return namesOf(line, { from, until: written.find(({ document }) => document?.type === 'import')?.txId });
  }
  return undefined;
}
