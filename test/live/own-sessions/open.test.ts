import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { stopNode } from '../../../src/node/stop-node.js';
import { type AgentMachine, agentMachine, claudeSession, placeFiveAgents } from '../../support/agent-machine.js';
import { askHere } from '../../support/ask-here.js';
import { startCli } from '../../support/run-cli.js';

let machine: AgentMachine;
let env: Readonly<Record<string, string | undefined>>;
beforeAll(async () => {
  machine = await agentMachine();
  await placeFiveAgents(machine);
  env = { ...machine.env, PALIMPSEST_DATA: join(machine.home, 'data'), PALIMPSEST_PROFILE: 'memory' };
});
afterAll(async () => {
  await stopNode(join(machine.home, 'data'));
  await machine.remove();
});

const run = (...args: readonly string[]) => askHere(args, env);
const built = (...args: readonly string[]) => startCli(args, env).result;

/** Enters the review page as its one visitor. Returns the titles of the sessions that it lists. */
async function titlesOn(address: string): Promise<readonly (string | undefined)[]> {
  const { origin, hash } = new URL(address);
  const entered = await fetch(`${origin}/review/enter`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: new URLSearchParams(hash.slice(1)).get('token') }),
  });
  const { secret } = (await entered.json()) as { readonly secret: string };
  const listed = await fetch(`${origin}/v1/sessions`, { headers: { authorization: `Bearer ${secret}` } });
  const { sessions } = (await listed.json()) as { readonly sessions: readonly { readonly title?: string }[] };
  return sessions.map(({ title }) => title);
}
const opened = async (name: string) => JSON.parse((await run('open', name, '--json')).stdout);

describe('palimpsest open', () => {
  test('imports a session of each of five agents under the agent’s own id', async () => {
    const outcomes = [];
    for (const nth of ['LAST', '2', '3', '4', '5']) {
      const { session, id, outcome, agent, source } = await opened(nth);
      expect(session).toBe(id);
      expect(source).toBe('transcript');
      outcomes.push([agent, outcome]);
    }
    expect(outcomes).toEqual([
      ['Codex', 'imported'],
      ['Claude Code', 'imported'],
      ['Cline', 'imported'],
      ['Gemini CLI', 'imported'],
      ['pi', 'imported'],
    ]);
    const { sessions } = JSON.parse((await run('sessions', '--json')).stdout);
    expect(sessions.map(({ id }: { id: string }) => id)).toEqual(
      expect.arrayContaining(['019c0000-0000-7000-8000-00000000c001', '1768000000000_abcde']),
    );
  });

  test('lists them in the folders that their transcripts name, if any', async () => {
    for (const nth of ['LAST', '2', '3', '4', '5']) await opened(nth);
    const { sessions } = JSON.parse((await run('sessions', '--json')).stdout);
    const folders = sessions.map(({ agent, folder }: { agent: string; folder: string | null }) => [agent, folder]);
    expect(folders.filter(([agent]: readonly string[]) => agent !== 'Cline').length).toBeGreaterThan(4);
    for (const [agent, folder] of folders) expect(folder).toBe(agent === 'Cline' ? null : '/home/mira/shelf');
  });

  test('takes a path and the beginning of an id, and imports nothing twice', async () => {
    const path = await machine.write('a/recording.jsonl', claudeSession().text);
    expect(await opened(path)).toMatchObject({ session: 's-1', outcome: 'imported', title: 'Sort the shelf by title' });
    expect(await opened(path)).toMatchObject({ session: 's-1', outcome: 'unchanged' });
    expect(await opened('5f0c1a52')).toMatchObject({ agent: 'Claude Code', title: 'ISBN check digit' });
  });

  test('refuses to undo a step of it, since its agent builds the requests', async () => {
    const { session } = await opened('5f0c1a52');
    for (const flags of [['--plan'], []]) {
      const { code, stderr } = await built('undo', session, '1', ...flags);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/belongs to another agent.*Fork it/s)]);
    }
  });

  test('says that it shows the transcript, and prints the address of the page', async () => {
    const { child, result } = startCli(['open', '5f0c1a52', '--no-browser'], env);
    let stdout = '';
    const address = await new Promise<string>((resolve) => {
      child.stdout?.on('data', (chunk: string) => {
        stdout += chunk;
        const found = /The review page is at (\S+)/.exec(stdout)?.[1];
        if (found !== undefined) resolve(found);
      });
    });
    expect(new URL(address).searchParams.get('session')).toBe('5f0c1a52-7a3e-4b1d-9c55-0d2f7be6a101');
    expect(await titlesOn(address)).toContain('ISBN check digit');
    child.kill('SIGINT');
    const { stdout: said, stderr } = await result;
    expect(said).toMatch(/^ISBN check digit\n {2}Claude Code, \/home\/mira\/shelf, .*, 11 answers, /);
    expect(said).toContain('imported before from the transcript');
    expect(`${said}${stderr}`).not.toContain('byte for byte');
    const { stdout: context } = await run('context', '5f0c1a52');
    expect(context).toContain('from the transcript');
  });

  test.each([
    ['99', /There is no session 99: the list has 5/],
    ['nothing-like-this', /is neither a file nor a session of an agent: write LAST/],
  ])('suggests what to type instead of %s', async (name, told) => {
    const { code, stderr } = await run('open', name, '--no-page');
    expect([code, stderr]).toEqual([64, expect.stringMatching(told)]);
  });
});

describe('palimpsest review', () => {
  test('serves no page for a session that does not exist, and names similar ones', async () => {
    const { code, stdout, stderr } = await built('review', '5f0c1a25', '--no-open');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/there is no session "5f0c1a25": .*palimpsest sessions lists all/);
  });
});

describe('palimpsest search', () => {
  test('finds a text of an imported session with the index that it writes', async () => {
    await opened('5f0c1a52');
    const { code, stdout, stderr } = await built('search', 'isbn.test.ts');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('5f0c1a52-7a3e-4b1d-9c55-0d2f7be6a101');
    expect(stdout).toMatch(/texts that the index proposed \(/);
  });
});

describe('palimpsest costs', () => {
  test('sums up the sessions of five agents as JSON', async () => {
    const { total, rows, by } = JSON.parse((await built('costs', '--by', 'agent', '--json')).stdout);
    expect(by).toBe('agent');
    expect(rows.map(({ key }: { key: string }) => key).sort()).toEqual([
      'Claude Code',
      'Cline',
      'Codex',
      'Gemini CLI',
      'pi',
    ]);
    expect(total.calls).toBe(48);
    expect(total.dollars).toBeGreaterThan(0);
  });

  test('refuses a first day that is not a date', async () => {
    const { code, stderr } = await run('costs', '--since', 'soon');
    expect([code, stderr]).toEqual([64, expect.stringContaining('2026-11-01')]);
  });
});
