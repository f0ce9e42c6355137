import { describe, expect, test } from '@jest/globals';
import { importRecording } from '../../../../src/lab/recordings/import-recording.js';
import type { RecordedEntry } from '../../../../src/lab/recordings/neutral-session.js';
import { bytesSource } from '../../../support/recordings.js';

async function entriesIn(
  text: string,
): Promise<{ readonly entries: readonly RecordedEntry[]; readonly losses: readonly string[] }> {
  const entries: RecordedEntry[] = [];
  const losses: string[] = [];
  const onLoss = ({ reason, place }: { readonly reason: string; readonly place: string }): void =>
    void losses.push(`${reason} ${place}`);
  for await (const entry of importRecording(bytesSource(Buffer.from(text)), { onLoss })) entries.push(entry);
  return { entries, losses };
}

const told = (entries: readonly RecordedEntry[]): readonly (readonly unknown[])[] =>
  entries.map((one) => {
    if (one.kind === 'message') return [one.role, one.origin, one.text];
    if (one.kind === 'call') return ['call', one.call_id, one.tool, one.args];
    if (one.kind === 'result') return ['result', one.call_id, one.text, one.is_error];
    return [one.kind];
  });

const trajectory = (steps: readonly unknown[]): string =>
  JSON.stringify({
    schema_version: 'ATIF-v1.7',
    session_id: 'run-7',
    agent: { name: 'weaver', version: '3', model_name: 'loom-1' },
    steps,
  });

describe('trajectories in ATIF', () => {
  test('become messages, calls, results, thoughts and counts', async () => {
    const { entries, losses } = await entriesIn(
      trajectory([
        { step_id: 1, source: 'system', message: 'Weave well.' },
        { step_id: 2, source: 'user', message: 'Mend the hem', timestamp: '2026-02-03T10:00:00Z' },
        {
          step_id: 3,
          source: 'agent',
          message: [{ type: 'text', text: 'Looking.' }],
          reasoning_content: 'Where is it torn?',
          tool_calls: [{ tool_call_id: 'k1', function_name: 'look', arguments: { path: 'hem.txt' } }],
          observation: { results: [{ source_call_id: 'k1', content: 'torn at the left' }] },
          metrics: { prompt_tokens: 90, completion_tokens: 8, cached_tokens: 40 },
        },
      ]),
    );
    expect(losses).toEqual([]);
    expect(entries[0]).toMatchObject({
      kind: 'session',
      format: 'atif',
      native_id: 'run-7',
      agent: 'weaver',
      model: 'loom-1',
    });
    expect(told(entries.slice(1))).toEqual([
      ['system', 'harness', 'Weave well.'],
      ['user', 'person', 'Mend the hem'],
      ['assistant', 'model', 'Looking.'],
      ['call', 'k1', 'look', { path: 'hem.txt' }],
      ['result', 'k1', 'torn at the left', false],
    ]);
    expect(entries[3]).toMatchObject({
      thinking: 'Where is it torn?',
      usage: { input: 90, output: 8, cache_read: 40 },
    });
  });

  test('give an observation without an id to the oldest open call, and report an invalid step', async () => {
    const { entries, losses } = await entriesIn(
      trajectory([
        {
          step_id: 1,
          source: 'agent',
          message: '',
          tool_calls: [{ tool_call_id: 'k1', function_name: 'spin', arguments: {} }],
        },
        { step_id: 2, source: 'agent', message: 'so', observation: { results: [{ content: 'spun' }] } },
        'no step',
        { step_id: 4, source: 'bystander', message: 'hm' },
      ]),
    );
    expect(told(entries)).toContainEqual(['result', 'k1', 'spun', false]);
    expect(losses.map((loss) => loss.split(' ')[0])).toEqual(['malformed-record', 'unknown-record']);
  });
});

describe('exports of DataClaw', () => {
  test('have one session per line, with results if the export has them', async () => {
    const session = (id: string, messages: readonly unknown[]): string =>
      JSON.stringify({
        session_id: id,
        project: 'loom',
        model: 'loom-1',
        start_time: '2026-02-03T10:00:00Z',
        messages,
      });
    const { entries } = await entriesIn(
      `${session('a', [
        { role: 'user', content: 'Mend it' },
        {
          role: 'assistant',
          content: 'Looking.',
          thinking: 'Torn?',
          tool_uses: [
            { tool: 'Read', input: 'hem.txt' },
            { tool: 'Bash', input: { command: 'spin' }, output: { text: 'no thread' }, status: 'error' },
          ],
        },
      ])}\n${session('b', [{ role: 'user', content: 'And now?' }])}\n`,
    );
    expect(entries.filter(({ kind }) => kind === 'session')).toMatchObject([
      { format: 'dataclaw', native_id: 'a', cwd: 'loom' },
      { native_id: 'b' },
    ]);
    expect(told(entries)).toEqual(
      expect.arrayContaining([
        ['user', 'person', 'Mend it'],
        ['assistant', 'model', 'Looking.'],
        ['call', 'line 1.messages[1].tool_uses[0]', 'Read', { input: 'hem.txt' }],
        ['result', 'line 1.messages[1].tool_uses[1]', 'no thread', true],
      ]),
    );
  });
});
