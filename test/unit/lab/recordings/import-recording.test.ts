import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { importRecording } from '../../../../src/lab/recordings/import-recording.js';
import type { Loss } from '../../../../src/lab/recordings/importer.js';
import { openRecording, RecordingError } from '../../../../src/lab/recordings/open-recording.js';
import { bytesSource, entriesOf, importAll, linesOf, lossesOf, recordingPath } from '../../../support/recordings.js';
import { withTemporaryFolder } from '../../../support/temporary-folder.js';

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'none';
  } catch (error) {
    if (error instanceof RecordingError) return error.code;
    throw error;
  }
}

const claude = (uuid: string, type: 'user' | 'assistant', content: unknown, more: object = {}): object => ({
  type,
  uuid,
  parentUuid: null,
  sessionId: 's-1',
  timestamp: '2026-03-01T10:00:00.000Z',
  message: { role: type, id: `m-${uuid}`, content },
  ...more,
});
const call = (id: string): object => ({ type: 'tool_use', id, name: 'Bash', input: { command: 'ls' } });
const result = (id: string, content = 'ok'): object => ({ type: 'tool_result', tool_use_id: id, content });

describe('an unreadable recording', () => {
  test('is empty if its file is empty or blank', async () => {
    expect(await codeOf(importAll(bytesSource('')))).toBe('empty');
    expect(await codeOf(importAll(bytesSource('\uFEFF \r\n\n')))).toBe('empty');
  });

  test('is binary if it is compressed or UTF-16', async () => {
    expect(await codeOf(importAll(bytesSource(Buffer.from([0x1f, 0x8b, 8, 0, 0, 1, 2, 3]))))).toBe('binary');
    expect(await codeOf(importAll(bytesSource(Buffer.from('{"type":"session"}', 'utf16le'))))).toBe('binary');
  });

  test('is unrecognised if it is other text, and the message shows its beginning', async () => {
    const work = importAll(bytesSource('name,value\na,1\n'));
    await expect(work).rejects.toThrow(/no known format .*claude-code.*name,value/);
    expect(await codeOf(importAll(bytesSource('{"name":"a package","version":"1.0.0"}\n')))).toBe('unrecognised');
  });

  test('is unreadable at a missing path; a folder without files is empty', async () => {
    await withTemporaryFolder(async (folder) => {
      expect(await codeOf(openRecording(join(folder, 'nothing.jsonl')))).toBe('unreadable');
      expect(await codeOf(openRecording(folder))).toBe('empty');
    });
  });

  test('is recognised by content, not by name', async () => {
    await withTemporaryFolder(async (folder) => {
      const path = join(folder, 'rollout-codex.pi.traj');
      await writeFile(path, linesOf(claude('u1', 'user', 'hello')));
      const entries = [];
      for await (const entry of importRecording(await openRecording(path), { onLoss: () => undefined }))
        entries.push(entry);
      expect(entries[0]).toMatchObject({ kind: 'session', format: 'claude-code' });
    });
  });
});

describe('detecting the format', () => {
  test.each([
    ['claude-code', claude('u1', 'user', 'x'.repeat(400_000))],
    [
      'codex',
      { timestamp: 't', type: 'session_meta', payload: { id: 'c', base_instructions: { text: 'x'.repeat(400_000) } } },
    ],
    ['pi', { type: 'session', id: 'p', timestamp: 't', cwd: '/', note: 'x'.repeat(400_000) }],
  ])('recognises %s by a first record longer than the examined prefix', async (format, record) => {
    const found = await importAll(bytesSource(linesOf(record)));
    expect(entriesOf(found, 'session')).toMatchObject([{ format }]);
  });

  test('skips leading records that fit any format', async () => {
    const found = await importAll(
      bytesSource(linesOf({ type: 'note' }, { timestamp: 't', type: 'session_meta', payload: { id: 'c' } })),
    );
    expect(entriesOf(found, 'session')).toMatchObject([{ format: 'codex', native_id: 'c' }]);
    expect(lossesOf(found)).toEqual(['unknown-record line 1']);
  });

  test('starts a session that begins with an earlier summary with a compaction', async () => {
    const found = await importAll(
      bytesSource(
        linesOf(claude('u1', 'user', 'what went before', { isCompactSummary: true }), claude('u2', 'user', 'on')),
      ),
    );
    expect(found.entries.map(({ kind }) => kind)).toEqual(['session', 'compaction', 'message']);
    expect(found.losses).toEqual([]);
  });
});

describe('every format', () => {
  test('reports a call without a result at the end with its place', async () => {
    const found = await importAll(
      bytesSource(linesOf(claude('u1', 'assistant', [call('c1')]), claude('u2', 'user', 'never mind'))),
    );
    expect(lossesOf(found)).toEqual(['missing-result line 1']);
  });

  test('reports a repeated call id and makes it unique, and its result follows it', async () => {
    const found = await importAll(
      bytesSource(
        linesOf(
          claude('u1', 'assistant', [call('c1')]),
          claude('u2', 'user', [result('c1', 'first')]),
          claude('u3', 'assistant', [call('c1')]),
          claude('u4', 'user', [result('c1', 'second')]),
          claude('u5', 'user', [result('c1', 'third')]),
        ),
      ),
    );
    expect(entriesOf(found, 'call').map(({ call_id }) => call_id)).toEqual(['c1', 'c1~2']);
    expect(entriesOf(found, 'result').map(({ call_id, text }) => [call_id, text])).toEqual([
      ['c1', 'first'],
      ['c1~2', 'second'],
    ]);
    expect(entriesOf(found, 'event')).toMatchObject([{ name: 'further-result', text: 'third' }]);
    expect(lossesOf(found)).toEqual(['duplicate-id line 3', 'duplicate-id line 5']);
  });

  test('keeps a result without a call as an event', async () => {
    const found = await importAll(
      bytesSource(linesOf(claude('u1', 'user', 'hello'), claude('u2', 'user', [result('c9', 'text of it')]))),
    );
    expect(entriesOf(found, 'result')).toEqual([]);
    expect(entriesOf(found, 'event')).toMatchObject([{ name: 'orphan-result', text: 'text of it', place: 'line 2' }]);
    expect(lossesOf(found)).toEqual(['orphan-result line 2']);
  });

  test('reports and keeps a clock that runs backwards', async () => {
    const early = { timestamp: '2026-03-01T09:00:00.000Z' };
    const found = await importAll(
      bytesSource(linesOf(claude('u1', 'user', 'one'), claude('u2', 'user', 'two', { ...early, parentUuid: 'u1' }))),
    );
    expect(lossesOf(found)).toEqual(['clock-backwards line 2']);
    expect(entriesOf(found, 'message').map(({ at }) => at)).toEqual([
      Date.parse('2026-03-01T10:00:00Z'),
      Date.parse(early.timestamp),
    ]);
  });

  test('survives an impossible time', async () => {
    const found = await importAll(
      bytesSource(
        linesOf(claude('u1', 'user', 'one', { timestamp: 1e20 }), claude('u2', 'user', 'two', { parentUuid: 'u1' })),
      ),
    );
    expect(lossesOf(found)).toEqual(['clock-backwards line 2']);
  });

  test('replaces lone surrogates in texts, arguments and their names', async () => {
    const torn = { type: 'tool_use', id: 'c1', name: 'Bash', input: { 'k\ud800': ['\udc00 v'] } };
    const found = await importAll(
      bytesSource(linesOf(claude('u1', 'user', 'a \ud83d b'), claude('u2', 'assistant', [torn]))),
    );
    expect(entriesOf(found, 'message')[0]?.text).toBe('a \uFFFD b');
    expect(entriesOf(found, 'call')[0]?.args).toEqual({ 'k\uFFFD': ['\uFFFD v'] });
    expect(lossesOf(found)).toEqual(['repaired-text line 1', 'repaired-text line 2', 'missing-result line 2']);
  });

  test('drops a call with overly nested arguments, not the import', async () => {
    const deep = `${'{"a":'.repeat(30_000)}1${'}'.repeat(30_000)}`;
    const line = JSON.stringify(claude('u1', 'assistant', [call('c1')])).replace('{"command":"ls"}', deep);
    const found = await importAll(bytesSource(`${line}\n${linesOf(claude('u2', 'user', 'still here'))}`));
    expect(entriesOf(found, 'message').at(-1)?.text).toBe('still here');
    expect(lossesOf(found)).toContain('malformed-record line 1');
  });

  test('imports ten thousand calls of one turn whole and in order', async () => {
    const ids = Array.from({ length: 10_000 }, (_, index) => `c${index}`);
    const records = ids.map((id) =>
      claude(`a-${id}`, 'assistant', [call(id)], { message: { role: 'assistant', id: 'm-1', content: [call(id)] } }),
    );
    const results = ids.toReversed().map((id) => claude(`r-${id}`, 'user', [result(id)]));
    const found = await importAll(bytesSource(linesOf(claude('u0', 'user', 'all of them'), ...records, ...results)));
    expect(entriesOf(found, 'call').map(({ call_id }) => call_id)).toEqual(ids);
    expect(entriesOf(found, 'result')).toHaveLength(10_000);
    expect(entriesOf(found, 'message').filter(({ role }) => role === 'assistant')).toHaveLength(1);
    expect(found.losses).toEqual([]);
  });

  test('reads a mixture as the format of its beginning, and reports each foreign record', async () => {
    const foreign = {
      timestamp: '2026-03-01T10:00:00Z',
      type: 'response_item',
      payload: { type: 'message', role: 'user', content: [] },
    };
    const entry = { type: 'message', timestamp: '2026-03-01T10:00:00Z', message: { role: 'user', content: 'x' } };
    const found = await importAll(bytesSource(linesOf(claude('u1', 'user', 'one'), foreign, entry)));
    expect(found.losses).toMatchObject([
      { reason: 'mixed-formats', place: 'line 2', detail: expect.stringContaining('codex') },
      { reason: 'mixed-formats', place: 'line 3', detail: expect.stringContaining('pi') },
    ]);
    expect(entriesOf(found, 'message')).toHaveLength(1);
  });

  test('reports progress up to the size, and stops with the reason of an abort', async () => {
    const source = await openRecording(recordingPath('codex/coding.jsonl'));
    const seen: number[] = [];
    for await (const _ of importRecording(source, { onLoss: () => undefined, onProgress: (done) => seen.push(done) }));
    expect(seen.at(-1)).toBe(source.size);
    const abort = new AbortController();
    const work = async (): Promise<void> => {
      for await (const _ of importRecording(bytesSource(linesOf(claude('u1', 'user', 'one')), 10), {
        onLoss: () => undefined,
        signal: abort.signal,
      }));
    };
    abort.abort(new Error('enough'));
    await expect(work()).rejects.toThrow('enough');
  });

  test('reports a file that becomes unreadable as truncated, with the entries before it', async () => {
    const whole = bytesSource(linesOf(claude('u1', 'user', 'one')));
    const losses: Loss[] = [];
    const entries = [];
    const failing = {
      ...whole,
      async *open(): AsyncIterable<Buffer> {
        yield* whole.open();
        throw Object.assign(new Error('i/o'), { code: 'EIO', syscall: 'read' });
      },
    };
    for await (const entry of importRecording(failing, { onLoss: (loss) => losses.push(loss) }))
      entries.push(entry.kind);
    expect(entries).toEqual(['session', 'message']);
    expect(losses).toMatchObject([{ reason: 'truncated-file', detail: expect.stringContaining('EIO') }]);
  });
});
