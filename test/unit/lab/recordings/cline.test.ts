import { describe, expect, test } from '@jest/globals';
import { bytesSource, entriesOf, importAll, lossesOf } from '../../../support/recordings.js';

const ROOT = '/home/dev/till';

describe('Cline', () => {
  test('a file in a prompt is a read without a call', async () => {
    const run = await importAll('cline/session.messages.json');
    expect(run.entries.slice(1, 3).map(({ kind }) => kind)).toEqual(['message', 'event']);
    expect(entriesOf(run, 'event')[0]).toMatchObject({ name: 'file-attached', files: [{ path: `${ROOT}/till/price.py`, whole: true }] });
  });

  test('one call reads several files: each that was read is evidence, without its numbers', async () => {
    const [read] = entriesOf(await importAll('cline/session.messages.json'), 'result');
    expect(read?.is_error).toBe(false);
    expect(read?.files).toEqual([
      expect.objectContaining({ path: `${ROOT}/till/receipt.py`, whole: false, start_line: 5 }),
      expect.objectContaining({ path: `${ROOT}/till/price.py`, whole: true, total_lines: 15 }),
    ]);
    expect(read?.files?.[1]?.text).toMatch(/^"""Prices of the till.*\n {4}return sum\(prices\)\n$/s);
  });

  test('results go with their calls by id; a failed one is an error', async () => {
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

  test('what a person says beside a result is a message; pictures are a line, unknown blocks are told', async () => {
    const run = await importAll('cline/session.messages.json');
    expect(entriesOf(run, 'message').filter(({ role }) => role === 'user')[1]?.text).toBe(
      'And hurry.\n[image image/png 5 bytes]\n[hologram]',
    );
    expect(lossesOf(run)).toEqual([
      'unknown-block messages[8].content[2]',
      'opaque-content messages[1].content[1]',
      'missing-result messages[9].content[0]',
    ]);
    expect(entriesOf(run, 'message')[1]).toMatchObject({ thinking: 'Both files.', usage: { cache_read: 4000, cache_write: 10 } });
  });

  test('a summary is a compaction, a shortened history has one in front', async () => {
    const [summary] = entriesOf(await importAll('cline/agentic.compaction.json'), 'compaction');
    expect(summary).toMatchObject({ summary: 'Context summary:\n\n## Goal\nRound the discount.', tokens_before: 21919 });
    const basic = await importAll('cline/basic.compaction.json');
    expect(basic.entries.map(({ kind }) => kind)).toEqual(['session', 'compaction', 'message', 'message']);
    expect(entriesOf(basic, 'compaction')[0]?.trigger).toBe('manual_compaction');
  });

  test('of a manifest its header alone, and that is told', async () => {
    const run = await importAll('cline/session.json');
    expect(run.entries).toEqual([
      expect.objectContaining({ kind: 'session', cwd: ROOT, parent: { native_id: '1767000000000_zzzzz', relation: 'fork' } }),
    ]);
    expect(lossesOf(run)).toEqual(['opaque-content manifest']);
  });

  test('odd messages are told, never a crash; a prompt behind the messages is kept', async () => {
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
