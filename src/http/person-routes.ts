import type { ContextClient } from '../client/session/context-client.js';
import { changeByPerson, previewUndo, undoStep } from '../client/session/person-steps.js';
import type { FilesystemAccess } from '../filesystem/access/access.js';
import { SourceError } from '../filesystem/access/errors.js';
import { AllowedRoots } from '../filesystem/access/roots.js';
import { askedMoment, parseReference } from '../history/ask/reference.js';
import { requireSession } from '../history/rebuild/find-session.js';
import { Timeline } from '../history/rebuild/timeline.js';
import type { RestorePlan } from '../history/restore/restore-plan.js';
import { sessionObjectId } from '../objects/ids.js';
import type { SetVerbs } from '../session/plan-step.js';
import { defined } from '../values/defined.js';
import { ANSWERS, type AnswerBody, type RequestBody } from './api-schemas.js';
import type { Exchange, PersonSettings } from './http-contract.js';
import { ReviewAccess } from './review-access.js';
import { wireShape } from './wire-shape.js';

/**
 * Changes the sets of a session for a person. Throws as `ApiSessions.asPerson` and
 * `changeByPerson`.
 */
export function changeSets(
  { sessions, id }: Exchange,
  { verb, ids }: RequestBody<'PersonVerb'>,
): Promise<AnswerBody<'SetsChanged'>> {
  return sessions.asPerson(id, async ({ session }) => {
    const { entries, step } = await changeByPerson(session, { verb, references: ids });
    return wireShape(ANSWERS.SetsChanged, { session: session.id, verb, step: step?.seq, entries });
  });
}

const shownChanges = ({ activate, deactivate, pin, unpin }: SetVerbs) => defined({ activate, deactivate, pin, unpin });

/**
 * Reverts a step's changes to the sets, or previews that. Throws as `ApiSessions.asPerson` and
 * `undoStep`.
 */
export async function undoOneStep(
  { sessions, id }: Exchange,
  body: RequestBody<'Undo'>,
): Promise<AnswerBody<'StepUndone'>> {
  if (body.plan === true) {
    const client = await sessions.client();
    const timeline = await Timeline.open(await client.delivered(), client.files);
    const session = await requireSession(timeline.present, id);
    await client.requireRoots(session, timeline.present);
    const { undoes, verbs } = await previewUndo(timeline.store, session, body.step);
    return wireShape(ANSWERS.StepUndone, { session, undoes, step: undefined, changes: shownChanges(verbs) });
  }
  return sessions.asPerson(id, async ({ client, session }) => {
    const { seq, changes } = await undoStep(session, client.store, body.step);
    return wireShape(ANSWERS.StepUndone, {
      session: session.id,
      undoes: body.step,
      step: seq,
      changes: shownChanges(changes),
    });
  });
}

/** Forks a session and leaves the fork closed. Throws as `ContextClient.makeFork`. */
export async function forkOne({ sessions, id }: Exchange, body: RequestBody<'Fork'>): Promise<AnswerBody<'Forked'>> {
  const client = await sessions.client();
  const fork = await client.makeFork(id, defined({ id: body.id, at: body.at }));
  return { id: fork.id, parent: { session: fork.parent.session, at: fork.parent.seq } };
}

/**
 * Returns the folders in which a session's files are compared. For the owner of the data folder
 * these are the session's, if they exist here; otherwise the server's.
 */
async function accessOf(
  client: ContextClient,
  timeline: Timeline,
  { name, all }: { readonly name: string; readonly all: boolean },
): Promise<FilesystemAccess> {
  const { access } = client.files;
  if (!all) return access;
  const key = sessionObjectId(await requireSession(timeline.present, name));
  const recorded = (await timeline.present.heads([key])).get(key)?.marks.roots ?? [];
  const local = recorded.filter(({ filesystemId }) => filesystemId === access.mounts.localFilesystemId);
  const there = await Promise.all(
    local.map(({ path }) =>
      AllowedRoots.open([path]).then(
        () => [path],
        (error: unknown) => {
          if (error instanceof SourceError) return [];
          throw error;
        },
      ),
    ),
  );
  const roots = there.flat();
  return roots.length === 0 ? access : { ...access, roots: await AllowedRoots.open(roots) };
}

/** The files of a session to compare. */
export interface AskedRestore {
  readonly session: string;
  readonly at?: string | undefined;
}

/** Compares a session's files with those its agent had at a moment. Throws as `planRestore`. */
export async function planFiles(
  client: ContextClient,
  timeline: Timeline,
  { session: reference, at, all }: AskedRestore & Pick<PersonSettings, 'all'>,
): Promise<RestorePlan> {
  const { planRestore } = await import('../history/restore/restore-plan.js');
  const { name, moment } = parseReference(reference);
  const when = askedMoment({ at }, moment);
  const session = await requireSession(timeline.present, name);
  return planRestore(timeline, session, { when, access: await accessOf(client, timeline, { name, all }) });
}

/**
 * Writes a session's files as its agent had them into a new folder, inside the folders for copies.
 * @throws {SourceError} `outside-roots`
 * @throws {RestoreError} `folder-in-use`, `not-a-folder`
 */
export async function copyFiles(
  { sessions, id, person: { all, copyRoots } }: Exchange,
  body: RequestBody<'FileCopies'>,
): Promise<AnswerBody<'FilesCopied'>> {
  const client = await sessions.client();
  const timeline = await Timeline.open(await client.delivered(), client.files);
  await new ReviewAccess(client, timeline, all).requireNamed(id);
  const roots = await AllowedRoots.open(copyRoots);
  const { path } = await roots.resolve(body.to, { mustExist: false, ...defined({ cwd: copyRoots[0] }) });
  const { copyRestored } = await import('../history/restore/copy-restored.js');
  const plan = await planFiles(client, timeline, { session: id, at: body.at, all });
  const { to, written, left } = await copyRestored(timeline, plan, path);
  return {
    session: plan.session,
    turn: plan.turn,
    step: plan.seq,
    folder: to,
    written: [...written],
    not_kept: [...left],
  };
}
