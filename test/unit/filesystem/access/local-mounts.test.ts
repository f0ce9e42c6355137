import { describe, expect, test } from '@jest/globals';
import { isLocalTable } from '../../../../src/filesystem/access/mounts.js';

const line = (kind: string, place = '/mnt'): string =>
  `36 35 98:0 / ${place} rw,noatime master:1 propagate_from:2 - ${kind} /dev/root rw,errors=continue\n`;
const usual = `${line('overlay', '/')}${line('proc', '/proc')}${line('tmpfs', '/dev/shm')}${line('ext4', '/data')}`;

describe('a table of mounts', () => {
  test('is local where every mount is of this machine', () => {
    expect(isLocalTable(usual)).toBe(true);
    expect(isLocalTable('25 1 8:1 / / rw - xfs /dev/sda1 rw\n')).toBe(true);
  });

  test.each(['nfs', 'nfs4', 'cifs', 'smb3', '9p', 'virtiofs', 'fuse', 'fuse.sshfs', 'fuseblk', 'autofs', 'ceph', 'afs', 'unheard-of'])(
    'is not with one of %s, which may wait for something else',
    (kind) => {
      expect(isLocalTable(`${usual}${line(kind)}`)).toBe(false);
      expect(isLocalTable(`${line(kind)}${usual}`)).toBe(false);
    },
  );

  test('is not where it says nothing, or nothing that can be understood', () => {
    expect(isLocalTable('')).toBe(false);
    expect(isLocalTable(`${usual}36 35 98:0 / /mnt rw`)).toBe(false);
  });

  test('a name in it that looks like a kind decides nothing', () => {
    expect(isLocalTable('36 35 0:50 / /mnt/a\\040-\\040ext4 rw - nfs server:/ rw\n')).toBe(false);
  });
});
