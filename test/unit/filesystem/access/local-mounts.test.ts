import { describe, expect, test } from '@jest/globals';
import { isLocalTable } from '../../../../src/filesystem/access/without-thread.js';

const line = (kind: string, place = '/mnt'): string =>
  `36 35 98:0 / ${place} rw,noatime master:1 propagate_from:2 - ${kind} /dev/root rw,errors=continue\n`;
const usual = `${line('ext4', '/')}${line('proc', '/proc')}${line('tmpfs', '/dev/shm')}${line('ext4', '/data')}`;
const overlay = (options: string, place = '/merged'): string =>
  `41 35 0:60 / ${place} rw,relatime - overlay overlay rw,${options}\n`;

describe('a table of mounts', () => {
  test('is local if every mount belongs to this machine', () => {
    expect(isLocalTable(usual)).toBe(true);
    expect(isLocalTable('25 1 8:1 / / rw - xfs /dev/sda1 rw\n')).toBe(true);
  });

  test.each([
    'nfs',
    'nfs4',
    'cifs',
    'smb3',
    '9p',
    'virtiofs',
    'fuse',
    'fuse.sshfs',
    'fuseblk',
    'autofs',
    'ceph',
    'afs',
    'unheard-of',
  ])('is not local with one of %s, which may block', (kind) => {
    expect(isLocalTable(`${usual}${line(kind)}`)).toBe(false);
    expect(isLocalTable(`${line(kind)}${usual}`)).toBe(false);
  });

  test('is local with an overlay whose layers lie on its other mounts', () => {
    expect(
      isLocalTable(`${usual}${overlay('lowerdir=/data/l/A:/data/l/B,upperdir=/data/up,workdir=/data/work,xino=off')}`),
    ).toBe(true);
    expect(isLocalTable(`${usual}${overlay('lowerdir+=/data/A,lowerdir+=/data/B')}`)).toBe(true);
  });

  test.each([
    [
      'in a container, where they cannot be seen',
      overlay('lowerdir=/var/lib/l/A,upperdir=/var/lib/up,workdir=/var/lib/work', '/'),
    ],
    ['on another one', `${usual}${overlay('lowerdir=/data/A')}${overlay('lowerdir=/merged/below', '/top')}`],
    ['by relative paths', `${usual}${overlay('lowerdir=l/A:l/B,upperdir=/data/up')}`],
    ['by names with other signs', `${usual}${overlay('lowerdir=/data/a\\134:b')}`],
    ['not at all', `${usual}${overlay('index=off')}`],
    ['on a server', `${usual}${line('nfs', '/far')}${overlay('lowerdir=/far/A')}`],
  ])('is not local with an overlay whose layers are named %s', (_where, table) => {
    expect(isLocalTable(table)).toBe(false);
  });

  test('is local with the binary-format mounts of systemd', () => {
    expect(
      isLocalTable(
        `${usual}${line('autofs', '/proc/sys/fs/binfmt_misc')}${line('binfmt_misc', '/proc/sys/fs/binfmt_misc')}`,
      ),
    ).toBe(true);
  });

  test('is not local if it is empty or unreadable', () => {
    expect(isLocalTable('')).toBe(false);
    expect(isLocalTable(`${usual}36 35 98:0 / /mnt rw`)).toBe(false);
  });

  test('ignores a name that looks like a type', () => {
    expect(isLocalTable('36 35 0:50 / /mnt/a\\040-\\040ext4 rw - nfs server:/ rw\n')).toBe(false);
  });
});
