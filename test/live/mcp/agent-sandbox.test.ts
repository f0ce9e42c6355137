import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Agent, stdioAgent, temporaryRoot } from '../../support/mcp-clients.js';

describe('the sandbox that an agent reports with its calls', () => {
  let root: string;
  let project: string;
  let remove: () => Promise<void>;
  let agent: Agent;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    project = join(root, 'project');
    await mkdir(join(root, 'other'), { recursive: true });
    await mkdir(project);
    await writeFile(join(project, 'a.txt'), 'one\n');
    agent = await stdioAgent(project, ['--root', root, '--allow-bash', '--session', `sandboxed-${process.pid}`]);
  });
  afterAll(async () => {
    await agent.close();
    await remove();
  });

  const within = (sandbox_mode: string, turn: object = {}) => ({
    meta: { 'x-codex-turn-metadata': { turn_id: 't', sandbox_mode, ...turn } },
  });
  const edit = { path: 'a.txt', edits: [{ oldText: 'one', newText: 'two' }] };

  test.each(['read-only', 'constructor', 'a-mode-of-tomorrow'])(
    '%s refuses write, edit and bash by the name of the sandbox, and reads',
    async (mode) => {
      for (const [tool, args] of [
        ['write', { path: 'new.txt', content: 'x' }],
        ['edit', edit],
        ['bash', { command: 'touch new.txt' }],
      ] as const)
        expect(await agent.call(tool, args, within(mode))).toMatchObject({
          isError: true,
          text: expect.stringMatching(
            new RegExp(`^Error: ${tool} is refused by the sandbox of Codex \\(${mode}\\), .*\\n.*ask the user`),
          ),
        });
      expect(await agent.call('read', { path: 'a.txt' }, within(mode))).toMatchObject({ isError: false });
      for (const verb of ['pin', 'unpin', 'activate', 'deactivate'])
        expect(await agent.call(verb, { ids: ['a.txt'] }, within(mode))).toMatchObject({ isError: false });
      expect(await readdir(project)).toEqual(['a.txt']);
      expect(await readFile(join(project, 'a.txt'), 'utf8')).toBe('one\n');
    },
  );

  test('workspace-write changes files of the workspace only, and runs no command', async () => {
    expect(await agent.call('edit', edit, within('workspace-write'))).toMatchObject({ isError: false });
    const outside = { path: join(root, 'other', 'new.txt'), content: 'x' };
    expect(await agent.call('write', outside, within('workspace-write'))).toMatchObject({
      isError: true,
      text: expect.stringContaining('lies outside the workspace of the sandbox of Codex (workspace-write)'),
    });
    expect(
      await agent.call('write', outside, within('workspace-write', { workspaces: { [join(root, 'other')]: {} } })),
    ).toMatchObject({
      isError: false,
    });
    expect(await agent.call('bash', { command: 'touch run.txt' }, within('workspace-write'))).toMatchObject({
      isError: true,
      text: expect.stringMatching(
        /^Error: bash runs outside the sandbox of Codex .*\nRun the command with the shell of Codex itself\./,
      ),
    });
    expect(await readdir(project)).toEqual(['a.txt']);
  });

  test('danger-full-access, and a call without a sandbox, change what the roots allow', async () => {
    expect(await agent.call('bash', { command: 'touch run.txt' }, within('danger-full-access'))).toMatchObject({
      isError: false,
    });
    expect(await agent.call('write', { path: join(root, 'other', 'more.txt'), content: 'x' })).toMatchObject({
      isError: false,
    });
    expect(await readdir(project)).toEqual(['a.txt', 'run.txt']);
  });
});
