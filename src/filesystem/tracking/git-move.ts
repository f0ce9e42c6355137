import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type FileAuthor, GIT_MOVES } from '../../objects/file-author.js';
import type { FilesystemSource } from '../../objects/source.js';
import { gitBlobs } from '../../process/git-blobs.js';
import type { FilesystemAccess } from '../access/access.js';
import { toNative } from '../access/native-path.js';
import type { SourceReading } from '../access/read-source.js';

/** Number of bytes that are read from the end of HEAD's log. */
const TAIL_BYTES = 16_384;
/** Maximum time in milliseconds from the write of a file to the later move of HEAD. */
const LATER_MS = 60_000;
/**
 * Maximum time in milliseconds from the logged time of a command to its write of a file. The log
 * counts in seconds, and some commands log the time of their start.
 */
const EARLIER_MS = 2_000;
/** Maximum time in milliseconds until the removal of a file by git is noticed. */
const NOTICED_MS = 10_000;
/** Maximum wait in milliseconds for a git command that still runs. */
const RUNNING_MS = 2_000;
const LOOK_MS = 50;
/** Time in milliseconds within which git writes HEAD's log after the index. */
const LOGGED_MS = 300;
/** Age in milliseconds from which a lock counts as left by a killed command. */
const OLD_LOCK_MS = 10_000;
/** Maximum number of HEAD's moves that are compared with a file. */
const MOST_MOVES = 16;

const ENTRY = /^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*> (\d{1,12}) [-+]\d{4}\t([a-z-]+)/;

/** A command that moved HEAD from one commit to another. */
interface Move {
  readonly from: string;
  readonly to: string;
  readonly atMs: number;
  readonly action: (typeof GIT_MOVES)[number];
}

/** The repository of a file, inside the roots. */
interface Repository {
  readonly gitDir: string;
  /** The file's path in a commit. */
  readonly path: string;
}

const isMove = (action: string): action is Move['action'] => (GIT_MOVES as readonly string[]).includes(action);

/** Returns the repository whose folder `.git` is beside the file or above it. */
async function repositoryOf({ roots }: FilesystemAccess, path: string): Promise<Repository | undefined> {
  for (let folder = posix.dirname(path); roots.holds(folder); folder = posix.dirname(folder)) {
    const named = posix.join(folder, '.git');
    const found = await roots.resolve(named).catch(() => undefined);
    if (found !== undefined) {
      const isFolder = (await stat(toNative(found.path)).catch(() => undefined))?.isDirectory() === true;
      return isFolder ? { gitDir: found.path, path: posix.relative(folder, path) } : undefined;
    }
    if (folder === '/') break;
  }
  return undefined;
}

async function tailOf({ roots }: FilesystemAccess, path: string): Promise<string> {
  const found = await roots.resolve(path).catch(() => undefined);
  if (found === undefined) return '';
  const file = await open(toNative(found.path), 'r').catch(() => undefined);
  try {
    const stats = await file?.stat();
    if (file === undefined || stats?.isFile() !== true) return '';
    const from = Math.max(0, stats.size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(stats.size - from), 0, stats.size - from, from);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file?.close();
  }
}

/** Returns the moves of HEAD within a time, oldest first. */
function movesIn(log: string, { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number }): readonly Move[] {
  const found = log.split('\n').flatMap((line): readonly Move[] => {
    const [, from = '', to = '', seconds, action = ''] = ENTRY.exec(line) ?? [];
    const atMs = Number(seconds) * 1_000;
    return isMove(action) && from !== to && atMs >= fromMs && atMs <= toMs ? [{ from, to, atMs, action }] : [];
  });
  return found.slice(-MOST_MOVES);
}

/** Returns git's hashes of a text: of the unchanged text, and of the text with LF line endings. */
function blobsOf(text: string, digits: number): ReadonlySet<string> {
  const forms = text.includes('\r\n') ? [text, text.replaceAll('\r\n', '\n')] : [text];
  return new Set(
    forms.map((form) => {
      const bytes = Buffer.from(form);
      const hash = createHash(digits === 64 ? 'sha256' : 'sha1');
      return hash.update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
    }),
  );
}

function textOf(reading: SourceReading): string | undefined {
  if (reading.kind === 'text') return reading.content;
  return reading.kind === 'large-text' && reading.chunks !== undefined ? [...reading.chunks()].join('') : undefined;
}

/** Returns whether a git command is writing files of a repository, or has just done so. */
async function isRunning(gitDir: string): Promise<boolean> {
  const [lock, index] = await Promise.all(
    ['index.lock', 'index'].map((name) => stat(toNative(posix.join(gitDir, name))).catch(() => undefined)),
  );
  const age = (mtimeMs = 0): number => Date.now() - mtimeMs;
  return (lock !== undefined && age(lock.mtimeMs) < OLD_LOCK_MS) || age(index?.mtimeMs) < LOGGED_MS;
}

/** Returns the last of some moves that gave a path this text, or removed the path. */
async function moveTo(
  { gitDir, path }: Repository,
  moves: readonly Move[],
  text: string | null,
): Promise<Move | undefined> {
  const names = moves.flatMap(({ from, to }) => [`${from}:${path}`, `${to}:${path}`]);
  const blobs = moves.length === 0 ? undefined : await gitBlobs(gitDir, names);
  if (blobs === undefined) return undefined;
  const wanted = text === null ? undefined : blobsOf(text, moves[0]?.to.length ?? 0);
  const is = (blob: string | null | undefined): boolean =>
    wanted === undefined ? blob === null : typeof blob === 'string' && wanted.has(blob);
  return moves.findLast((_move, i) => is(blobs[2 * i + 1]) && !is(blobs[2 * i]));
}

/**
 * Returns the git command that gave a file its content. HEAD's log must show a move of HEAD at that
 * time. The file must have its content in the commit after the move, and other content in the
 * commit before it. Waits for a command that still runs. Reads no repository outside of the roots.
 */
export async function gitAuthor(
  access: FilesystemAccess,
  { path, filesystemId }: FilesystemSource,
  reading: SourceReading,
): Promise<FileAuthor | undefined> {
  const text = reading.kind === 'missing' ? null : textOf(reading);
  if (text === undefined || !access.mounts.isReachable(path, filesystemId)) return undefined;
  const repository = path.includes('\n') ? undefined : await repositoryOf(access, path);
  if (repository === undefined) return undefined;
  const nowMs = Date.now();
  const window =
    'mtimeMs' in reading
      ? { fromMs: reading.mtimeMs - EARLIER_MS, toMs: reading.mtimeMs + LATER_MS }
      : { fromMs: nowMs - NOTICED_MS, toMs: nowMs + LATER_MS };
  for (let seen = -1; ; await pause(LOOK_MS)) {
    // Checks for a running command before reading the log. Otherwise an entry written after the
    // read and before the check would be missed.
    const isLast = Date.now() - nowMs >= RUNNING_MS || !(await isRunning(repository.gitDir));
    const moves = movesIn(await tailOf(access, posix.join(repository.gitDir, 'logs/HEAD')), window);
    const found = moves.length === seen ? undefined : await moveTo(repository, moves, text);
    if (found !== undefined) return { kind: 'git', action: found.action, commit: found.to };
    if (isLast) return undefined;
    seen = moves.length;
  }
}
