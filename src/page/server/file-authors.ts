import { requireSession } from '../../history/rebuild/find-session.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { wireShape } from '../../http/wire-shape.js';
import { describe } from '../../review/ask/described-objects.js';
import { requireObject } from '../../review/ask/find-object.js';
import { changeOf, ownSteps } from '../../review/ask/session-calls.js';
import type { FileCall, VersionActor } from '../../review/authors/acted-versions.js';
import { editSights } from '../../review/authors/edit-sights.js';
import { changedFiles } from '../../review/authors/made-changes.js';
import { sessionActors } from '../../review/authors/session-actors.js';
import { pinnedBasis } from '../../review/http/review-answers.js';
import { defined } from '../../values/defined.js';
import { PAGE_ANSWERS, type PageBody } from './page-schemas.js';

const shownActor = (by: VersionActor) => ({ ...by });

/**
 * Names the effect of a call on a file that it named. Only the change of a tool counts as one of
 * the file's edits. `open`: the steps of changes without a recorded text.
 */
function effectOf({ step, call, changes, isMade }: FileCall, open: ReadonlySet<number>) {
  if (!changes) return call.reads ? ('read' as const) : ('listed' as const);
  if (call.changes || !isMade) return changeOf(isMade);
  return open.has(step.seq) ? ('perhaps changed' as const) : ('changed by a command' as const);
}

/**
 * Returns the versions of a file, each with its author as the calls of a session show it.
 *
 * @throws {HistoryError} `unknown-session`, `unknown-object`
 */
export async function fileAuthors(asked: Timeline, name: string, object: string): Promise<PageBody<'Authors'>> {
  const session = await requireSession(asked.present, name);
  const timeline = await asked.of(session);
  const id = await requireObject(timeline.present, object, { session, paths: timeline.paths });
  const actors = await sessionActors(timeline, session);
  const [versions, unrecorded, calls, sights] = await Promise.all([
    actors.versions(id),
    actors.unrecorded(id),
    actors.calls(id),
    editSights(timeline, session, (_, call) => call.fileRefs.includes(id)),
  ]);
  const open = new Set(unrecorded.map(({ step }) => step.seq));
  return wireShape(PAGE_ANSWERS.Authors, {
    session,
    basis: pinnedBasis(timeline.present.basis),
    object: id,
    versions: versions.map((version) => ({ ...version, by: shownActor(version.by) })),
    unrecorded: unrecorded.map(({ step, isSure, by }) => ({
      ...{ step: step.seq, turn: step.turn, at: new Date(step.at) },
      isSure,
      by,
    })),
    calls: calls.map((made) => {
      const { step, call, lines } = made;
      return {
        step: step.seq,
        turn: step.turn,
        at: new Date(step.at),
        name: call.name,
        failed: call.failed,
        unanswered: call.unanswered,
        effect: effectOf(made, open),
        ...defined({ lines, sight: sights.get(step.seq)?.files.get(id) }),
      };
    }),
  });
}

/** Describes what is known of calls on stale copies. Empty if the list of such calls says it. */
function verdictOn({
  outside,
  calls,
  isTranscript,
}: {
  outside: readonly { readonly isUnacted: boolean }[];
  calls: number;
  isTranscript: boolean;
}): string {
  if (calls === 0 && outside.length > 0 && outside.every(({ isUnacted }) => isUnacted))
    return (
      'Files changed, and no recorded call did it. No call acted on a stale copy of them: ' +
      'none edited them between the read of the old text and the read of the new text.'
    );
  if (outside.length > 0)
    return 'Files changed, and no recorded call did it. Whether a call acted on a stale copy of them is not recorded:';
  if (calls > 0) return '';
  return `No call acted on a stale copy${isTranscript ? ', as far as the reads in the transcript show' : ''}.`;
}

/**
 * Returns the calls of a session that changed a file whose newest version the agent had not seen.
 *
 * @throws {HistoryError} `unknown-session`
 */
export async function staleCalls(asked: Timeline, name: string): Promise<PageBody<'Stale'>> {
  const session = await requireSession(asked.present, name);
  const timeline = await asked.of(session);
  const actors = await sessionActors(timeline, session);
  const isTranscript = await timeline.isTranscript(session);
  const [found, outside] = await Promise.all([actors.stale(), isTranscript ? actors.outside() : []]);
  const files = await describe(timeline, [...new Set([...found, ...outside].map(({ object }) => object))]);
  const own = await ownSteps(timeline.present, session, await timeline.steps(session));
  const changed = await changedFiles(timeline.present, session, own);
  return wireShape(PAGE_ANSWERS.Stale, {
    session,
    basis: pinnedBasis(timeline.present.basis),
    changed: [...changed].map(([object, calls]) => ({ object, calls })),
    verdict: verdictOn({ outside, calls: found.length, isTranscript }),
    outside: outside.map(({ step, name, object, lines, why }) => ({
      step: step.seq,
      turn: step.turn,
      at: new Date(step.at),
      name,
      object,
      file: files.get(object)?.name ?? object,
      why,
      ...(lines === undefined ? {} : { lines: { from: lines.from, to: lines.to } }),
    })),
    calls: found.map(({ step, call, object, seen, was }) => ({
      step: step.seq,
      turn: step.turn,
      at: new Date(step.at),
      id: call.id,
      name: call.name,
      failed: call.failed,
      object,
      file: files.get(object)?.name ?? object,
      seen,
      was,
      by: was.by,
    })),
  });
}
