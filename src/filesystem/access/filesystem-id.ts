import { hash, randomBytes } from 'node:crypto';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { posix } from 'node:path';
import { type FilesystemId, filesystemId } from '../../objects/ids.js';
import { createWholeFile, textOf } from '../../process/owned-file.js';
import { named, SourceError, sourceErrorFrom } from './errors.js';

/** The inputs of a filesystem id; read from the machine by default. */
export interface MachineFacts {
  /** Returns the content of a small text file; `undefined` if it cannot be read. */
  readText(path: string): Promise<string | undefined>;
  exists(path: string): Promise<boolean>;
  hostname(): string;
}

const MACHINE_ID_FILES = ['/etc/machine-id', '/var/lib/dbus/machine-id'] as const;
const CONTAINER_MARKS = ['/.dockerenv', '/run/.containerenv'] as const;
const MACHINE_ID = /^[0-9a-f]{32}$/i;
const PERSISTED_ID = /^[0-9a-f]{64}$/;
/**
 * Matches a container's id in the last part of a control group: `/docker/ID`, `docker-ID.scope`,
 * `cri-containerd-ID.scope`.
 */
const CGROUP_ID = /[/-]([0-9a-f]{64})(?:\.scope)?$/;
const MOUNT_ID = /\/(?:containers|overlay-containers)\/([0-9a-f]{64})\//;
const ID_FILE = 'filesystem-id';

const thisMachine: MachineFacts = {
  readText: (path) => readFile(path, 'utf8').catch(() => undefined),
  exists: async (path) => (await stat(path).catch(() => undefined)) !== undefined,
  hostname,
};

/**
 * Returns the id of the filesystem that this process sees [§5.4, decision C10]: the SHA-256 of the
 * trimmed machine id. Without a machine id it is a random id, written once to `filesystem-id` in
 * the data folder. Inside a container, the container's id is hashed too, so that each container has
 * its own filesystem id.
 *
 * @example
 * ```ts
 * const filesystem = await localFilesystemId('.palimpsest');
 * ```
 */
export async function localFilesystemId(dataDir: string, facts: MachineFacts = thisMachine): Promise<FilesystemId> {
  const machine = await machineId(facts);
  const container = await containerId(facts);
  const seed = machine ?? (await persistedId(dataDir));
  if (container !== undefined) return filesystemId(hash('sha256', `${seed}\n${container}`));
  return filesystemId(machine === undefined ? seed : hash('sha256', machine));
}

/** Returns the trimmed machine id; `undefined` if it is missing or was never set. */
async function machineId(facts: MachineFacts): Promise<string | undefined> {
  for (const path of MACHINE_ID_FILES) {
    const text = (await facts.readText(path))?.trim();
    if (text !== undefined && MACHINE_ID.test(text)) return text;
  }
  return undefined;
}

/** Returns the id of the container that this process runs in; `undefined` outside one. */
export async function containerId(facts: MachineFacts = thisMachine): Promise<string | undefined> {
  for (const line of ((await facts.readText('/proc/self/cgroup')) ?? '').split('\n')) {
    const id = CGROUP_ID.exec(line)?.[1];
    if (id !== undefined) return id;
  }
  const mounted = mountedId((await facts.readText('/proc/self/mountinfo')) ?? '');
  if (mounted !== undefined) return mounted;
  for (const mark of CONTAINER_MARKS) if (await facts.exists(mark)) return facts.hostname();
  return undefined;
}

/**
 * Returns the container's id from a mount table. Container engines mount a container's own
 * hostname, hosts and resolv.conf from a folder that has its id as name. Other mounts may belong to
 * other containers.
 */
function mountedId(mountinfo: string): string | undefined {
  for (const line of mountinfo.split('\n')) {
    const [, , , root, mountPoint] = line.split(' ');
    if (root === undefined || !['/etc/hostname', '/etc/hosts', '/etc/resolv.conf'].includes(mountPoint ?? '')) continue;
    const id = MOUNT_ID.exec(root)?.[1];
    if (id !== undefined) return id;
  }
  return undefined;
}

/**
 * Returns the random id of the data folder. The first process creates it. Concurrent and later
 * processes read the same id.
 */
async function persistedId(dataDir: string): Promise<string> {
  const path = posix.join(dataDir, ID_FILE);
  const known = await readPersisted(path);
  if (known !== undefined) return known;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const made = randomBytes(32).toString('hex');
  await createWholeFile(path, `${made}\n`);
  return (await readPersisted(path)) ?? made;
}

async function readPersisted(path: string): Promise<string | undefined> {
  const text = await textOf(path).catch((error: unknown) => {
    throw sourceErrorFrom(error, path);
  });
  if (text === undefined || PERSISTED_ID.test(text.trim())) return text?.trim();
  throw new SourceError(
    'io',
    `the file ${named(path)} holds no filesystem id (64 hexadecimal digits); delete it to create a new one`,
    {
      path,
    },
  );
}
