import { readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { clientFolder } from '../../../src/process/data-folder.js';
import { runCli } from '../../support/run-cli.js';
import { callReport, TrackedProject } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

describe('palimpsest doctor, beside a working process', () => {
  let project: TrackedProject;
  const dataDir = () => join(project.folder, 'data');
  const doctor = async (...flags: readonly string[]) =>
    (await runCli(['doctor', '--data', dataDir(), ...flags])).stdout;
  const reported = async () =>
    JSON.parse(await doctor('--json')).trackers as readonly { readonly attached: number; readonly orphaned: number }[];

  beforeEach(async () => {
    project = await TrackedProject.create();
  });
  afterEach(() => project.close());

  test('reports tracked and unreadable files until the process closes [§5.9]', async () => {
    for (const name of ['a.ts', 'b.ts', 'c.ts']) await writeFile(project.file(name), name);
    const client = await project.open({ what: 'a worker' });
    const session = await client.openSession();
    expect(await reported()).toEqual([]);
    await project.read(client, session, 'a.ts', 'b.ts', 'c.ts');
    await until(reported, ([report]) => report?.attached === 3);
    // The path still exists, but is no longer a file. The file's state is unknown, so its last
    // version stays (decision C5).
    await rm(project.file('b.ts'));
    await symlink(project.file('a.ts'), project.file('b.ts'));
    const [report] = await until(reported, ([one]) => one?.orphaned === 1);
    expect(report).toMatchObject({
      pid: process.pid,
      what: 'a worker',
      attached: 2,
      resuming: 0,
      unreadable: [{ path: project.file('b.ts'), reason: 'not-regular' }],
    });
    const text = await doctor();
    expect(text).toContain(`tracker   process ${process.pid} (a worker): 2 sources attached, 1 orphaned\n`);
    expect(text).toContain(
      `${JSON.stringify(project.file('b.ts'))} cannot be read: not-regular; its last version stays`,
    );
    expect(text).toContain(`session   ${session.id} is open in process ${process.pid} (a worker)`);
    await client.closeSession(session);
    await until(reported, ([one]) => one?.attached === 0);
    await client.close();
    expect(await reported()).toEqual([]);
    expect(await readdir(join(dataDir(), 'trackers'))).toEqual([]);
  });

  test('reports clients of a remote node too, and their pending writes', async () => {
    const folder = clientFolder(dataDir(), 'http://127.0.0.1:9');
    const client = await project.open({
      dataDir: folder,
      what: 'far away',
      address: { kind: 'url', origin: 'http://127.0.0.1:9' },
    });
    const session = await client.openSession();
    await session.recordCall(callReport({ content: 'kept' }));
    const text = await doctor();
    expect(text).toContain(`remote    ${folder}, for a node that another program runs\n`);
    const asked = await runCli(['doctor', '--data', dataDir()], { XTDB_URL: 'http://127.0.0.1:9' });
    expect(asked).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('REPAIR    remote-unreachable: a node that XTDB_URL names does not answer'),
    });
    expect(text).toMatch(
      /journal {3}no record waits for the database\nremote .*\njournal {3}\S+ of process \d+: 2 steps wait/,
    );
    expect(text).toContain(`session   ${session.id} is open in process ${process.pid} (far away)`);
    expect((await client.close()).unflushed).toBeGreaterThan(0);
  });
});
