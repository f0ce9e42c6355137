import { posix } from 'node:path';
import pLimit from 'p-limit';
import type { FilesystemAccess } from '../filesystem/access/access.js';
import { isWithin } from '../filesystem/access/mounts.js';
import { readSource, type SourceReading, type UnreachableReason } from '../filesystem/access/read-source.js';
import { joinedRanges, type LineRange, linesAsked } from '../history/rebuild/call-names.js';
import { HistoryError } from '../history/rebuild/history-error.js';
import { formatMoment, type When } from '../history/rebuild/moment.js';
import type { Point, Timeline } from '../history/rebuild/timeline.js';
import { hashBytes } from '../objects/hashes.js';
import {
  canonicalPath,
  filesystemId,
  type ObjectId,
  type SessionId,
  type Sha256,
  sessionObjectId,
} from '../objects/ids.js';
import { type FilesystemSource, filesystemSource, parseSource } from '../objects/source.js';
import type { Step } from '../objects/step.js';
import { marksIn } from '../redaction/stored-marks.js';
import { sessionCalls } from '../review/ask/session-calls.js';
import type { Head } from '../store/snapshot-rows.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import { defined } from '../values/defined.js';

/**
 * The possible differences between a file on disk and the agent's file.
 *
 * - `same`: the same bytes, or deleted then and still absent
 * - `changed`: the bytes of another version in the database
 * - `newer-outside`: bytes that no version in the database has
 * - `missing`: the file no longer exists
 * - `absent-then`: the file exists now but was deleted then
 * - `read-in-part`: calls read lines of it, and the database never had all of it
 * - `never-read`: its name was known, but not its content
 * - `not-recorded`: it was changed after its last recorded text
 * - `not-kept`: the file differs or is missing, and the database has only the hash of the agent's
 *   bytes
 * - `outside-roots`: the file is outside the allowed folders
 * - `unreachable`: its mount or filesystem is unavailable, or it cannot be read
 * - `not-regular`: its path is a folder or another special file
 */
export const FILE_STATES = [
  'same',
  'changed',
  'newer-outside',
  'missing',
  'absent-then',
  'read-in-part',
  'never-read',
  'not-recorded',
  'not-kept',
  'outside-roots',
  'unreachable',
  'not-regular',
] as const;
/** One of `FILE_STATES`. */
export type FileState = (typeof FILE_STATES)[number];

/** A file of a session at a moment, compared with the disk. */
export interface PlannedFile {
  readonly id: ObjectId;
  /** Its location on this machine. */
  readonly source: FilesystemSource;
  readonly display: string;
  readonly state: FileState;
  /**
   * The reason for `unreachable` and `not-regular` in one word; the lines of `read-in-part`; the
   * last change of `not-recorded`.
   */
  readonly why?: string;
  /** The hash of the agent's bytes. Null if it had none, or if they are not recorded. */
  readonly had: Sha256 | null;
  /** The hash of the bytes on disk. Null if there are none or they cannot be read. */
  readonly now: Sha256 | null;
  /** Whether `restoredBytes` can return the agent's bytes. */
  readonly isKept: boolean;
}

/** The differences between a session's files at a moment and the disk. */
export interface RestorePlan {
  readonly session: SessionId;
  readonly point: Point;
  /** The last step of the moment. */
  readonly seq: number;
  readonly turn: number;
  /** In the order of the session's index. */
  readonly files: readonly PlannedFile[];
}

/** The current location of a recorded folder on this machine's own filesystem. */
interface MovedFolder {
  readonly from: string;
  readonly to: string;
}

/** Options for a plan. */
export interface RestoreOptions {
  readonly access: FilesystemAccess;
  readonly moved?: readonly MovedFolder[];
}

/**
 * Returns the current location of a source: in a moved folder on this machine, or on the filesystem
 * to which an import mapped it.
 */
function located(
  source: FilesystemSource,
  { access, moved = [], filesystems }: RestoreOptions & { readonly filesystems: readonly MovedFolder[] },
): FilesystemSource {
  const move = moved.find(({ from }) => isWithin(source.path, from));
  if (move === undefined) {
    const here = filesystems.find(({ from }) => from === source.filesystemId)?.to;
    return here === undefined ? source : filesystemSource(filesystemId(here), source.path);
  }
  return filesystemSource(
    access.mounts.localFilesystemId,
    canonicalPath(posix.join(move.to, source.path.slice(move.from.length))),
  );
}

/** The agent's file at a moment. */
interface HadFile {
  readonly had: Sha256 | null;
  readonly gone: boolean;
  readonly isKept: boolean;
}

type Comparison = Pick<PlannedFile, 'state' | 'now'> & { readonly why?: string };

const OUT_OF_REACH: Readonly<Record<UnreachableReason, FileState>> = {
  'no-permission': 'unreachable',
  io: 'unreachable',
  'mount-absent': 'unreachable',
  'foreign-filesystem': 'unreachable',
  'outside-roots': 'outside-roots',
  loop: 'unreachable',
  'invalid-path': 'unreachable',
};

/**
 * Compares the agent's file with the one on disk. `isKnown` returns whether the database has a
 * version of the file with a given hash.
 */
async function compared(
  { had, gone, isKept }: HadFile,
  reading: SourceReading,
  isKnown: (hash: Sha256) => Promise<boolean>,
): Promise<Comparison> {
  if (had === null && !gone) return { state: 'never-read', now: null };
  if (reading.kind === 'unreachable') return { state: OUT_OF_REACH[reading.reason], why: reading.reason, now: null };
  if (reading.kind === 'not-regular') return { state: 'not-regular', why: reading.what, now: null };
  if (reading.kind === 'missing') return { state: gone ? 'same' : isKept ? 'missing' : 'not-kept', now: null };
  const { fileHash: now } = reading;
  if (gone) return { state: 'absent-then', now };
  if (now === had) return { state: 'same', now };
  if (!(await isKnown(now))) return { state: 'newer-outside', now };
  return { state: isKept ? 'changed' : 'not-kept', now };
}

/**
 * Returns the local folders and filesystems recorded by imports: first of the session, then of its
 * ancestors, nearest first.
 */
async function importedPlaces({ present }: Timeline, session: SessionId) {
  const lineage = await present.lineage(session);
  const sessions = new Set([session, ...(lineage?.segments ?? []).map((segment) => segment.session).reverse()]);
  const imports = await Promise.all([...sessions].map((one) => present.documents.importOf(one)));
  return {
    folders: imports.flatMap((one) => one?.folders ?? []),
    filesystems: imports.flatMap((one) => one?.filesystems ?? []),
  };
}

const MOST_PARTS = 4;
/** Number of files whose changes are read at once. */
const FILES_AT_ONCE = 8;

/**
 * Returns the parts of files that calls read, in words: `lines 1-200, 340-380`. A listing or a
 * search reads no file.
 */
async function readParts(snapshot: StoreSnapshot, steps: readonly Step[]): Promise<ReadonlyMap<ObjectId, string>> {
  const found = new Map<ObjectId, (LineRange | undefined)[]>();
  for (const { reads, failed, args, fileRefs } of (await sessionCalls(snapshot, steps)).values()) {
    if (!reads || failed) continue;
    for (const id of fileRefs) found.set(id, [...(found.get(id) ?? []), linesAsked({ args })]);
  }
  return new Map([...found].map(([id, parts]) => [id, partsText(parts.filter((part) => part !== undefined))]));
}

/** Names parts of a file, in the file's order. Merges parts that overlap or touch. */
export function partsText(parts: readonly LineRange[]): string {
  if (parts.length === 0) return 'a part';
  const joined = joinedRanges(parts);
  const more = joined.length > MOST_PARTS ? ` and ${joined.length - MOST_PARTS} more` : '';
  const texts = joined.slice(0, MOST_PARTS).map(({ from, to = '' }) => `${from}-${to}`);
  return `lines ${texts.join(', ')}${more}`;
}

/**
 * Returns the files whose texts at a step are not recorded, each with the last known change: by a
 * call, or from outside. A command that only may have changed a file does not count.
 */
async function changedWithoutText(
  timeline: Timeline,
  session: SessionId,
  { heads, last }: { readonly heads: ReadonlyMap<string, Head>; readonly last: number },
): Promise<ReadonlyMap<string, string>> {
  const { sessionActors } = await import('../review/authors/session-actors.js');
  const actors = await sessionActors(timeline, session);
  const found = await pLimit(FILES_AT_ONCE).map(heads, async ([id, { validTime }]) => {
    const [changes, versions] = await Promise.all([actors.unrecorded(id as ObjectId), actors.versions(id as ObjectId)]);
    const without = changes.findLast(({ step, isSure }) => isSure && step.seq <= last && step.at > validTime.getTime());
    // A later read may show the text of an earlier change.
    const later = versions.find(({ by, validTime: from }) => (by.step ?? last + 1) <= last && from > validTime);
    const by = without?.by ?? later?.by;
    if (by === undefined) return [];
    const what = by.name ?? 'a change from outside';
    return [[id, by.turn === undefined ? what : `${what} in turn ${by.turn}`] as const];
  });
  return new Map(found.flat());
}

/**
 * Compares the files of a session's agent at a moment with the disk. Changes nothing.
 *
 * @throws {HistoryError} `beyond-end`, `not-yet`, `which-session`
 * @throws {StoreError} `missing-part`, `corrupt-part`
 * @throws {XtdbError}
 */
export async function planRestore(
  timeline: Timeline,
  session: SessionId,
  { when, ...options }: RestoreOptions & { readonly when: When },
): Promise<RestorePlan> {
  const own = await timeline.of(session);
  const point = await own.find(when, session);
  const { snapshot, moment } = point;
  const key = sessionObjectId(session);
  if (!(await snapshot.heads([key])).has(key))
    throw new HistoryError(
      'not-yet',
      `session ${session} did not exist at ${formatMoment(moment)}; palimpsest log ${session} shows its turns`,
    );
  const steps =
    point.place === undefined
      ? await (snapshot === own.present ? own.steps(session) : snapshot.steps(session))
      : (await timeline.steps(session)).slice(0, point.place.seq);
  const last = steps.at(-1);
  const index = [...new Set(steps.flatMap(({ changes }) => changes.index ?? []))];
  // Skip calls: they are most of the objects, so reading their heads would cost the most.
  const heads = await snapshot.heads(index.filter((id) => snapshot.knownCall(id) === undefined));
  const { folders, filesystems } = await importedPlaces(timeline, session);
  const parts = await readParts(snapshot, steps);
  const ofTexts = new Map(
    [...heads].filter(([, { document }]) => document.type === 'file' && document.file_hash !== null),
  );
  // Other sessions record texts from the disk.
  const unknown = (await timeline.isTranscript(session))
    ? await changedWithoutText(timeline, session, { heads: ofTexts, last: last?.seq ?? 0 })
    : new Map<string, string>();
  const files: PlannedFile[] = [];
  for (const id of index) {
    const head = heads.get(id);
    const recorded = head?.document.type === 'file' ? parseSource(head.document.source) : null;
    if (head === undefined || recorded === null) continue;
    const source = located(recorded, { ...options, moved: [...(options.moved ?? []), ...folders], filesystems });
    const change = unknown.get(id);
    if (change !== undefined) {
      const had = { had: null, now: null, isKept: false };
      files.push({ id, source, display: timeline.paths.display(recorded), state: 'not-recorded', why: change, ...had });
      continue;
    }
    const { file_hash: hash, content_hash: content } = head.document;
    const gone = head.marks.gone === true;
    const had = hash === null ? null : (hash as Sha256);
    // If the content is the whole file, `content_hash` equals `file_hash`. The whole text of a
    // longer file is stored under `file_hash`.
    const isKept =
      had !== null && content !== null && (had === content || (await snapshot.damagedTexts([had])).size === 0);
    const isKnown = async (now: Sha256): Promise<boolean> =>
      (await own.present.historyOfHeads(id)).some(({ document }) => document?.file_hash === now);
    const reading: SourceReading =
      had === null && !gone ? { kind: 'missing' } : await readSource(options.access, source);
    const lines = had === null && !gone ? parts.get(id) : undefined;
    const found: Comparison =
      lines === undefined
        ? await compared({ had, gone, isKept }, reading, isKnown)
        : { state: 'read-in-part', why: lines, now: null };
    files.push({ id, source, display: timeline.paths.display(recorded), had, isKept, ...found });
  }
  return { session, point, seq: last?.seq ?? 0, turn: last?.turn ?? 0, files };
}

/**
 * Returns the agent's bytes of a planned file, checked by their hash. Undefined if they are not
 * stored.
 *
 * @throws {StoreError} `missing-part`, `corrupt-part`
 */
export async function restoredBytes(
  { point }: RestorePlan,
  { id, had, isKept }: PlannedFile,
): Promise<Uint8Array | undefined> {
  if (!isKept || had === null) return undefined;
  const found = await point.snapshot.get(id);
  const text = found === undefined ? undefined : await point.snapshot.wholeText(found);
  // The unmasked bytes of a masked text are only on the disk.
  if (text !== undefined && marksIn(text.text).length > 0) return undefined;
  const bytes = text?.whole === true ? Buffer.from(text.text, 'utf8') : undefined;
  return bytes !== undefined && hashBytes(bytes) === had ? bytes : undefined;
}

/** The states that prevent a restore in place, with the reason. */
const OBSTACLES: Readonly<Partial<Record<FileState, string>>> = {
  'newer-outside': 'has a change that the database does not have, which would be lost',
  'not-recorded': 'cannot be restored: it was changed after its last recorded text',
  'not-kept': 'cannot be restored: the database has only its hash',
  'outside-roots': 'is outside the allowed folders (--root)',
  unreachable: 'cannot be reached',
  'not-regular': 'is no longer a regular file',
};

/** Returns the reasons against a restore in place, a sentence per file. Empty for a clean plan. */
export function obstacles({ files }: RestorePlan): readonly string[] {
  return files.flatMap(({ display, state, why }) => {
    const obstacle = OBSTACLES[state];
    return obstacle === undefined ? [] : [`${display} ${obstacle}${why === undefined ? '' : ` (${why})`}`];
  });
}

/** Returns the number of files per state. States without files are absent. */
export function countStates({ files }: RestorePlan): Readonly<Partial<Record<FileState, number>>> {
  return defined(
    Object.fromEntries(
      FILE_STATES.map((state) => [state, files.filter((file) => file.state === state).length || undefined]),
    ),
  );
}
