import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { readFile, rename, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { MaskLoader } from '../../../src/client/record-mask.js';
import { agentHomes } from '../../../src/own-sessions/agent-homes.js';
import { findSessions } from '../../../src/own-sessions/find-sessions.js';
import { SessionIndex } from '../../../src/own-sessions/session-index.js';
import { StoredMask } from '../../../src/redaction/stored-mask.js';
import { type AgentMachine, agentMachine, claudeSession, placeFiveAgents } from '../../support/agent-machine.js';
import { RecordingLines } from '../../support/replays.js';

let machine: AgentMachine;
beforeEach(async () => {
  machine = await agentMachine();
});
afterEach(() => machine.remove());

async function search(env: Readonly<Record<string, string>> = {}, mask: MaskLoader = async () => undefined) {
  const read: number[] = [];
  const found = await findSessions({
    homes: agentHomes({ env, home: machine.home, platform: 'linux' }),
    index: await SessionIndex.open(join(machine.home, 'data')),
    mask,
    onProgress: (done) => read.push(done),
  });
  return { ...found, read: read.length };
}

const PROMPT = 'The test in test/isbn.test.ts fails although the number is right. Find out why and put it right.';
const CLAUDE = '.claude/projects/-p/s-1.jsonl';

describe('the sessions of the agents on a machine', () => {
  test('are found for five agents where each keeps them, the most recently used first', async () => {
    await placeFiveAgents(machine);
    const { sessions, unread } = await search();
    expect(unread).toEqual([]);
    const shown = sessions.map(({ agent, title, folder, turns, calls, toolCalls, answers }) => [
      agent,
      title.slice(0, 30),
      folder,
      [turns, calls, toolCalls, answers.length],
    ]);
    expect(shown).toEqual([
      ['codex', PROMPT.slice(0, 30), '/home/mira/shelf', [2, 12, 11, 12]],
      ['claude-code', 'ISBN check digit', '/home/mira/shelf', [2, 11, 10, 11]],
      ['cline', 'A discount of 50 % on 199 cent', undefined, [2, 5, 6, 5]],
      ['gemini-cli', 'A discount of 50 % on 199 cent', '/home/mira/shelf', [1, 7, 10, 7]],
      ['pi', PROMPT.slice(0, 30), '/home/mira/shelf', [3, 11, 10, 13]],
    ]);
  });

  test('are found in the folders that the agents’ variables name, and then not in the usual ones', async () => {
    await placeFiveAgents(machine);
    await machine.place('elsewhere/claude/projects/p/a.jsonl', 'claude-code', 'coding.jsonl');
    await machine.place('elsewhere/codex/archived_sessions/a.jsonl', 'codex', 'coding.jsonl');
    const at = (name: string): string => join(machine.home, 'elsewhere', name);
    const { sessions } = await search({
      CLAUDE_CONFIG_DIR: at('claude'),
      CODEX_HOME: at('codex'),
      PI_CODING_AGENT_DIR: at('pi'),
      GEMINI_CLI_HOME: at('gemini'),
      CLINE_DIR: at('cline'),
    });
    expect(sessions.map(({ file }) => file.path).sort()).toEqual([
      at('claude/projects/p/a.jsonl'),
      at('codex/archived_sessions/a.jsonl'),
    ]);
  });

  test('in a database that cannot be read are named with the reason, and hide no others', async () => {
    await placeFiveAgents(machine);
    const path = await machine.write('.local/share/opencode/opencode.db', 'no database');
    const { sessions, unread } = await search();
    expect(sessions).toHaveLength(5);
    // Node 20 has no SQLite.
    expect(unread).toEqual([{ path, reason: expect.stringMatching(/use Node 22\.13 or newer$|^unreadable \(/) }]);
  });

  test('take their title from the agent’s own list where it keeps one', async () => {
    const id = '019c0000-0000-7000-8000-00000000c001';
    await machine.place(`.codex/sessions/2026/02/25/rollout-2026-02-25T06-13-20-${id}.jsonl`, 'codex', 'coding.jsonl');
    await machine.write('.codex/session_index.jsonl', `${JSON.stringify({ id, thread_name: 'Check digits' })}\nbroken`);
    const tasks = '.config/Code/User/globalStorage/saoudrizwan.claude-dev';
    const task = [{ role: 'user', content: [{ type: 'text', text: '<task>\nCount the pears\n</task>' }] }];
    await machine.write(`${tasks}/tasks/1769/api_conversation_history.json`, JSON.stringify(task));
    await machine.write(
      `${tasks}/state/taskHistory.json`,
      JSON.stringify([{ id: '1769', task: 'Count the pears', cwdOnTaskInitialization: '/home/mira/till' }]),
    );
    const { sessions } = await search();
    expect(sessions.map(({ id: own, title, folder }) => [own, title, folder])).toEqual([
      ['1769', 'Count the pears', '/home/mira/till'],
      [id, 'Check digits', '/home/mira/shelf'],
    ]);
  });

  test('with negative or infinite figures spoil no sum, and a time in 2999 is not the newest', async () => {
    const line = (entry: object, uuid: string, parentUuid: string | null, timestamp: string): string =>
      JSON.stringify({ sessionId: 'constructor', uuid, parentUuid, timestamp, ...entry });
    const usage = { input_tokens: -5, output_tokens: 1e308, cache_read_input_tokens: 7 };
    const content = [{ type: 'text', text: 'yo' }];
    const user = { type: 'user', message: { role: 'user', content: 'hi' } };
    const says = { type: 'assistant', message: { id: 'm', role: 'assistant', model: 'x', content, usage } };
    const text = [line(user, 'a', null, '2999-01-01T00:00:00Z'), line(says, 'b', 'a', '2999-01-01T00:00:01Z')].join(
      '\n',
    );
    const path = await machine.write('.claude/projects/p/a.jsonl', `${text}\n`);
    await utimes(path, 1, 1);
    await machine.write(CLAUDE, claudeSession().text);
    const { sessions } = await search();
    expect(sessions.map(({ id }) => id).at(-1)).toBe('constructor');
    expect(sessions.at(-1)?.answers.map((answer) => answer.slice(2))).toEqual([[0, 7, 0, 0, null]]);
    // The index has a form that the next search accepts.
    expect((await search()).read).toBe(0);
  });

  test('are found beside a folder that cannot be read', async () => {
    await machine.write(CLAUDE, claudeSession().text);
    const deep = join(machine.home, '.claude', 'projects', 'deep');
    // No user can read a folder at such a long path, root included.
    const before = process.cwd();
    mkdirSync(deep);
    process.chdir(deep);
    for (let depth = 0; depth < 25; depth++) {
      mkdirSync('x'.repeat(200));
      process.chdir('x'.repeat(200));
    }
    process.chdir(before);
    try {
      const { sessions, unread } = await search();
      expect(sessions).toHaveLength(1);
      expect(unread.map(({ reason }) => reason)).toEqual(['unreadable (ENAMETOOLONG)']);
    } finally {
      execFileSync('rm', ['-rf', deep]);
    }
  });

  test('are found even if a pipe is in place of a list of names', async () => {
    const id = '019c0000-0000-7000-8000-00000000c001';
    await machine.place(`.codex/sessions/2026/02/25/rollout-2026-02-25T06-13-20-${id}.jsonl`, 'codex', 'coding.jsonl');
    execFileSync('mkfifo', [join(machine.home, '.codex', 'session_index.jsonl')]);
    const { sessions } = await search();
    expect(sessions.map(({ agent }) => agent)).toContain('codex');
  });

  test('are read again only if their file has changed', async () => {
    await placeFiveAgents(machine);
    const path = await machine.write(CLAUDE, claudeSession().text);
    expect((await search()).read).toBe(6);
    expect((await search()).read).toBe(0);
    const grown = claudeSession().user('Now by author').says('Done.');
    await writeFile(path, grown.text);
    const again = await search();
    expect(again.read).toBe(1);
    expect(again.sessions.find(({ id }) => id === 's-1')?.turns).toBe(2);
    await utimes(path, 1, 1);
    expect((await search()).read).toBe(1);
  });

  test('leave out broken and foreign files and name them with the reason', async () => {
    await machine.write(CLAUDE, claudeSession().text);
    const foreign = await machine.write('.claude/projects/-p/notes.jsonl', '{"a":1}\n');
    const empty = await machine.write('.codex/sessions/2026/01/01/rollout-a.jsonl', '');
    const binary = await machine.write('.pi/agent/sessions/--p--/a.jsonl', '\0\0\0');
    await machine.write('.claude/projects/-p/memory/note.md', 'no recording by its name');
    const { sessions, unread } = await search();
    expect(sessions.map(({ id }) => id)).toEqual(['s-1']);
    expect(unread).toEqual([
      { path: foreign, reason: 'unrecognised' },
      { path: empty, reason: 'empty' },
      { path: binary, reason: 'binary' },
    ]);
  });

  test('count the readable part of a truncated file', async () => {
    const { text } = claudeSession();
    await machine.write(CLAUDE, text.slice(0, -40));
    const [session] = (await search()).sessions;
    expect(session).toMatchObject({ id: 's-1', turns: 1, toolCalls: 1, losses: { 'truncated-file': 1 } });
  });
});

describe('the index of sessions', () => {
  const indexFile = (): string => join(machine.home, 'data', 'own-sessions.json');

  test('can be read by this user only, because it has prompts', async () => {
    await machine.write(CLAUDE, claudeSession().text);
    await search();
    expect((await stat(indexFile())).mode & 0o777).toBe(0o600);
    expect((await stat(join(machine.home, 'data'))).mode & 0o777).toBe(0o700);
  });

  test.each(['', '{"version":1,"files":', '{"version":0,"files":{}}', '{"version":1,"files":{"/a":{"size":1}}}'])(
    'is rebuilt if it is damaged or older: %j',
    async (text) => {
      await machine.write(CLAUDE, claudeSession().text);
      await search();
      const whole = await readFile(indexFile(), 'utf8');
      await writeFile(indexFile(), text);
      const { read, sessions } = await search();
      expect([read, sessions.length]).toEqual([1, 1]);
      expect(await readFile(indexFile(), 'utf8')).toBe(whole);
    },
  );

  test('has titles with marks in place of their secrets, masked before they are cut', async () => {
    const secret = `ghp_${'aB3'.repeat(12)}`;
    const prompt = `${'word '.repeat(38)}${secret} is the token`;
    await machine.write(CLAUDE, new RecordingLines().user(prompt).says('Yes.').text);
    const mask = new StoredMask({ key: Buffer.alloc(32, 7), level: 'known' });
    const { sessions } = await search({}, async () => mask);
    expect(sessions.map(({ title }) => title)).toEqual([expect.stringMatching(/⟦masked:/)]);
    expect(await readFile(indexFile(), 'utf8')).not.toContain('ghp_');
  });

  test('forgets files that are gone', async () => {
    const path = await machine.write(CLAUDE, claudeSession().text);
    await search();
    await rename(path, `${path}.old`);
    expect((await search()).sessions).toEqual([]);
    expect(await readFile(indexFile(), 'utf8')).not.toContain('s-1.jsonl');
  });
});
