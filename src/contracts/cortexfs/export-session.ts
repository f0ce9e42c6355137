import type { When } from '../../history/rebuild/moment.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { ContextRecord } from '../../objects/context-record.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Lineage } from '../../store/lineage.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { Projection } from '../projection/project-session.js';
import { SessionMoment } from '../projection/session-moment.js';
import { readBudget } from './check-file.js';
import { ComparedSteps } from './compare-import.js';
import { CortexfsError } from './errors.js';
import {
  isKeptRecord,
  KEPT_KINDS,
  type KeptImport,
  type KeptRecord,
  keptFiles,
  keptImports,
  keptUpTo,
} from './kept-import.js';
import { type Pack, packSession } from './pack.js';
import { IMPORT_KINDS, isCarried } from './palimpsest-file.js';
import type { OwnSession } from './palimpsest-lines.js';
import { type DirectoryRecord, packSources, SHOWN_KINDS, sessionDirectory } from './session-directory.js';
import { type WrittenDirectory, writeDirectory, writePack, writtenBudget } from './write-directory.js';

/** Selects a session and a moment to export. */
export interface WantedSession {
  readonly session: SessionId;
  /** Default: the present. */
  readonly when?: When;
}

interface ReadSession {
  readonly projection: Projection;
  readonly records: readonly DirectoryRecord[];
  readonly imports: readonly KeptImport[];
  readonly own: Omit<OwnSession, 'projection'>;
}

const isShown = (record: ContextRecord): record is DirectoryRecord =>
  (SHOWN_KINDS as readonly string[]).includes(record.kind);

/**
 * Returns the imports stored up to the exported moment. Imports of an ancestor count up to the
 * fork.
 */
function importsOf(
  { session, seq }: Projection,
  records: readonly KeptRecord[],
  { lineage, compared }: { readonly lineage: Lineage; readonly compared: ComparedSteps },
): readonly KeptImport[] {
  const leftAt = new Map(lineage.segments.map((segment) => [segment.session, segment.last]));
  const owners = [...new Set(records.map(({ owner }) => ('session' in owner ? owner.session : session)))];
  return owners.flatMap((owner) => {
    const own = records.filter((record) => 'session' in record.owner && record.owner.session === owner);
    const last = owner === session ? seq : Math.min(seq, leftAt.get(owner) ?? 0);
    return keptImports(own).flatMap((one) =>
      one.after > last ? [] : (keptUpTo(one, last, (step) => compared.mark(step)) ?? []),
    );
  });
}

/** Returns the texts of those files of a session that were read. */
async function contentsOf(
  snapshot: StoreSnapshot,
  { files }: Projection,
): Promise<ReadonlyMap<ObjectId, string | null>> {
  const ids = files.filter(({ metadata }) => metadata.state === 'indexed').map(({ metadata }) => metadata.id);
  if (ids.length === 0) return new Map();
  const found = await snapshot.versionsOf([...(await snapshot.heads(ids)).values()]);
  return new Map([...found].map(([id, { version }]) => [id, version.content]));
}

async function readSession(timeline: Timeline, { session, when }: WantedSession): Promise<ReadSession> {
  const moment = await SessionMoment.read(timeline, session, when);
  const { projection, lineage, point } = moment;
  const [records, contents, steps] = await Promise.all([
    moment.records([...IMPORT_KINDS, ...KEPT_KINDS]),
    contentsOf(point.snapshot, projection),
    timeline.steps(session),
  ]);
  return {
    projection,
    records: records.filter(isShown),
    imports: importsOf(projection, records.filter(isKeptRecord), {
      lineage,
      compared: new ComparedSteps({ steps, projection }),
    }),
    own: {
      steps: steps.filter(({ seq }) => seq <= projection.seq),
      contents,
      records: records.filter(isCarried),
    },
  };
}

/** The result of an export. */
export interface ExportedSession extends WrittenDirectory {
  readonly projection: Projection;
  readonly pack: Pack;
}

/**
 * Writes a session as a session directory of CortexFS (its document 000). If the directory has an
 * earlier state of the session, updates it and keeps its `context/budget`. An error changes
 * nothing.
 * @throws {CortexfsError} `symbolic-link`, `no-session`, `foreign-session`, `not-a-prefix`,
 *   `invalid-budget`, `budget-too-small`
 * @throws {HistoryError} `beyond-end`, `not-yet`
 */
export async function exportSession(
  timeline: Timeline,
  folder: string,
  wanted: WantedSession,
): Promise<ExportedSession> {
  const { projection, records, imports, own } = await readSession(timeline, wanted);
  const kept = keptFiles(imports);
  const budget = (await writtenBudget(folder)) ?? kept.get('context/budget') ?? '';
  const limit = readBudget(budget);
  if (limit === null)
    throw new CortexfsError(
      'invalid-budget',
      `${folder}/context/budget must be empty or hold one whole number, not ${JSON.stringify(budget.slice(0, 40))}`,
    );
  const { files, pack } = sessionDirectory(projection, records, { budget, imports, own, ...defined({ limit }) });
  const owner = { session: projection.session, ...defined({ meta: kept.get('meta.json') }) };
  return { ...(await writeDirectory(folder, owner, files)), projection, pack };
}

/**
 * Writes the pack of a session within a token budget. If the folder is an exported session, the
 * pack goes into its context area. Otherwise it goes directly into the folder. An error changes
 * nothing.
 * @throws {CortexfsError} `budget-too-small`, `symbolic-link`, `foreign-session`
 * @throws {HistoryError} `beyond-end`, `not-yet`
 */
export async function packInto(
  timeline: Timeline,
  folder: string,
  { budget, ...wanted }: WantedSession & { readonly budget: number },
): Promise<{ readonly pack: Pack; readonly paths: readonly string[] }> {
  const { projection, records, imports } = await readSession(timeline, wanted);
  const pack = packSession(packSources(projection, records, { imports }), projection.counter, budget);
  const owner = { session: projection.session, ...defined({ meta: keptFiles(imports).get('meta.json') }) };
  return { pack, paths: await writePack(folder, owner, pack) };
}
