import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { hasCommit } from '../cluster/other-build.js';
import { stdioAgent } from '../support/mcp-clients.js';
import { runCli } from '../support/run-cli.js';
import { BareHome } from './bare-home.js';
import { formerVersion } from './former-version.js';
import { OWN, tarball } from './packages.js';

/** The last version that writes data format 1, and one of format 2 from before the packages. */
const FORMER = [
  { commit: '810e914', format: 1 },
  { commit: '84646b1', format: 2 },
] as const;
const known = await Promise.all(FORMER.map(({ commit }) => hasCommit(commit)));

let user: BareHome;
beforeAll(async () => {
  user = await BareHome.make();
  await user.install(tarball(), tarball(OWN));
});
afterAll(() => user.remove());

const testEach = known.every(Boolean) ? test.each : test.skip.each;

testEach(FORMER)('opens a data folder of $commit, which writes format $format', async ({ commit, format }) => {
  const data = join(user.dir, commit);
  const file = join(user.home, `${commit}.ts`);
  await writeFile(file, `export const version = '${commit}';\n`);
  const former = await formerVersion(commit);
  const stop = (program?: string) => runCli(['node', 'stop', '--data', data], {}, program);
  try {
    const agent = await stdioAgent(user.home, ['--data', data], {}, { program: former.program });
    const answer = await agent.call('read', { path: file });
    expect(answer).toMatchObject({ isError: false, text: expect.stringContaining(commit) });
    await agent.close();
    expect((await runCli(['node', 'start', '--data', data], {}, former.program)).code).toBe(0);
    await stop(former.program);
  } finally {
    await former.remove();
  }
  expect(JSON.parse(await readFile(join(data, 'palimpsest.json'), 'utf8'))).toEqual({ format });
  try {
    expect((await user.palimpsest(['node', 'start', '--data', data])).stderr).toContain('Starting XTDB');
    const env = { PALIMPSEST_DATA: data };
    const { sessions } = JSON.parse((await user.palimpsest(['sessions', '--json'], env)).stdout);
    expect(sessions).toHaveLength(1);
    const context = await user.palimpsest(['context', sessions[0].id, '--assemble'], env);
    expect(context.stdout).toContain(`version = '${commit}'`);
    expect(JSON.parse(await readFile(join(data, 'palimpsest.json'), 'utf8'))).toEqual({ format: 2 });
  } finally {
    await user.palimpsest(['node', 'stop', '--data', data]);
  }
});
