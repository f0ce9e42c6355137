import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isWithin, MountTable, parseMount } from '../../../../src/filesystem/access/mounts.js';
import { agentPath, canonicalPath, filesystemId } from '../../../../src/objects/ids.js';

const host = filesystemId('host');
const overlay = filesystemId('overlay');
const share = filesystemId('share');

describe('scenarios [§5.2]', () => {
  test('use one filesystem without translation if there is no sandbox', () => {
    const mounts = new MountTable({ defaultFilesystemId: host });
    expect(mounts.toCanonical(agentPath('/home/u/a.ts'))).toEqual({
      path: '/home/u/a.ts',
      filesystemId: host,
      viaMount: false,
    });
    expect(mounts.toDisplay(canonicalPath('/home/u/a.ts'), host)).toBe('/home/u/a.ts');
    expect(mounts.isReachable(canonicalPath('/home/u/a.ts'), host)).toBe(true);
    expect(mounts.isReachable(canonicalPath('/home/u/a.ts'), share)).toBe(false);
  });

  test('separate host and container overlay in a sandbox with a bind mount', () => {
    const mounts = new MountTable({
      mappings: [{ agentPrefix: '/workspace', canonicalPrefix: '/home/u/project' }],
      defaultFilesystemId: overlay,
      localFilesystemId: host,
    });
    expect(mounts.toCanonical(agentPath('/workspace/src/main.ts'))).toEqual({
      path: '/home/u/project/src/main.ts',
      filesystemId: host,
      viaMount: true,
    });
    expect(mounts.toCanonical(agentPath('/tmp/x'))).toEqual({ path: '/tmp/x', filesystemId: overlay, viaMount: false });
    expect(mounts.toDisplay(canonicalPath('/home/u/project/src/main.ts'), host)).toBe('/workspace/src/main.ts');
    expect(mounts.toDisplay(canonicalPath('/tmp/x'), overlay)).toBe('/tmp/x');
    expect(mounts.toDisplay(canonicalPath('/home/u/project/x'), overlay)).toBe('/home/u/project/x');
    expect(mounts.isReachable(canonicalPath('/tmp/x'), overlay)).toBe(false);
    expect(mounts.isReachable(canonicalPath('/home/u/project/x'), host)).toBe(true);
  });

  test('use one filesystem for each distinct mount and the default', () => {
    const mounts = new MountTable({
      mappings: [
        { agentPrefix: '/workspace', canonicalPrefix: '/home/u/project', filesystemId: 'host' },
        { agentPrefix: '/workspace/data', canonicalPrefix: '/mnt/share', filesystemId: 'share' },
        { agentPrefix: '/cache', canonicalPrefix: '/home/u/project/.cache', filesystemId: 'host' },
      ],
      defaultFilesystemId: overlay,
      localFilesystemId: host,
    });
    expect(mounts.toCanonical(agentPath('/workspace/data/a.csv'))).toEqual({
      path: '/mnt/share/a.csv',
      filesystemId: share,
      viaMount: true,
    });
    expect(mounts.toCanonical(agentPath('/workspace/a.csv')).path).toBe('/home/u/project/a.csv');
    expect(mounts.toDisplay(canonicalPath('/mnt/share/a.csv'), share)).toBe('/workspace/data/a.csv');
    expect(mounts.toDisplay(canonicalPath('/home/u/project/.cache/x'), host)).toBe('/cache/x');
    expect(mounts.isReachable(canonicalPath('/mnt/share/a.csv'), share)).toBe(true);
    expect(mounts.isReachable(canonicalPath('/mnt/other/a.csv'), share)).toBe(false);
    expect(mounts.filesystemOfCanonical(canonicalPath('/mnt/share/a'))).toBe(share);
    expect(mounts.filesystemOfCanonical(canonicalPath('/etc'))).toBeUndefined();
  });
});

describe('translation [§5.3, decision C9]', () => {
  const mounts = new MountTable({
    mappings: [{ agentPrefix: '/workspace', canonicalPrefix: '/home/u/p' }],
    defaultFilesystemId: host,
  });

  test('matches prefixes on whole components', () => {
    expect(mounts.toCanonical(agentPath('/workspace-other/a')).viaMount).toBe(false);
    expect(mounts.toCanonical(agentPath('/workspace')).path).toBe('/home/u/p');
    expect(mounts.toDisplay(canonicalPath('/home/u/project/a'), host)).toBe('/home/u/project/a');
    expect(mounts.toDisplay(canonicalPath('/home/u/p'), host)).toBe('/workspace');
  });

  test('lists the sources that a path may name: where the agent sees it, and on each filesystem', () => {
    const table = new MountTable({
      mappings: [{ agentPrefix: '/workspace', canonicalPrefix: '/home/u/p', filesystemId: 'share' }],
      defaultFilesystemId: overlay,
      localFilesystemId: host,
    });
    const found = (path: string) => table.sourcesAt(path).map((one) => `${one.filesystemId}:${one.path}`);
    expect(found('/workspace/a.ts')).toEqual([
      'share:/home/u/p/a.ts',
      `${overlay}:/workspace/a.ts`,
      `${host}:/workspace/a.ts`,
      'share:/workspace/a.ts',
    ]);
    expect(new Set(found('/tmp/x'))).toEqual(new Set([`${overlay}:/tmp/x`, `${host}:/tmp/x`, 'share:/tmp/x']));
    for (const path of ['', 'a.ts', './a.ts', '/nul\0', `/${'x'.repeat(5_000)}`, '/half\ud83d'])
      expect(found(path)).toEqual([]);
  });

  test('normalises paths before it matches them', () => {
    expect(mounts.toCanonical(agentPath('//workspace/./a//b/../c/')).path).toBe('/home/u/p/a/c');
    expect(mounts.toCanonical(agentPath('/workspace/../etc/passwd'))).toMatchObject({
      path: '/etc/passwd',
      viaMount: false,
    });
    expect(mounts.toCanonical(agentPath('/x/../workspace/a')).path).toBe('/home/u/p/a');
  });

  test('keeps case and Unicode forms', () => {
    expect(mounts.toCanonical(agentPath('/Workspace/a')).viaMount).toBe(false);
    expect(mounts.toCanonical(agentPath('/workspace/e\u0301')).path).toBe('/home/u/p/e\u0301');
  });

  test('handles a mount at the root of either side', () => {
    const all = new MountTable({
      mappings: [{ agentPrefix: '/', canonicalPrefix: '/srv/root' }],
      defaultFilesystemId: host,
    });
    expect(all.toCanonical(agentPath('/etc/x')).path).toBe('/srv/root/etc/x');
    expect(all.toDisplay(canonicalPath('/srv/root/etc/x'), host)).toBe('/etc/x');
    const whole = new MountTable({
      mappings: [{ agentPrefix: '/host', canonicalPrefix: '/' }],
      defaultFilesystemId: host,
    });
    expect(whole.toCanonical(agentPath('/host/etc')).path).toBe('/etc');
    expect(whole.toDisplay(canonicalPath('/etc'), host)).toBe('/host/etc');
  });

  test('never shows a name that a deeper mount covers', () => {
    const covered = new MountTable({
      mappings: [
        { agentPrefix: '/w', canonicalPrefix: '/home/p' },
        { agentPrefix: '/w/data', canonicalPrefix: '/data' },
      ],
      defaultFilesystemId: host,
    });
    expect(covered.toDisplay(canonicalPath('/home/p/data/x'), host)).toBe('/home/p/data/x');
    expect(covered.toDisplay(canonicalPath('/home/p/database'), host)).toBe('/w/database');
  });

  test('refuses a relative path and two mappings of one agent prefix', () => {
    expect(() => mounts.toCanonical(agentPath('a/b'))).toThrow(/not absolute/);
    const twice = [
      { agentPrefix: '/w', canonicalPrefix: '/a' },
      { agentPrefix: '/w/', canonicalPrefix: '/b' },
    ];
    expect(() => new MountTable({ mappings: twice, defaultFilesystemId: host })).toThrow(/two mounts/);
  });

  test('returns the original path for reverse, then forward', () => {
    const name = fc.constantFrom('a', 'b', 'data', 'p', 'w');
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => `/${names.join('/')}`);
    const mapping = fc.record({
      agentPrefix: path,
      canonicalPrefix: path,
      filesystemId: fc.constantFrom('host', 'share'),
    });
    const mappings = fc.uniqueArray(mapping, { maxLength: 5, selector: (one) => one.agentPrefix });
    fc.assert(
      fc.property(mappings, path, (table, file) => {
        const some = new MountTable({ mappings: table, defaultFilesystemId: overlay, localFilesystemId: host });
        const there = some.toCanonical(agentPath(file));
        const shown = some.toDisplay(there.path, there.filesystemId);
        if (shown !== there.path)
          expect(some.toCanonical(agentPath(shown))).toMatchObject({
            path: there.path,
            filesystemId: there.filesystemId,
          });
        if (there.viaMount) expect(some.isReachable(there.path, there.filesystemId)).toBe(true);
      }),
    );
  });

  test('uses whole components for any names', () => {
    expect([
      isWithin('/a/b', '/a'),
      isWithin('/a', '/a'),
      isWithin('/ab', '/a'),
      isWithin('/a', '/a/b'),
      isWithin('/x', '/'),
    ]).toEqual([true, true, false, false, true]);
  });
});

describe('the form AGENT=CANONICAL[,FSID]', () => {
  test('is read with and without a filesystem id', () => {
    expect(parseMount('/workspace=/home/u/p')).toEqual({ agentPrefix: '/workspace', canonicalPrefix: '/home/u/p' });
    expect(parseMount('/w=/mnt/a,share-1')).toEqual({
      agentPrefix: '/w',
      canonicalPrefix: '/mnt/a',
      filesystemId: 'share-1',
    });
    expect(parseMount('/w=/mnt/a=b,c/d')).toEqual({ agentPrefix: '/w', canonicalPrefix: '/mnt/a=b,c/d' });
    expect(parseMount('/w=/mnt/a,b,id')).toEqual({
      agentPrefix: '/w',
      canonicalPrefix: '/mnt/a,b',
      filesystemId: 'id',
    });
  });

  test.each(['', '/w', '=/a', '/w=', '/w=/a,', 'w=/a', '/w=a'])('refuses %j', (text) => {
    expect(() => parseMount(text)).toThrow(expect.objectContaining({ code: 'invalid-path' }));
  });
});
