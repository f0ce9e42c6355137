import { describe, expect, test } from '@jest/globals';
import { bytesSource, entriesOf, importAll, lossesOf } from '../../../support/recordings.js';

describe('OpenCode', () => {
  test('reads session, title, prompts and answers with their token counts', async () => {
    const run = await importAll('opencode/session.json');
    expect(entriesOf(run, 'session')).toEqual([
      expect.objectContaining({
        format: 'opencode',
        native_id: 'ses_shelf0001',
        agent_version: '1.18.33',
        model: 'claude-sonnet-4-5',
        cwd: '/home/mira/shelf',
      }),
    ]);
    expect(entriesOf(run, 'event')[0]).toMatchObject({ name: 'titled', text: 'A shelf for poems' });
    const messages = entriesOf(run, 'message');
    expect(messages.map(({ role, origin, text }) => [role, origin, text])).toEqual([
      ['user', 'person', 'Add a shelf for poems'],
      ['assistant', 'model', 'I look at the shelves.'],
      ['assistant', 'model', ''],
      ['assistant', 'model', ''],
      ['user', 'harness', 'Continue if you have next steps'],
      ['assistant', 'model', 'The shelf for poems is there. The tests took too long.'],
    ]);
    expect(messages[1]).toMatchObject({
      thinking: 'The list is in one file.',
      usage: { input: 12, output: 40, cache_read: 9000, cache_write: 300, cost: 0.0121 },
    });
    expect(messages[3]?.usage?.output).toBe(26);
    expect(lossesOf(run)).toEqual([]);
  });

  test('yields the whole file that a read shows, and the failure of a call', async () => {
    const run = await importAll('opencode/session.json');
    expect(entriesOf(run, 'call').map(({ tool, call_id }) => [tool, call_id])).toEqual([
      ['read', 'toolu_1'],
      ['edit', 'toolu_2'],
      ['bash', 'toolu_3'],
    ]);
    const [read, edited, stopped] = entriesOf(run, 'result');
    expect(read?.files).toEqual([
      expect.objectContaining({ path: '/home/mira/shelf/shelves.ts', whole: true, total_lines: 5 }),
    ]);
    expect(read?.files?.[0]?.text).toMatch(/^export const shelves.*\n}\n$/s);
    expect([edited?.is_error, stopped?.is_error]).toEqual([false, true]);
    expect(stopped?.text).toBe('The command was stopped after 120 s.');
  });

  test('reads a summary as a compaction with its costs, and a change of the model as an event', async () => {
    const run = await importAll('opencode/session.json');
    expect(entriesOf(run, 'compaction')).toEqual([
      expect.objectContaining({ summary: 'The user wants a shelf for poems. It is in shelves.ts now.' }),
    ]);
    const events = entriesOf(run, 'event').map(({ name, text, usage }) => [name, text ?? usage?.input]);
    expect(events.slice(1)).toEqual([
      ['summarised', 12],
      ['model-change', 'claude-haiku-4-5'],
    ]);
  });

  test('names a sub-agent’s parent, and takes no time of the beginning for a title', async () => {
    const info = { id: 'ses_b', parentID: 'ses_a', directory: '/p', title: 'New session - 2026-01-10T09:00:00.000Z' };
    const run = await importAll(bytesSource(JSON.stringify({ info, messages: [] })));
    expect(run.entries).toEqual([expect.objectContaining({ parent: { native_id: 'ses_a', relation: 'subagent' } })]);
  });
});
