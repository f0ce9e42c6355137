import { execFile } from 'node:child_process';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { placeFiveAgents } from '../support/agent-machine.js';
import { BareHome } from './bare-home.js';
import { OWN, tarball } from './packages.js';
import { Times } from './times.js';

const recordings = join(import.meta.dirname, '..', 'recordings');
const times = new Times();
let user: BareHome;

beforeAll(async () => {
  user = await BareHome.make();
  await times.of('npm install -g', () => user.install(tarball(), tarball(OWN)));
  const placed = async (path: string): Promise<string> => {
    const to = join(user.home, path);
    await mkdir(dirname(to), { recursive: true });
    return to;
  };
  await placeFiveAgents({
    home: user.home,
    env: {},
    write: async (path, text) => {
      const to = await placed(path);
      await writeFile(to, text);
      return to;
    },
    place: async (path, ...names) => {
      const to = await placed(path);
      await copyFile(join(recordings, ...names), to);
      return to;
    },
    remove: () => user.remove(),
  });
});
afterAll(async () => {
  await times.print(user);
  await user.palimpsest(['node', 'stop']).catch(() => undefined);
  await user.remove();
});

const AGENTS = ['Claude Code', 'Codex', 'pi', 'Gemini CLI', 'Cline'];
const script = await promisify(execFile)('sh', ['-c', 'command -v script']).then(
  ({ stdout }) => stdout.trim(),
  () => undefined,
);
const onTerminal = script === undefined || process.platform !== 'linux' ? test.skip : test;

describe('the first command of a user with sessions of five agents', () => {
  onTerminal.each([80, 120])(
    'shows the agents, their last sessions and what to do next in %d columns',
    async (width) => {
      const command = `stty cols ${width} rows 50; palimpsest`;
      const run = () => user.run(script ?? '', ['--quiet', '--return', '--command', command, '/dev/null']);
      const { code, stdout } = await times.of(`the first screen of five agents in ${width} columns`, run);
      const screen = stripVTControlCharacters(stdout).replaceAll('\r', '');
      expect({ code, screen: code === 0 ? '' : screen }).toEqual({ code: 0, screen: '' });
      expect(screen.split('\n').filter((line) => line.length > width)).toEqual([]);
      for (const agent of AGENTS) expect(screen).toMatch(new RegExp(`^${agent} +\\d`, 'm'));
      expect(screen).toMatch(/^ *\d {2}ISBN check digit .* 2 Feb .* \$\d/m);
      expect(screen).toContain('palimpsest open LAST');
    },
  );

  test('is answered with the help if there is no terminal', async () => {
    const { code, stdout, stderr } = await user.palimpsest([]);
    expect(code).toBe(64);
    expect(stdout + stderr).toContain('Usage: palimpsest');
  });
});

describe('the sessions of five agents', () => {
  test('open one after the other under the agents’ own ids, each from its transcript', async () => {
    const opened = [];
    for (const nth of ['LAST', '2', '3', '4', '5']) {
      const { code, stdout, stderr } = await user.palimpsest(['open', nth, '--json']);
      expect({ nth, code, stderr: code === 0 ? '' : stderr }).toEqual({ nth, code: 0, stderr: '' });
      const { agent, outcome, source, session, id, ms } = JSON.parse(stdout);
      times.add(`open ${nth} (${agent})`, ms);
      expect({ session, source, outcome }).toEqual({ session: id, source: 'transcript', outcome: 'imported' });
      opened.push(agent);
    }
    expect(opened.sort()).toEqual([...AGENTS].sort());
    const { sessions } = JSON.parse((await user.palimpsest(['sessions', '--json'])).stdout);
    expect(sessions.length).toBeGreaterThanOrEqual(AGENTS.length);
  });

  test('have a context at each turn, and a review page', async () => {
    const { stdout } = await user.palimpsest(['context', '5f0c1a52']);
    expect(stdout).toContain('from the transcript');
    const child = user.start(join(user.prefix, 'bin', 'palimpsest'), ['open', '5f0c1a52', '--no-browser']);
    const address = await new Promise<string>((resolve, reject) => {
      let said = '';
      child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
        said += piece;
        const found = /The review page is at (\S+)/.exec(said)?.[1];
        if (found !== undefined) resolve(found);
      });
      child.once('exit', () => reject(new Error(`palimpsest open has ended: ${said}`)));
    });
    const page = await fetch(address);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')]);
    child.removeAllListeners('exit');
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    await ended;
  });

  test('are summed up by agent', async () => {
    const costs = () => user.palimpsest(['costs', '--by', 'agent', '--json']);
    const { rows } = JSON.parse((await times.of('the first costs', costs)).stdout);
    expect(rows.map(({ key }: { readonly key: string }) => key).sort()).toEqual([...AGENTS].sort());
  });

  test('stay as they are: nothing is written where the agents keep them', async () => {
    for (const [path, fixture] of [
      ['.claude/projects/-home-mira-shelf', ['claude-code', 'coding.jsonl']],
      ['.codex/sessions/2026/02/25', ['codex', 'coding.jsonl']],
      ['.pi/agent/sessions/--home-mira-shelf--', ['pi', 'coding.jsonl']],
      ['.cline/data/sessions/one', ['cline', 'session.messages.json']],
    ] as const) {
      const names = await readdir(join(user.home, path));
      expect(names).toHaveLength(1);
      const [found, given] = [join(user.home, path, names[0] ?? ''), join(recordings, ...fixture)];
      expect(await readFile(found, 'utf8')).toBe(await readFile(given, 'utf8'));
    }
  });
});
