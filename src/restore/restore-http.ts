import * as z from 'zod';
import type { ContextClient } from '../client/session/context-client.js';
import type { FilesystemAccess } from '../filesystem/access/access.js';
import { SourceError } from '../filesystem/access/errors.js';
import { AllowedRoots } from '../filesystem/access/roots.js';
import { requireSession } from '../history/rebuild/find-session.js';
import { askedMoment, parseReference } from '../history/rebuild/moment.js';
import { Timeline } from '../history/rebuild/timeline.js';
import { contractEntries, type Exchange, type HttpContract, type PersonSettings } from '../http/http-contract.js';
import { at, pin, sessionName } from '../http/question-parameters.js';
import { ReviewAccess } from '../http/review-access.js';
import { wireShape } from '../http/wire-shape.js';
import { sessionObjectId } from '../objects/ids.js';
import { count, digest } from '../review/http/review-parts.js';
import { defined } from '../values/defined.js';
import { RestoreError, type RestoreErrorCode } from './restore-error.js';
import { FILE_STATES, type RestorePlan } from './restore-plan.js';

/** The body of a request to copy files. */
export const RESTORE_REQUESTS = {
  FileCopies: z.strictObject({
    at: at.describe('A moment such as turn:7 or step:41; default: the last step'),
    to: z.string().min(1).max(4_000).describe('A new or empty folder inside the folders of this server'),
  }),
};

/** Answers about the files of a session. */
export const RESTORE_ANSWERS = {
  RestorePlan: z.object({
    session: z.string(),
    turn: count,
    step: count,
    files: z.array(
      z.object({
        id: z.string(),
        path: z.string(),
        here: z.string().describe('Its path on this machine'),
        state: z.enum(FILE_STATES),
        why: z.string().nullable(),
        had: digest.describe('The hash of the bytes that the agent had'),
        now: digest.describe('The hash of the bytes on the disk'),
      }),
    ),
    counts: z.record(z.string(), count),
    in_the_way: z.array(z.string()).describe('Files that prevent an in-place restore'),
  }),
  FilesCopied: z.object({
    session: z.string(),
    turn: count,
    step: count,
    folder: z.string(),
    written: z.array(z.string()),
    not_kept: z
      .array(z.string())
      .describe('Files without a recorded text at the moment. The database has at most their hash'),
  }),
};

/** An answer as sent. */
export type RestoreAnswer<N extends keyof typeof RESTORE_ANSWERS> = z.input<(typeof RESTORE_ANSWERS)[N]>;

const { operation, question } = contractEntries({ requests: RESTORE_REQUESTS, answers: RESTORE_ANSWERS });

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
interface AskedRestore {
  readonly session: string;
  readonly at?: string | undefined;
}

/** Compares a session's files with those its agent had at a moment. Throws as `planRestore`. */
async function planFiles(
  client: ContextClient,
  timeline: Timeline,
  { session: reference, at, all }: AskedRestore & Pick<PersonSettings, 'all'>,
): Promise<RestorePlan> {
  const { planRestore } = await import('./restore-plan.js');
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
async function copyFiles(
  { client: ready, id, person: { all, copyRoots } }: Exchange,
  body: z.output<(typeof RESTORE_REQUESTS)['FileCopies']>,
): Promise<RestoreAnswer<'FilesCopied'>> {
  const client = await ready();
  const timeline = await Timeline.open(await client.delivered(), client.files);
  await new ReviewAccess(client, timeline, all).requireNamed(id);
  const roots = await AllowedRoots.open(copyRoots);
  const { path } = await roots.resolve(body.to, { mustExist: false, ...defined({ cwd: copyRoots[0] }) });
  const { copyRestored } = await import('./copy-restored.js');
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

/** Operations by their OpenAPI ids. */
export const RESTORE_OPERATIONS = {
  copyFiles: operation({
    method: 'POST',
    path: '/v1/sessions/{id}/restore',
    summary: "Write a session's files as its agent had them at a moment into a new folder",
    request: 'FileCopies',
    example: { at: 'turn:7', to: 'restored' },
    answer: 'FilesCopied',
    statuses: [201],
    handle: copyFiles,
  }),
};

/** Questions by their OpenAPI ids. */
export const RESTORE_QUESTIONS = {
  restorePlan: question({
    path: '/v1/restore',
    summary: "How a session's files on disk differ from those its agent had at a moment",
    parameters: z.strictObject({ session: sessionName, at, ...pin }),
    example: { session: 'fix-cart', at: 'turn:7' },
    answer: 'RestorePlan',
    pins: true,
    ask: async ({ timeline, client, all }, { session, at }) => {
      const { countStates, obstacles } = await import('./restore-plan.js');
      const plan = await planFiles(client, timeline, { session, at, all });
      const files = plan.files.map(({ display, source, ...file }) => ({ ...file, path: display, here: source.path }));
      const more = { counts: countStates(plan), inTheWay: obstacles(plan) };
      return wireShape(RESTORE_ANSWERS.RestorePlan, {
        session: plan.session,
        turn: plan.turn,
        step: plan.seq,
        files,
        ...more,
      });
    },
  }),
};

const RESTORE: Readonly<Record<RestoreErrorCode, number>> = {
  'folder-in-use': 409,
  'not-a-folder': 409,
  'not-clean': 409,
  'session-open': 409,
  'unknown-restore': 404,
  'changed-since': 409,
};

/** The HTTP interface of restores. */
export const RESTORE_HTTP: HttpContract = {
  requests: RESTORE_REQUESTS,
  answers: RESTORE_ANSWERS,
  operations: RESTORE_OPERATIONS,
  questions: RESTORE_QUESTIONS,
  statusOf: (error) =>
    error instanceof RestoreError ? { status: RESTORE[error.code], title: 'Files are not written' } : undefined,
};
