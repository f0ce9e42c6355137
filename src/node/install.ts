import { randomUUID } from 'node:crypto';
import { access, mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { draftOf, removeDeadDrafts } from '../process/drafts.js';
import { rename } from '../process/held-files.js';
import { withNamedLock } from '../process/lock.js';
import { replaceFile } from '../process/owned-file.js';
import { systemCode } from '../process/system-error.js';
import { messageOf } from '../values/thrown.js';
import { compileFront, copyDependencies, makeArchive } from './build-front.js';
import { NodeError } from './errors.js';
import {
  changedFiles,
  type FrontFiles,
  installationKey,
  PINNED,
  pinnedJars,
  readFrontFiles,
  SHARED,
  sha256Of,
} from './front-files.js';
import type { Java } from './java.js';
import { TIME_LIMITS } from './time-limits.js';

/**
 * Returns the names in a cache folder that may be removed: drafts of dead builds and installations
 * that were unused for long. Never returns the current installation or an unknown name.
 */
export function expiredEntries(
  entries: readonly { readonly name: string; readonly usedMs: number }[],
  currentKey: string,
  nowMs: number,
): readonly string[] {
  return entries
    .filter(({ name, usedMs }) => {
      if (/^\.draft-[0-9a-f-]{36}$/.test(name)) return nowMs - usedMs > TIME_LIMITS.draftMs;
      const key = /^node-([0-9a-f]{16})$/.exec(name)?.[1];
      return key !== undefined && key !== currentKey && nowMs - usedMs > TIME_LIMITS.unusedInstallationMs;
    })
    .map((entry) => entry.name);
}

/** Removes unused installations from the cache folder. A failed removal is tried again later. */
export async function removeOldInstallations(cacheDir: string, currentKey: string): Promise<void> {
  const names = await readdir(cacheDir).catch(() => []);
  const entries = await Promise.all(
    names.map(async (name) => ({
      name,
      usedMs: (await stat(join(cacheDir, name)).catch(() => undefined))?.mtimeMs ?? Date.now(),
    })),
  );
  for (const name of expiredEntries(entries, currentKey, Date.now())) {
    await rm(join(cacheDir, name), { recursive: true, force: true }).catch(() => undefined);
  }
}

/**
 * An installation that is ready to start. The first start creates it, and later starts reuse it.
 */
export interface Installation {
  readonly key: string;
  /** Its folder in the cache. */
  readonly dir: string;
  /** The class path in order; the compiled front comes first. */
  readonly jars: readonly string[];
  /** The class-data archive; null if the JVM cannot create one. */
  readonly archive: string | null;
}

/** Options of a build. */
export interface InstallOptions {
  readonly java: Java;
  readonly frontDir: string;
  /** Whether the node can share a log with others, which takes more libraries; default false. */
  readonly isShared?: boolean;
  /** Configuration of an in-memory node, for the run that creates the archive. */
  readonly memoryConfig: string;
  readonly cacheDir: string;
  readonly signal?: AbortSignal | undefined;
  onProgress?(message: string): void;
}

const FRONT_JAR = 'front.jar';
const ARCHIVE = 'front.jsa';
const MANIFEST = 'installation.json';
const manifestSchema = z.object({
  jars: z.array(z.string()).min(2),
  /** Whether the archive exists. Absent until a build has tried to make it. */
  archive: z.boolean().optional(),
  made: z.record(z.string(), z.string()),
});
type Manifest = z.infer<typeof manifestSchema>;

/** Rejects libraries that do not match the pinned hashes, before they are compiled and run. */
async function requirePinned(lib: string, files: FrontFiles): Promise<void> {
  const pinned = pinnedJars(files);
  const unknown = (await readdir(lib)).filter((name) => name.endsWith('.jar') && !pinned.has(name));
  const wrong = [...(await changedFiles(lib, pinned)), ...unknown];
  if (wrong.length === 0) return;
  throw new NodeError(
    'build-failed',
    'Maven fetched other libraries than this version was built with ' +
      `(${wrong.slice(0, 5).join(', ')}): their SHA-256 differs from ${PINNED}. ` +
      `Remove them from Maven's local repository (~/.m2/repository) and check from where its settings ` +
      'download libraries, then try again.',
  );
}

/** The folder of an installation and its key. */
interface Place {
  readonly dir: string;
  readonly key: string;
}

const installationOf = ({ dir, key }: Place, { jars, archive }: Manifest): Installation => ({
  key,
  dir,
  jars: jars.map((jar) => join(dir, jar)),
  archive: archive ? join(dir, ARCHIVE) : null,
});

const writeManifest = (dir: string, manifest: Manifest): Promise<void> =>
  replaceFile(join(dir, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);

/**
 * Reads the manifest of an installation. Returns undefined if the manifest is unreadable, or if a
 * file is missing or has changed since the build.
 */
async function readManifest(place: Place, files: FrontFiles): Promise<Manifest | undefined> {
  const { dir } = place;
  try {
    const manifest = manifestSchema.parse(JSON.parse(await readFile(join(dir, MANIFEST), 'utf8')));
    const installation = installationOf(place, manifest);
    // A cache cleaner may have removed some files.
    await Promise.all(
      [...installation.jars, ...(installation.archive === null ? [] : [installation.archive])].map((file) =>
        access(file),
      ),
    );
    const libraries = [...pinnedJars(files)].map(([name, hash]) => [join('lib', name), hash] as const);
    if ((await changedFiles(dir, new Map([...libraries, ...Object.entries(manifest.made)]))).length > 0)
      return undefined;
    // Marks the installation as used, for the clean-up of old ones.
    await utimes(dir, new Date(), new Date()).catch(() => undefined);
    return manifest;
  } catch {
    return undefined;
  }
}

/** Fetches libraries and compiles the front in a draft folder. Renames the folder at the end. */
export async function buildJars(dir: string, files: FrontFiles, options: InstallOptions): Promise<Manifest> {
  const draft = join(options.cacheDir, `.draft-${randomUUID()}`);
  try {
    await mkdir(join(draft, 'lib'), { recursive: true, mode: 0o700 });
    options.onProgress?.('Fetching XTDB and its libraries with Maven (first start only) …');
    // Builds from the same bytes as the key, even if the files have changed since.
    const frontDir = join(draft, 'front');
    for (const [name, bytes] of files) {
      await mkdir(dirname(join(frontDir, name)), { recursive: true });
      await writeFile(join(frontDir, name), bytes);
    }
    const rooms = files.has(`${SHARED}/pom.xml`) ? [frontDir, join(frontDir, SHARED)] : [frontDir];
    const pom = files.has(`${SHARED}/pom.xml`) ? `${SHARED}/pom.xml` : 'pom.xml';
    await copyDependencies(
      { pom: join(frontDir, pom), kept: join(options.frontDir, pom) },
      join(draft, 'lib'),
      options.signal,
    );
    await requirePinned(join(draft, 'lib'), files);
    const names = (await readdir(join(draft, 'lib'))).filter((name) => name.endsWith('.jar')).sort();
    options.onProgress?.(`Compiling the node (${names.length} libraries; first start only) …`);
    await compileFront(
      {
        java: options.java,
        rooms,
        jars: names.map((name) => join(draft, 'lib', name)),
        classesDir: join(draft, 'classes'),
        jar: join(draft, FRONT_JAR),
      },
      options.signal,
    );
    await rm(frontDir, { recursive: true, force: true });
    const manifest = {
      jars: [FRONT_JAR, ...names.map((name) => join('lib', name))],
      made: { [FRONT_JAR]: await sha256Of(join(draft, FRONT_JAR)) },
    };
    await writeManifest(draft, manifest);
    await rm(dir, { recursive: true, force: true });
    await rename(draft, dir);
    return manifest;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/**
 * Makes the class-data archive in the final folder of the compiled jars. The archive makes starts
 * faster. If the trial run fails or takes too long, the node runs without an archive.
 */
async function addArchive({ dir }: Place, { jars, made }: Manifest, options: InstallOptions): Promise<Manifest> {
  options.onProgress?.('Making the class-data archive (first start only) …');
  await removeDeadDrafts(tmpdir(), { isOurs: (name) => name.startsWith('palimpsest.'), recursive: true });
  const archive = await makeArchive(
    {
      java: options.java,
      jars: jars.map((jar) => join(dir, jar)),
      configFile: options.memoryConfig,
      // The path must be short, because a socket's path is limited.
      workDir: await draftOf(join(tmpdir(), 'palimpsest')),
      archive: join(dir, ARCHIVE),
      limitMs: TIME_LIMITS.archiveMs,
    },
    options.signal,
  ).catch((error: unknown) => {
    if (!(error instanceof NodeError) || error.code !== 'build-failed') throw error;
    options.onProgress?.(`There is no class-data archive, so the node starts more slowly: ${error.message}`);
    return false;
  });
  const manifest = {
    jars,
    archive,
    made: { ...made, ...(archive ? { [ARCHIVE]: await sha256Of(join(dir, ARCHIVE)) } : {}) },
  };
  await writeManifest(dir, manifest);
  return manifest;
}

function cacheProblem(cacheDir: string, error: unknown): NodeError {
  const reason = messageOf(error);
  if (systemCode(error) === 'ENOSPC' || systemCode(error) === 'EDQUOT') {
    return new NodeError(
      'no-space',
      `There is no space left for building the node in ${cacheDir} (${reason}). Free about 200 MB, then try again.`,
      {
        cause: error,
      },
    );
  }
  return new NodeError(
    'build-failed',
    `The node cannot be built in ${cacheDir} (${reason}). Get access to it, or set XDG_CACHE_HOME.`,
    {
      cause: error,
    },
  );
}

async function placeOf(options: InstallOptions): Promise<{ readonly files: FrontFiles; readonly place: Place }> {
  const files = await readFrontFiles(options.frontDir, options);
  const key = installationKey({ java: options.java.fingerprint, files });
  return { files, place: { key, dir: join(options.cacheDir, `node-${key}`) } };
}

async function presentAt(
  place: Place,
  files: FrontFiles,
  { cacheDir }: InstallOptions,
): Promise<Installation | undefined> {
  const manifest = await readManifest(place, files);
  if (manifest?.archive === undefined) return undefined;
  await removeOldInstallations(cacheDir, place.key);
  return installationOf(place, manifest);
}

/** Returns the installation for these sources and this Java if it is built already. */
export async function findInstallation(options: InstallOptions): Promise<Installation | undefined> {
  const { files, place } = await placeOf(options);
  return presentAt(place, files, options);
}

/**
 * Returns the installation for these sources and this Java. The first use builds it in about a
 * minute. It is built again if the sources or the Java change. If several processes need it, one
 * builds it and the others wait.
 * @throws {NodeError} `no-maven`, `no-network`, `no-space`, `build-failed`, `aborted`
 */
export async function ensureInstallation(options: InstallOptions): Promise<Installation> {
  try {
    const { files, place } = await placeOf(options);
    const { key } = place;
    const present = await presentAt(place, files, options);
    if (present !== undefined) return present;
    await mkdir(options.cacheDir, { recursive: true, mode: 0o700 });
    const waiting = (pid: number): void =>
      options.onProgress?.(`Process ${pid} is building the node; waiting for it …`);
    const lock = { limitMs: TIME_LIMITS.lockMs, signal: options.signal, onWait: waiting };
    return await withNamedLock(join(options.cacheDir, `node-${key}.lock`), lock, async () => {
      const built = (await readManifest(place, files)) ?? (await buildJars(place.dir, files, options));
      const manifest = built.archive === undefined ? await addArchive(place, built, options) : built;
      await removeOldInstallations(options.cacheDir, key);
      return installationOf(place, manifest);
    });
  } catch (error) {
    throw error instanceof NodeError || systemCode(error) === undefined ? error : cacheProblem(options.cacheDir, error);
  }
}
