import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { runCli } from '../../support/run-cli.js';
import { callReport, TrackedProject } from '../../support/tracked-project.js';

/** Every token in the files below a folder. */
async function tokensIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  const texts = entries
    .filter((entry) => entry.isFile())
    .map((entry) => readFile(join(entry.parentPath, entry.name), 'utf8').catch(() => ''));
  return (await Promise.all(texts)).flatMap((text) =>
    [...text.matchAll(/"token":\s*"([^"]+)"/g)].map(([, token = '']) => token),
  );
}

describe('output of the commands', () => {
  let project: TrackedProject;
  const dataDir = () => join(project.folder, 'data');
  const run = (...args: readonly string[]) => runCli([...args, '--data', dataDir()]);

  beforeEach(async () => {
    project = await TrackedProject.create();
  });
  afterEach(async () => {
    await run('node', 'stop');
    await project.close();
    await rm(project.folder, { recursive: true, force: true });
  });

  test('contains no token of the data folder', async () => {
    const started = await run('node', 'start', '--tcp', '--profile', 'memory', '--json');
    expect(JSON.parse(started.stdout)).toMatchObject({
      started: true,
      address: { kind: 'tcp', origin: expect.any(String) },
    });
    const { address } = JSON.parse(await readFile(join(dataDir(), 'node.json'), 'utf8'));
    const client = await project.open({ address });
    const session = await client.openSession();
    await session.recordCall(callReport());
    await client.snapshot();
    const tokens = await tokensIn(dataDir());
    expect(tokens.length).toBeGreaterThan(1);
    expect(tokens).toContain(address.token);

    const asked = [
      ['node', 'start', '--profile', 'memory'],
      ['node', 'status'],
      ['node', 'logs'],
      ['doctor'],
      ['sessions'],
      ['log', session.id],
      ['show', `${session.id}:1`],
      ['context', session.id, '--assemble'],
      ['verify', session.id],
    ];
    const said = [started];
    for (const command of asked) for (const json of [[], ['--json']]) said.push(await run(...command, ...json));
    expect(said.filter(({ code }) => code !== 0)).toEqual([]);
    for (const { stdout, stderr } of said) for (const token of tokens) expect(stdout + stderr).not.toContain(token);
    expect(said.some(({ stdout }) => stdout.includes(session.id))).toBe(true);
  });
});
