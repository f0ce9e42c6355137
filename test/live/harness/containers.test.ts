import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { fileObjectId } from '../../../src/client/file-access.js';
import { localFilesystemId } from '../../../src/filesystem/access/filesystem-id.js';
import { canonicalPath, filesystemId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { httpAgent, suiteData } from '../../support/mcp-clients.js';
import { servedFolders } from '../../support/served-folders.js';

const container = `box-${randomUUID()}`;
const share = `share-${randomUUID()}`;
const served = servedFolders({
  folders: [{ 'a.txt': 'alpha\n' }, { 'b.txt': 'beta\n' }],
  args: ([project = '', shared = '']) => {
    const mounts = ['--mount', `/workspace=${project}`, '--mount', `/share=${shared},${share}`];
    return ['--long-ids', '--agent-filesystem', container, '--root', shared, ...mounts];
  },
});
const { api, serve } = served;

const idOf = (id: string, path: string): string =>
  fileObjectId(filesystemSource(filesystemId(id), canonicalPath(path)));

describe('an agent in a container, served from outside (SSOT §5.2)', () => {
  test('has its own file, a mounted one and one with its own mount id as objects of three filesystems', async () => {
    const session = `box-${randomUUID()}`;
    await api.call('openSession', undefined, { id: session });
    const read = (path: string, content: string, files: readonly object[] = []) => ({
      name: 'read',
      args: { path },
      content,
      files,
    });
    const own = { path: '/opt/tool.json', content: '{"a":1}', complete: true };
    const calls = [
      read('/opt/tool.json', '{"a":1}', [own]),
      read('/workspace/a.txt', 'alpha\n'),
      read('/share/b.txt', 'beta\n'),
    ];
    const reported = await api.call('reportToolCalls', session, { calls });
    expect(reported.calls).toMatchObject(calls.map(() => ({ outcome: 'recorded', files: 1, notes: [] })));

    const here = await localFilesystemId(suiteData());
    const [project = '', shared = ''] = served.roots;
    const { text } = await api.call('beginTurn', session, {});
    expect((text ?? '').split('\n').filter((line) => line.includes(' type=file '))).toEqual([
      `id=${idOf(container, '/opt/tool.json')} type=file path=/opt/tool.json file_type=json char_count=7`,
      `id=${idOf(here, join(project, 'a.txt'))} type=file path=/workspace/a.txt file_type=txt char_count=6`,
      `id=${idOf(share, join(shared, 'b.txt'))} type=file path=/share/b.txt file_type=txt char_count=5`,
    ]);
    const verified = await api.send(`/v1/verify?session=${session}`, { method: 'GET' });
    expect(verified).toMatchObject({ status: 200, body: { ok: true } });

    // Over MCP the same session has the same objects under the same names.
    const agent = await httpAgent(serve);
    expect((await agent.call('read', { path: '/workspace/a.txt', session })).text).toContain(
      idOf(here, join(project, 'a.txt')),
    );
    expect((await agent.call('deactivate', { ids: ['/opt/tool.json'], session })).isError).toBe(false);
    expect((await agent.call('activate', { ids: ['/opt/tool.json'], session })).text).toContain('{"a":1}');
    const away = await agent.call('read', { path: '/opt/other.json', session });
    expect(away).toMatchObject({
      isError: true,
      text: expect.stringContaining('on a filesystem that cannot be reached from here'),
    });
    await agent.close();
  });
});
