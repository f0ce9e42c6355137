import { createHash } from 'node:crypto';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { containerId, localFilesystemId, type MachineFacts } from '../../../../src/filesystem/access/filesystem-id.js';
import { type TempFolder, tempFolder } from '../temp-folder.js';

const MACHINE = '0123456789abcdef0123456789abcdef';
const CONTAINER = 'c'.repeat(64);
const sha = (text: string) => createHash('sha256').update(text).digest('hex');

let folder: TempFolder;
beforeEach(async () => {
  folder = await tempFolder();
});
afterEach(() => folder.remove());

const machine = (files: Readonly<Record<string, string>>): MachineFacts => ({
  readText: async (path) => files[path],
  exists: async (path) => path in files,
  hostname: () => 'box-1',
});

describe('the local filesystem id [§5.4, decision C10]', () => {
  test('is SHA-256 of the trimmed machine id, from either place', async () => {
    expect(await localFilesystemId(folder.inside, machine({ '/etc/machine-id': `  ${MACHINE}\n` }))).toBe(sha(MACHINE));
    expect(
      await localFilesystemId(folder.inside, machine({ '/etc/machine-id': '', '/var/lib/dbus/machine-id': MACHINE })),
    ).toBe(sha(MACHINE));
    expect(await readdir(folder.inside)).toEqual([]);
  });

  test('is random without a machine id, written once and kept, also under concurrent requests', async () => {
    for (const none of [{}, { '/etc/machine-id': 'uninitialized\n' }]) {
      const dataDir = join(folder.inside, String(Object.keys(none).length), 'data');
      const ids = await Promise.all(Array.from({ length: 6 }, () => localFilesystemId(dataDir, machine(none))));
      expect(new Set(ids).size).toBe(1);
      expect(ids[0]).toMatch(/^[0-9a-f]{64}$/);
      expect(await localFilesystemId(dataDir, machine(none))).toBe(ids[0]);
      expect(await readdir(dataDir)).toEqual(['filesystem-id']);
      expect((await stat(dataDir)).mode & 0o077).toBe(0);
    }
    const other = await localFilesystemId(join(folder.inside, 'other'), machine({}));
    expect(other).not.toBe(await localFilesystemId(join(folder.inside, '0', 'data'), machine({})));
  });

  test('names a damaged id file and does not replace it', async () => {
    await writeFile(join(folder.inside, 'filesystem-id'), 'garbage');
    await expect(localFilesystemId(folder.inside, machine({}))).rejects.toThrow(/filesystem-id/);
  });

  test('differs in a container, with and without a machine id', async () => {
    const host = { '/etc/machine-id': MACHINE };
    const inside = await localFilesystemId(
      folder.inside,
      machine({ ...host, '/proc/self/cgroup': `0::/docker/${CONTAINER}\n` }),
    );
    const other = await localFilesystemId(
      folder.inside,
      machine({ ...host, '/proc/self/cgroup': `0::/docker/${'d'.repeat(64)}\n` }),
    );
    expect(new Set([inside, other, sha(MACHINE)]).size).toBe(3);
    const bare = { '/proc/self/cgroup': `0::/docker/${CONTAINER}\n` };
    const first = await localFilesystemId(folder.inside, machine(bare));
    expect(await localFilesystemId(folder.inside, machine(bare))).toBe(first);
    expect(first).not.toBe(inside);
  });

  test('is stable on this machine', async () => {
    expect(await localFilesystemId(folder.inside)).toBe(await localFilesystemId(folder.inside));
  });
});

describe('the id of the container', () => {
  const mount = (root: string, point: string) => `800 700 8:1 ${root} ${point} rw,relatime - ext4 /dev/sda1 rw`;

  test.each<[string, Readonly<Record<string, string>>, string | undefined]>([
    [
      'docker, control groups 1',
      { '/proc/self/cgroup': `12:pids:/docker/${CONTAINER}\n1:name=systemd:/docker/${CONTAINER}` },
      CONTAINER,
    ],
    ['systemd scope', { '/proc/self/cgroup': `0::/system.slice/docker-${CONTAINER}.scope` }, CONTAINER],
    [
      'kubernetes',
      { '/proc/self/cgroup': `0::/kubepods/burstable/pod0b1c/cri-containerd-${CONTAINER}.scope` },
      CONTAINER,
    ],
    [
      'own control group namespace',
      {
        '/proc/self/cgroup': '0::/',
        '/proc/self/mountinfo': mount(`/var/lib/docker/containers/${CONTAINER}/hostname`, '/etc/hostname'),
      },
      CONTAINER,
    ],
    [
      'podman',
      {
        '/proc/self/mountinfo': mount(
          `/containers/storage/overlay-containers/${CONTAINER}/userdata/hosts`,
          '/etc/hosts',
        ),
      },
      CONTAINER,
    ],
    ['a mark and nothing else', { '/.dockerenv': '' }, 'box-1'],
    ['the other mark', { '/run/.containerenv': 'engine="podman"' }, 'box-1'],
    ['a host', { '/proc/self/cgroup': '0::/user.slice/user-1000.slice/session-1.scope' }, undefined],
    [
      'a host with containers of its own',
      { '/proc/self/mountinfo': mount('/', `/var/lib/docker/containers/${CONTAINER}/mounts/shm`) },
      undefined,
    ],
    ['no such files at all', {}, undefined],
  ])('is read from the files of the system: %s', async (_, files, expected) => {
    expect(await containerId(machine(files))).toBe(expected);
  });
});
