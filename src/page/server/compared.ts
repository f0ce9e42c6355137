import { requireSession } from '../../history/rebuild/find-session.js';
import { modelCallsOf } from '../../history/rebuild/model-calls.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { wireShape } from '../../http/wire-shape.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { describe } from '../../review/ask/described-objects.js';
import { inheritedSteps, ownSteps } from '../../review/ask/session-calls.js';
import { changedFiles } from '../../review/authors/made-changes.js';
import { sessionActors } from '../../review/authors/session-actors.js';
import { pinnedBasis } from '../../review/http/review-answers.js';
import { shapedRow } from '../../review/http/session-list.js';
import { sessionFigures } from '../../review/money/session-figures.js';
import { withSubAgents } from '../../review/money/sub-agent-cost.js';
import type { SessionRow, SessionRows } from '../../review/rows/session-rows.js';
import { type RecordedParents, subAgentsOf } from '../../review/rows/sub-agents.js';
import { defined } from '../../values/defined.js';
import { speakerOf } from './conversation.js';
import { PAGE_ANSWERS, type PageBody } from './page-schemas.js';

const MOST_OUTCOME = 20_000;
const MOST_TITLE = 200;

/** A file that a session changed, with its text after the session's last change. */
interface ChangedFile {
  readonly id: ObjectId;
  readonly name: string;
  readonly chars: number;
  readonly contentHash: string | undefined;
}

async function filesOf({ timeline, session, steps }: ComparedSide): Promise<readonly ChangedFile[]> {
  const actors = await sessionActors(timeline, session);
  const own = await ownSteps(timeline.present, session, steps);
  const ids = [...(await changedFiles(timeline.present, session, own)).keys()];
  const named = await describe(timeline, ids);
  return Promise.all(
    ids.map(async (id) => {
      const versions = await actors.versions(id);
      // Undefined if the transcript never showed the whole text, because then an edit made no
      // version.
      const left = versions.findLast(({ by }) => by.kind === 'agent' && by.session === session);
      const document =
        left === undefined ? undefined : (await timeline.present.historyOfHeads(id))[left.number - 1]?.document;
      const { content_hash: hash, char_count: chars } = (document ?? {}) as Readonly<Record<string, unknown>>;
      const name = named.get(id)?.name ?? id;
      return { id, name, chars: Number(chars ?? 0), contentHash: typeof hash === 'string' ? hash : undefined };
    }),
  );
}

/**
 * Returns how many steps two sessions share at their beginning, like a fork and its parent. Copied
 * steps have their own times and ids of calls.
 */
function sharedSteps(one: readonly Step[], other: readonly Step[], copied: number): number {
  const isShared = (step: Step, i: number): boolean => {
    const beside = other[i];
    if (beside === undefined || step.message?.text !== beside.message?.text) return false;
    if (i < copied) return nameOf(step) === nameOf(beside);
    return step.at === beside.at && step.call?.id === beside.call?.id;
  };
  const differs = one.findIndex((step, i) => !isShared(step, i));
  return differs < 0 ? Math.min(one.length, other.length) : differs;
}

/** Returns the recording's own id of a step's call, without the session that made the call. */
const nameOf = ({ call }: Step): string | undefined => call?.id.replace(/@[^@]*$/, '');

/** One of the two compared sessions. */
interface ComparedSide {
  /** Number of its first steps that are its parent's. */
  readonly inherited: number;
  readonly session: SessionId;
  readonly timeline: Timeline;
  readonly steps: readonly Step[];
}

async function sideOf(side: ComparedSide) {
  const { session, timeline } = side;
  const [files, requests, isTranscript] = await Promise.all([
    filesOf(side),
    timeline.requests(session),
    timeline.isTranscript(session),
  ]);
  return {
    outcome: side.steps.findLast(({ message }) => message?.role === 'assistant' && message.text !== '')?.message?.text,
    kind: requests.at(-1)?.kind ?? (isTranscript ? ('transcript' as const) : ('unseen' as const)),
    files,
  };
}

/** Returns the row of a session, from the list or, on a server of several agents, computed here. */
async function rowOf(
  { session, timeline, steps }: ComparedSide,
  { listed, recorded }: { readonly listed: SessionRow | undefined; readonly recorded: RecordedParents | undefined },
): Promise<SessionRow> {
  const { present } = timeline;
  const [figures, lineage, subAgents] = await Promise.all([
    sessionFigures(present, session),
    present.lineage(session),
    subAgentsOf(present, session, recorded),
  ]);
  const all = await withSubAgents(present, figures.spent, subAgents);
  const prompt = steps.find(({ message }) => message !== undefined && speakerOf(message) === 'user')?.message?.text;
  const parent = lineage?.segments.findLast((segment) => segment.session !== session);
  return {
    id: session,
    title: listed?.title || (prompt ?? '').slice(0, MOST_TITLE).replace(/\s+/g, ' ').trim().toWellFormed(),
    to: new Date(steps.at(-1)?.at ?? 0),
    turns: steps.at(-1)?.turn ?? 0,
    steps: steps.length,
    figures,
    ...defined({ agent: listed?.agent, folder: listed?.folder, withSubAgents: all }),
    ...(parent === undefined ? {} : { parent: { session: parent.session, kind: 'fork' } }),
  };
}

/** Joins the changed files of two sessions by name, because their ids for a file may differ. */
function besideEachOther(sides: readonly { readonly files: readonly ChangedFile[] }[]) {
  const names = [...new Set(sides.flatMap(({ files }) => files.map(({ name }) => name)))].sort();
  return names.map((name) => {
    const found = sides.map(({ files }) => files.find((file) => file.name === name));
    const [one, other] = found;
    const isKnown = one?.contentHash !== undefined && other?.contentHash !== undefined;
    const same = isKnown ? one.contentHash === other.contentHash : undefined;
    return { name, ids: found.map((file) => file?.id ?? null), same };
  });
}

/**
 * Compares two sessions: their shared steps, figures, last answers, and the files that each
 * changed.
 *
 * @throws {HistoryError} `unknown-session`
 */
export async function compared(
  asked: Timeline,
  { list, recorded }: { readonly list: SessionRows | undefined; readonly recorded?: RecordedParents | undefined },
  names: readonly [string, string],
): Promise<PageBody<'Compared'>> {
  const { present } = asked;
  const sides = await Promise.all(
    names.map(async (name): Promise<ComparedSide> => {
      const session = await requireSession(present, name);
      const timeline = await asked.of(session);
      const steps = await timeline.steps(session);
      const { steps: inherited } = await inheritedSteps(present, session, steps);
      return { session, timeline, steps, inherited };
    }),
  );
  const ids = new Set<string>(sides.map(({ session }) => session));
  const listed = (await list?.list(present))?.filter(({ id }) => ids.has(id));
  const rows = await Promise.all(
    sides.map((side) => rowOf(side, { listed: listed?.find(({ id }) => id === side.session), recorded })),
  );
  const shown = await Promise.all(sides.map(sideOf));
  const [one, other] = sides.map(({ steps }) => steps);
  const isSame = sides[0]?.session === sides[1]?.session;
  const shared = isSame ? 0 : sharedSteps(one ?? [], other ?? [], Math.max(...sides.map(({ inherited }) => inherited)));
  return wireShape(PAGE_ANSWERS.Compared, {
    basis: pinnedBasis(present.basis),
    shared: shared === 0 ? undefined : { steps: shared, calls: modelCallsOf((one ?? []).slice(0, shared)).length },
    sides: shown.map((side, i) => ({
      ...side,
      row: shapedRow(rows[i] as SessionRow),
      outcome: side.outcome?.slice(0, MOST_OUTCOME).toWellFormed(),
    })),
    files: besideEachOther(shown),
  });
}
