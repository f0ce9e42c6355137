import { execFile } from 'node:child_process';
import { rename, unlink, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { SessionActors } from '../../../src/review/authors/session-actors.js';
import { callReport, TrackedProject, versionsOf } from '../../support/tracked-project.js';

const run = promisify(execFile);

describe('the author of a version that no call wrote', () => {
  let project: TrackedProject;
  const git = async (...args: readonly string[]): Promise<string> => {
    const as = ['-c', 'user.name=A Tester', '-c', 'user.email=a@tester.invalid', '-c', 'init.defaultBranch=main'];
    return (await run('git', [...as, ...args], { cwd: project.root })).stdout.trim();
  };
  const commit = async (content: string, message: string): Promise<string> => {
    await writeFile(project.file('cart.ts'), content);
    await git('add', '-A');
    await git('commit', '-q', '-m', message);
    return git('rev-parse', 'HEAD');
  };

  beforeEach(async () => {
    project = await TrackedProject.create();
  });
  afterEach(() => project.close());

  test('is git for files that a checkout brings or removes, an editor by its traces, otherwise unknown', async () => {
    await git('init', '-q');
    const first = await commit('one\n', 'first');
    await git('checkout', '-q', '-b', 'other');
    const second = await commit('two\n', 'second');
    await git('rm', '-q', 'cart.ts');
    await git('commit', '-q', '-m', 'third');
    const third = await git('rev-parse', 'HEAD');
    await git('checkout', '-q', 'main');
    const client = await project.open();
    const session = await client.openSession();
    const [id] = await project.read(client, session, 'cart.ts');
    const written = (count: number) => versionsOf(client, id, count);
    await git('checkout', '-q', second);
    await written(2);
    await writeFile(project.file('cart.ts'), 'by hand\n');
    await written(3);
    // A commit of a person's own change brings nothing, and neither does a branch of it.
    await git('commit', '-q', '-a', '-m', 'by hand');
    await git('checkout', '-q', '-b', 'mine');
    await writeFile(project.file('.cart.ts.swp'), 'b0VIM');
    await rename(project.file('cart.ts'), project.file('cart.ts~'));
    await writeFile(project.file('cart.ts'), 'in an editor\n');
    await unlink(project.file('cart.ts~'));
    await written(4);
    await unlink(project.file('.cart.ts.swp'));
    await git('reset', '-q', '--hard', first);
    await written(5);
    await git('merge', '-q', third);
    await written(6);
    await (await session.recordCall(callReport({ tool: 'bash', args: { command: 'true' } }))).applied;
    const timeline = await Timeline.open(await client.delivered());
    const versions = await (await SessionActors.of(timeline, session.id)).versions(id as NonNullable<typeof id>);
    expect(versions.map(({ by }) => [by.kind, by.commit, by.why])).toEqual([
      ['unknown', undefined, expect.stringMatching(/^It was there when /)],
      ['git', second, expect.stringMatching(/^git checkout moved HEAD/)],
      ['unknown', undefined, expect.stringMatching(/No trace of git or an editor/)],
      ['editor', undefined, expect.stringMatching(/^Vim saved it/)],
      ['git', first, expect.stringMatching(/^git reset moved HEAD/)],
      ['git', third, expect.stringMatching(/^git merge moved HEAD/)],
    ]);
    expect(versions[1]?.by).toMatchObject({ session: session.id, turn: 1, step: 1 });
  });
});
