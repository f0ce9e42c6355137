import { describe, expect, test } from '@jest/globals';
import { cellsOf } from '../../../../src/cli/fitted-table.js';
import { coloursFor } from '../../../../src/cli/output.js';
import { sessionTable } from '../../../../src/review/cli/session-table.js';
import { listed } from '../../../../src/review/cli/sessions.js';
import { noSpending } from '../../../../src/review/money/call-cost.js';
import type { SessionRow } from '../../../../src/review/rows/session-rows.js';

const place = { colours: coloursFor({ isTerminal: false, env: {} }), now: new Date(2026, 10, 21), home: '/home/me' };
const id = '5f0c1a52-7a3e-4b1d-9c55-0d2f7be6a101';
const spent = { ...noSpending(), calls: 5, unpriced: 1, fresh: 12_000, output: 500, amount: 1.25 };
const first: SessionRow = {
  id,
  title: 'Sort the shelf by title and by author and by year of print',
  agent: 'Claude Code',
  folder: '/home/me/work/shelf',
  to: new Date(2026, 10, 20, 9, 5),
  turns: 3,
  steps: 1_234,
  figures: { calls: 1_234, toolCalls: 9, filesChanged: 4, failures: 2, spent },
};
const others: readonly SessionRow[] = [
  { ...first, id: `${id}+2` },
  { ...first, id: `${id}.2` },
  { id: 'fork-of-it', title: '', to: first.to, turns: 1, steps: 2, parent: { session: id, at: 7, kind: 'fork' } },
  { id: 'mcp-1', title: '', to: first.to, turns: 1, steps: 2, owner: 7 },
];

describe('the table of sessions on a terminal', () => {
  test.each([80, 100, 160])('has titles, agents and costs before ids and fits %d columns', (width) => {
    const lines = sessionTable([first, ...others].map(listed), { ...place, width });
    expect(lines.filter((line) => cellsOf(line) > width)).toEqual([]);
    expect(lines[0]).toMatch(/^title .*agent .*last used .*answers .*tokens .*cost .*session$/);
    expect(lines[1]).toMatch(/^Sort the s.* Claude .*20 Nov 09:05 +1,234 +12\.5k +>\$1\.25 .*a101$/);
    expect(lines[4]).toMatch(/^fork of 5f0/);
    expect(lines[5]).toMatch(width >= 100 ? /^\(no prompt\) .* open +mcp-1$/ : /^\(no prompt\) .* mcp-1$/);
    const ids = lines.slice(1).map((line) => line.split(' ').at(-1));
    expect(new Set(ids).size).toBe(ids.length);
    expect(lines[0]?.includes('failed')).toBe(width >= 100);
  });

  test('has the cost with sub-agents beside the own cost', () => {
    const withSubAgents = { sessions: 4, spent: { ...spent, unpriced: 0, amount: 3.5 } };
    const lines = sessionTable([{ ...first, withSubAgents }, first].map(listed), { ...place, width: 160 });
    expect(lines[0]).toMatch(/ cost +with sub-agents +files /);
    expect(lines[1]).toMatch(/ >\$1\.25 +4: \$3\.50 +4 /);
    expect(lines[2]).toMatch(/ >\$1\.25 +4 /);
  });

  test.each([80, 100])('says in %d columns whether each session was verified, and with how many findings', (width) => {
    const checked = [0, 3].map((findings) => ({ ...first, check: { findings, checkedAt: 1 } }));
    const lines = sessionTable([...checked, first].map(listed), { ...place, width });
    expect(lines.filter((line) => cellsOf(line) > width)).toEqual([]);
    expect(lines.map((line) => /verified|✓|✗ 3/.exec(line)?.[0])).toEqual(
      width < 100 ? [undefined, undefined, undefined, undefined] : ['verified', '✓', '✗ 3', undefined],
    );
  });
});
