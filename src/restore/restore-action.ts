import { escapedLine, printJson, printLines, reportFailure, tell } from '../cli/output.js';
import { type Answer, answerReview, openReview, type Review, type ReviewFlags } from '../cli/review/answer.js';
import { localFilesystemId } from '../filesystem/access/filesystem-id.js';
import { MountTable } from '../filesystem/access/mounts.js';
import { AllowedRoots } from '../filesystem/access/roots.js';
import { requireSession } from '../history/rebuild/find-session.js';
import { askedMoment, parseReference } from '../history/rebuild/moment.js';
import { readMounts, readMoved, readSettings, UsageError } from '../host/settings.js';
import { clientFolder } from '../process/data-folder.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import type { FilesToReplace } from './open-sessions.js';
import {
  countStates,
  obstacles,
  type PlannedFile,
  planRestore,
  type RestorePlan,
  restoredBytes,
} from './restore-plan.js';

/** The flags of `restore`. */
export interface RestoreFlags extends ReviewFlags {
  readonly plan?: boolean;
  readonly apply?: boolean;
  readonly to?: string;
  readonly inPlace?: boolean;
  readonly undo?: string;
  readonly list?: boolean;
  readonly root?: readonly string[];
  readonly moved?: readonly string[];
}

/** The requested action: exactly one of these. */
type Wanted =
  | { readonly kind: 'plan' | 'in-place'; readonly session: string }
  | { readonly kind: 'copy'; readonly session: string; readonly folder: string }
  | { readonly kind: 'undo'; readonly id: string }
  | { readonly kind: 'list' };

const WAYS = 'use SESSION --plan, SESSION --apply --to FOLDER, SESSION --apply --in-place, --undo ID, or --list';

/** Returns the requested action, or an error in the flags. */
function wantedOf(
  session: string | undefined,
  { plan, apply, to, inPlace, undo, list }: RestoreFlags,
): Wanted | string {
  const ways = [plan, apply, undo, list].filter((one) => one !== undefined && one !== false).length;
  const hasPlace = to !== undefined || inPlace === true;
  if (ways > 1) return `--plan, --apply, --undo and --list exclude each other: ${WAYS}`;
  if (undo !== undefined || list === true) {
    if (session !== undefined || hasPlace) return `--undo and --list take no other arguments: ${WAYS}`;
    return undo === undefined ? { kind: 'list' } : { kind: 'undo', id: undo };
  }
  if (session === undefined) return `missing session: ${WAYS}`;
  if (apply !== true) return hasPlace ? `--to and --in-place need --apply: ${WAYS}` : { kind: 'plan', session };
  if ((to !== undefined) === (inPlace === true)) return '--apply needs either --to FOLDER or --in-place';
  return to === undefined ? { kind: 'in-place', session } : { kind: 'copy', session, folder: to };
}

const shown = ({ id, display, source, state, why, had, now }: PlannedFile) => ({
  id,
  path: display,
  here: source.path,
  state,
  why,
  had,
  now,
});

const planJson = ({ session, turn, seq, files }: RestorePlan) => ({
  session,
  turn,
  step: seq,
  files: files.map(shown),
});

/** A plan and the folders that it may change. */
interface MadePlan {
  readonly plan: RestorePlan;
  readonly roots: AllowedRoots;
}

async function makePlan({ timeline, dataDir }: Review, reference: string, flags: RestoreFlags): Promise<MadePlan> {
  const { name, moment } = parseReference(reference);
  const when = askedMoment(flags, moment);
  const session = await requireSession(timeline.present, name);
  const mounts = new MountTable({
    mappings: readMounts(flags.mount),
    defaultFilesystemId: await localFilesystemId(dataDir),
  });
  const places = mounts.mappings.map(({ canonicalPrefix }) => canonicalPrefix);
  const roots = await AllowedRoots.open(flags.root ?? [process.cwd()], places);
  const plan = await planRestore(timeline, session, { when, access: { roots, mounts }, moved: readMoved(flags.moved) });
  return { plan, roots };
}

const where = ({ session, turn, seq }: RestorePlan): string => `session ${session}, turn ${turn}, step ${seq}`;

function planAnswer({ plan }: MadePlan): Answer {
  const counts = countStates(plan);
  const inTheWay = obstacles(plan);
  const ready =
    inTheWay.length === 0
      ? 'it can be restored in place'
      : `it cannot be restored in place: ${inTheWay.length} files are in the way`;
  return {
    lines: () => [
      ...plan.files.map(({ state, display, why }) =>
        escapedLine(`${state.padEnd(13)}  ${display}${why === undefined ? '' : `  (${why})`}`),
      ),
      `${where(plan)}: ${
        Object.entries(counts)
          .map(([state, count]) => `${count} ${state}`)
          .join(', ') || 'no files'
      }; ${ready}`,
    ],
    json: () => ({ ...planJson(plan), counts, in_the_way: inTheWay }),
  };
}

async function copyAnswer({ timeline }: Review, { plan }: MadePlan, folder: string): Promise<Answer> {
  const { copyRestored } = await import('./copy-restored.js');
  const { to, written, left } = await copyRestored(timeline, plan, folder);
  return {
    lines: () => [
      `${escapedLine(to)}: ${written.length} files as the agent had them (${where(plan)})`,
      ...left.map((path) => escapedLine(`not kept  ${path}`)),
    ],
    json: () => ({ ...planJson(plan), folder: to, written, not_kept: left }),
  };
}

/**
 * The states of files that are written. Other files are already equal, were never known, or have no
 * stored text.
 */
const TO_WRITE: ReadonlySet<PlannedFile['state']> = new Set(['changed', 'missing']);

/** Rejects replacing files that an agent works on. */
async function requireClosed(
  clientDir: string,
  files: FilesToReplace,
  openPresent: () => Promise<StoreSnapshot>,
): Promise<void> {
  const [{ openOnFiles }, { RestoreError }] = await Promise.all([
    import('./open-sessions.js'),
    import('./restore-error.js'),
  ]);
  const open = await openOnFiles(clientDir, files, openPresent);
  if (open === undefined) return;
  const { session, holder, path } = open;
  throw new RestoreError(
    'session-open',
    `session ${session} is open in ${holder}${path === undefined ? '' : ` and works on ${path}`}. A restore in place ` +
      'would overwrite the files of its agent. End that process first, or restore with --to FOLDER',
  );
}

/** As `requireClosed`, for undoing a restore. Opens the database only if sessions are open. */
async function requireClosedForUndo(
  flags: RestoreFlags,
  { dataDir, id }: { readonly dataDir: string; readonly id: string },
): Promise<void> {
  const { keptReplacements } = await import('./kept-replacements.js');
  const kept = (await keptReplacements(dataDir)).find((one) => one.id === id);
  if (kept === undefined) return;
  const clientDir = clientFolder(dataDir, readSettings(process.env, flags).nodeUrl);
  const filesystem = await localFilesystemId(dataDir);
  const files = { session: kept.session, filesystem, paths: kept.files.map(({ path }) => path) };
  let close = async (): Promise<void> => undefined;
  try {
    await requireClosed(clientDir, files, async () => {
      const review = await openReview(flags);
      close = review.close;
      return review.timeline.present;
    });
  } finally {
    await close();
  }
}

async function inPlaceAnswer({ clientDir, dataDir, timeline }: Review, { plan, roots }: MadePlan): Promise<Answer> {
  const [{ replaceKept }, { RestoreError }] = await Promise.all([
    import('./kept-replacements.js'),
    import('./restore-error.js'),
  ]);
  const replaced = plan.files.filter(({ state }) => TO_WRITE.has(state));
  const [paths, ids] = [replaced.map(({ source }) => source.path), replaced.map(({ id }) => id)];
  const filesystem = await localFilesystemId(dataDir);
  await requireClosed(clientDir, { session: plan.session, filesystem, paths, ids }, async () => timeline.present);
  const inTheWay = obstacles(plan);
  if (inTheWay.length > 0)
    throw new RestoreError(
      'not-clean',
      `no changes made, ${inTheWay.length} files are in the way: ${inTheWay.slice(0, 3).join('; ')}` +
        `${inTheWay.length > 3 ? '; …' : ''} (--plan shows all; --to writes into a folder)`,
    );
  const files = plan.files.filter(({ state }) => TO_WRITE.has(state));
  const left = plan.files.filter(({ state }) => state === 'absent-then').map(({ display }) => display);
  const replacements = files.flatMap((file) => {
    if (file.had === null) return [];
    const bytes = async (): Promise<Uint8Array> => {
      const found = await restoredBytes(plan, file);
      if (found === undefined) throw new RestoreError('not-clean', `the agent's text of ${file.display} is not stored`);
      return found;
    };
    return [{ path: file.source.path, before: file.now, after: file.had, bytes }];
  });
  const { session, turn, seq: step } = plan;
  const onKept = (id: string): void => {
    tell(`palimpsest: the replaced files are kept as ${id}`);
  };
  const id =
    files.length === 0
      ? undefined
      : await replaceKept(dataDir, { roots, of: { session, turn, step }, replacements, onKept });
  return {
    lines: () => [
      id === undefined
        ? `nothing differs (${where(plan)})`
        : `${files.length} files as the agent had them (${where(plan)}); undo it with: palimpsest restore --undo ${id}`,
      ...files.map(({ display, state }) => escapedLine(`${state.padEnd(13)}  ${display}`)),
      ...left.map((path) =>
        escapedLine(`left there     ${path}: it did not exist then, but restore never removes a file`),
      ),
    ],
    json: () => ({ ...planJson(plan), undo: id ?? null, written: files.map(({ display }) => display), left }),
  };
}

/** `restore [session]` */
export async function restoreAction(reference: string | undefined, flags: RestoreFlags): Promise<void> {
  const wanted = wantedOf(reference, flags);
  if (typeof wanted !== 'string' && (wanted.kind === 'undo' || wanted.kind === 'list')) {
    await reportFailure(flags, async () => {
      const { keptReplacements, undoReplacements } = await import('./kept-replacements.js');
      const { dataDir } = readSettings(process.env, flags).node;
      if (wanted.kind === 'undo') {
        await requireClosedForUndo(flags, { dataDir, id: wanted.id });
        const isUndone = (await keptReplacements(dataDir)).some(
          ({ id, isUndone: before }) => id === wanted.id && before,
        );
        const paths = await undoReplacements(dataDir, wanted.id);
        const outcome =
          isUndone && paths.length === 0
            ? 'already undone; no changes made'
            : `${paths.length} files are as they were before`;
        const lines = [`${wanted.id}: ${outcome}`, ...paths];
        return flags.json === true ? printJson({ undone: wanted.id, paths }) : printLines(lines);
      }
      const all = await keptReplacements(dataDir);
      const lines = all.map(
        ({ id, session, turn, at, files, isUndone }) =>
          `${id}  ${at}  session ${session}, turn ${turn}, ${files.length} files${isUndone ? ', undone' : ''}`,
      );
      if (flags.json === true) printJson({ restores: all });
      else printLines(lines.length === 0 ? ['there is no in-place restore to undo'] : lines);
    });
    return;
  }
  if (typeof wanted === 'string') {
    return reportFailure(flags, () => Promise.reject(new UsageError(wanted)));
  }
  await answerReview(flags, async (review) => {
    const made = await makePlan(review, wanted.session, flags);
    if (wanted.kind === 'plan') return planAnswer(made);
    return wanted.kind === 'copy' ? copyAnswer(review, made, wanted.folder) : inPlaceAnswer(review, made);
  });
}
