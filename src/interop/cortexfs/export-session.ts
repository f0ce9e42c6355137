import { SessionMoment } from '../../history/project/session-moment.js';
import type { Timeline, When } from '../../history/rebuild/timeline.js';
import type { SessionId } from '../../objects/ids.js';
import type { Projection } from '../../projection/project-session.js';
import { defined } from '../../values/defined.js';
import { readBudget } from './check-file.js';
import { CortexfsError } from './errors.js';
import { type Pack, packSession } from './pack.js';
import { packSources, SHOWN_KINDS, sessionDirectory } from './session-directory.js';
import { type WrittenDirectory, writeDirectory, writePack, writtenBudget } from './write-directory.js';

/** What of a session is exported, and as of when. */
export interface WantedSession {
  readonly session: SessionId;
  /** Now where left out. */
  readonly when?: When;
}

async function readSession(timeline: Timeline, { session, when }: WantedSession) {
  const moment = await SessionMoment.read(timeline, session, when);
  return { projection: moment.projection, records: await moment.records(SHOWN_KINDS) };
}

/** What an export did. */
export interface ExportedSession extends WrittenDirectory {
  readonly projection: Projection;
  readonly pack: Pack;
}

/**
 * Writes a session as a session directory of document 000; one that holds an earlier state of it is brought up to date. A budget that stands in its `context/budget` is kept.
 * @throws {CortexfsError} `symbolic-link`, `no-session`, `foreign-session`, `not-a-prefix`, `invalid-budget`, `budget-too-small`: nothing was changed
 * @throws {HistoryError} `beyond-end`, `not-yet`
 */
export async function exportSession(timeline: Timeline, folder: string, wanted: WantedSession): Promise<ExportedSession> {
  const { projection, records } = await readSession(timeline, wanted);
  const budget = await writtenBudget(folder);
  const limit = readBudget(budget);
  if (limit === null)
    throw new CortexfsError(
      'invalid-budget',
      `${folder}/context/budget must be empty or one whole number alone: ${JSON.stringify(budget.slice(0, 40))}`,
    );
  const { files, pack } = sessionDirectory(projection, records, { budget, ...defined({ limit }) });
  return { ...(await writeDirectory(folder, projection.session, files)), projection, pack };
}

/**
 * Writes the pack of a session under a budget of tokens: into a folder, or into the context area of an exported session that the folder holds.
 * @throws {CortexfsError} `budget-too-small`, `symbolic-link`, `foreign-session`: nothing was changed
 * @throws {HistoryError} `beyond-end`, `not-yet`
 */
export async function packInto(
  timeline: Timeline,
  folder: string,
  { budget, ...wanted }: WantedSession & { readonly budget: number },
): Promise<{ readonly pack: Pack; readonly paths: readonly string[] }> {
  const { projection, records } = await readSession(timeline, wanted);
  const pack = packSession(packSources(projection, records), projection.counter, budget);
  return { pack, paths: await writePack(folder, projection.session, pack) };
}
