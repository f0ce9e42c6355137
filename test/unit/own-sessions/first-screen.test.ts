import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { cellsOf } from '../../../src/cli/fitted-table.js';
import { coloursFor } from '../../../src/cli/output.js';
import { agentHomes } from '../../../src/own-sessions/agent-homes.js';
import { findSessions } from '../../../src/own-sessions/find-sessions.js';
import { firstScreenLines, type Recorded } from '../../../src/own-sessions/first-screen.js';
import { SessionIndex } from '../../../src/own-sessions/session-index.js';
import { type AgentMachine, agentMachine, placeFiveAgents } from '../../support/agent-machine.js';

let machine: AgentMachine;
beforeEach(async () => {
  machine = await agentMachine();
});
afterEach(() => machine.remove());

async function screen(width: number | undefined, recorded: Recorded = { exists: false, sessions: undefined }) {
  const found = await findSessions({
    homes: agentHomes({ env: {}, home: machine.home, platform: 'linux' }),
    index: await SessionIndex.open(join(machine.home, 'data')),
    mask: async () => undefined,
  });
  const colours = coloursFor({ isTerminal: false, env: {} });
  const now = new Date(2026, 10, 27);
  return firstScreenLines({ ...found, version: '1', recorded, now, home: machine.home }, { colours, width });
}

describe('the first screen', () => {
  test.each([60, 80, 100, 140])('fits a terminal of %d columns', async (width) => {
    await placeFiveAgents(machine);
    await machine.write('.claude/projects/-p/other.jsonl', '{"a":1}\n');
    const lines = await screen(width);
    expect(lines.filter((line) => cellsOf(line) > width)).toEqual([]);
    expect(lines.length).toBeLessThan(31);
    // A narrow list omits these columns last.
    expect(lines).toContainEqual(expect.stringMatching(/^ *2 {2}ISBN check.* 2 Feb \d\d:\d\d.* \$\d/));
  });

  test('shows the agents with counts and days, the last sessions, and three commands', async () => {
    await placeFiveAgents(machine);
    const lines = await screen(undefined);
    expect(lines).toContainEqual(expect.stringMatching(/^Claude Code +1 +2 Feb$/));
    expect(lines).toContainEqual(
      expect.stringMatching(/^ *2 {2}ISBN check digit +Claude +shelf +2 Feb \d\d:\d\d +11 +\d\S+k +\$\d/),
    );
    expect(lines).toContain('Palimpsest has recorded nothing yet.');
    expect(lines.filter((line) => /^ {2}palimpsest /.test(line)).length).toBe(3);
  });

  test('shows the folder of a session that was recorded on Windows', async () => {
    const record = {
      type: 'user',
      sessionId: 's-1',
      uuid: 'u1',
      cwd: 'C:\\Users\\mira\\shelf',
      timestamp: '2026-11-20T09:00:00Z',
    };
    const message = { role: 'user', content: 'Sort the shelf' };
    await machine.write('.claude/projects/-p/one.jsonl', `${JSON.stringify({ ...record, message })}\n`);
    expect(await screen(80)).toContainEqual(expect.stringMatching(/^ *1 {2}Sort the shelf +Claude +shelf +/));
  });

  test('says what is recorded, and names files that are not sessions', async () => {
    const path = await machine.write('.claude/projects/-p/other.jsonl', '{"a":1}\n');
    const lines = await screen(80, { exists: true, sessions: 3 });
    expect(lines).toContain("Palimpsest's database has 3 sessions; palimpsest sessions lists them.");
    expect(lines.join('\n')).toContain(
      `1 file is not a session and left out:\n  ~${path.slice(machine.home.length)} (unrecognised)`,
    );
    expect(lines.join('\n')).toContain('No sessions of Claude Code');
  });
});
