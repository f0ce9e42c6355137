import { describe, expect, test } from '@jest/globals';
import { bytesSource, entriesOf, importAll, lossesOf } from '../../../support/recordings.js';

const ROOT = '/home/dev/till';

describe('Cline', () => {
  test('imports a file attached to a prompt as an event after the message', async () => {
    const run = await importAll('cline/session.messages.json');
    expect(run.entries.slice(1, 3).map(({ kind }) => kind)).toEqual(['message', 'event']);
    expect(entriesOf(run, 'event')[0]).toMatchObject({
      name: 'file-attached',
      files: [{ path: `${ROOT}/till/price.py`, whole: true }],
    });
  });

  test('yields evidence for each file that one call reads, without line numbers', async () => {
    const [read] = entriesOf(await importAll('cline/session.messages.json'), 'result');
    expect(read?.is_error).toBe(false);
    expect(read?.files).toEqual([
      expect.objectContaining({ path: `${ROOT}/till/receipt.py`, whole: false, start_line: 5 }),
      expect.objectContaining({ path: `${ROOT}/till/price.py`, whole: true, total_lines: 15 }),
    ]);
    expect(read?.files?.[1]?.text).toMatch(/^"""Prices of the till.*\n {4}return sum\(prices\)\n$/s);
  });

  test('assigns results to calls by id; a failed one is an error', async () => {
    const results = entriesOf(await importAll('cline/session.messages.json'), 'result');
    expect(results.map(({ call_id, is_error }) => [call_id, is_error])).toEqual([
      ['tu_1', false],
      ['tu_3', false],
      ['tu_2', true],
      ['tu_4', false],
      ['tu_5', false],
    ]);
    expect(results[3]?.files).toEqual([expect.objectContaining({ path: 'till/price.py', whole: true })]);
  });

  test('makes the person’s text beside a result a message and a picture a line; reports unknown blocks', async () => {
    const run = await importAll('cline/session.messages.json');
    expect(entriesOf(run, 'message').filter(({ role }) => role === 'user')[1]?.text).toBe(
      'And hurry.\n[image image/png 5 bytes]\n[hologram]',
    );
    expect(lossesOf(run)).toEqual([
      'unknown-block messages[8].content[2]',
      'opaque-content messages[1].content[1]',
      'missing-result messages[9].content[0]',
    ]);
    expect(entriesOf(run, 'message')[1]).toMatchObject({
      thinking: 'Both files.',
      usage: { cache_read: 4000, cache_write: 10 },
    });
  });

  test('reads a summary as a compaction, and puts a compaction before a shortened history', async () => {
    const [summary] = entriesOf(await importAll('cline/agentic.compaction.json'), 'compaction');
    expect(summary).toMatchObject({
      summary: 'Context summary:\n\n## Goal\nRound the discount.',
      tokens_before: 21919,
    });
    const basic = await importAll('cline/basic.compaction.json');
    expect(basic.entries.map(({ kind }) => kind)).toEqual(['session', 'compaction', 'message', 'message']);
    expect(entriesOf(basic, 'compaction')[0]?.trigger).toBe('manual_compaction');
  });

  test('reads only the header of a manifest, and reports that', async () => {
    const run = await importAll('cline/session.json');
    expect(run.entries).toEqual([
      expect.objectContaining({
        kind: 'session',
        cwd: ROOT,
        parent: { native_id: '1767000000000_zzzzz', relation: 'fork' },
      }),
    ]);
    expect(lossesOf(run)).toEqual(['opaque-content manifest']);
  });

  test('reports odd messages without a crash; keeps a prompt after the messages', async () => {
    const messages = [
      5,
      { role: 'ghost', content: null },
      { role: 'user', content: [7, null, { type: 'file', path: 3 }, { type: 'tool_result' }] },
      { role: 'assistant', content: [{ type: 'tool_use' }] },
    ];
    const text = JSON.stringify({
      sessionId: 's',
      agent: 'lead',
      messages: [{ role: 'user', content: 'x'.repeat(300_000) }, ...messages],
      system_prompt: 'P',
    });
    const run = await importAll(bytesSource(text));
    expect(entriesOf(run, 'message').some(({ role, text: prompt }) => role === 'system' && prompt === 'P')).toBe(true);
    expect(entriesOf(run, 'call')).toEqual([expect.objectContaining({ tool: 'unknown' })]);
    expect(new Set(run.losses.map(({ reason }) => reason))).toEqual(
      new Set(['malformed-record', 'unknown-record', 'unknown-block', 'orphan-result', 'missing-result']),
    );
  });
});

describe("the task history of Cline's extension", () => {
  const asked = { role: 'user', content: [{ type: 'text', text: '<task>fix</task>' }], ts: 1_772_359_201_000 };
  const answer = {
    role: 'assistant',
    content: [
      { type: 'text', text: 'look' },
      { type: 'tool_use', id: 't1', name: 'read_file', input: { path: 'a.ts' } },
    ],
    ts: 1_772_359_202_000,
    modelInfo: { modelId: 'm', providerId: 'p' },
    metrics: { tokens: { prompt: 12, completion: 3, cached: 9 } },
  };
  const result = {
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: 'export 1' }] }],
  };

  test('reads a bare list of messages like one with a header', async () => {
    const bare = await importAll(bytesSource(JSON.stringify([asked, answer, result])));
    const wrapped = await importAll(bytesSource(JSON.stringify({ messages: [asked, answer, result] })));
    expect([bare.losses, wrapped.losses]).toEqual([[], []]);
    const said = ({ entries }: typeof bare) => entries.slice(1).map(({ kind, place }) => [kind, place]);
    expect(said(bare)).toEqual(said(wrapped));
    expect(entriesOf(bare, 'session')).toMatchObject([{ format: 'cline', model: 'm', started_at: 1_772_359_201_000 }]);
    expect(entriesOf(bare, 'message')[1]?.usage).toEqual({ input: 12, output: 3, cache_read: 9 });
    expect(entriesOf(bare, 'result')).toMatchObject([{ call_id: 't1', text: 'export 1' }]);
  });

  test('reports calls that older versions wrote as tags in the text', async () => {
    const tagged = { role: 'assistant', content: 'I look.\n\n<read_file>\n<path>a.ts</path>\n</read_file>' };
    const found = await importAll(bytesSource(JSON.stringify([{ ...asked, ts: undefined }, tagged])));
    expect(entriesOf(found, 'session')).toMatchObject([{ format: 'cline' }]);
    expect(lossesOf(found)).toEqual(['opaque-content messages[1]']);
  });
});
