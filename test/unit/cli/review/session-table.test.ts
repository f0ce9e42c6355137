import { describe, expect, test } from '@jest/globals';
import { cellsOf } from '../../../../src/cli/fitted-table.js';
import { coloursFor } from '../../../../src/cli/output.js';
import { sessionTable } from '../../../../src/cli/review/log.js';
import { sessionId } from '../../../../src/objects/ids.js';

const colours = coloursFor({ isTerminal: false, env: {} });
const session = (id: string, parent?: string) => ({
  id: sessionId(id),
  turns: 3,
  steps: 1_234,
  lastActivity: new Date(2026, 10, 20, 9, 5),
  openHere: false,
  ...(parent === undefined ? {} : { parent: { session: sessionId(parent), seq: 7 } }),
});
const id = '5f0c1a52-7a3e-4b1d-9c55-0d2f7be6a101';
const imported = new Map([[id, { agent: 'Claude Code', title: 'x', path: '/a', size: 1, mtime: 1 }]]);
const titles = new Map([[id, 'Sort the shelf by title and by author and by year of print']]);

describe('the table of sessions on a terminal', () => {
  test.each([80, 120])('has titles before ids and fits %d columns', (width) => {
    const sessions = [session(id), session('fork-of-it', id), session('mcp-1')];
    const lines = sessionTable(sessions, { titles, imported, owners: new Map([['mcp-1', 7]]), colours, width });
    expect(lines.filter((line) => cellsOf(line) > width)).toEqual([]);
    expect(lines[1]).toMatch(/^Sort the shelf .*Claude Code {2}20 Nov(?: 2026| 09:05) +3 +1,234 .*5f0c1a52/);
    expect(lines[2]).toMatch(/^fork of Sort the/);
    expect(lines[3]).toMatch(/^ +20 Nov.* open +mcp-1$/);
  });
});
