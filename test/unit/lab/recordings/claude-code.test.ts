import { beforeAll, describe, expect, test } from '@jest/globals';
import { bytesSource, entriesOf, type Imported, importAll, linesOf, lossesOf } from '../../../support/recordings.js';

const MAIN = '8d21c9aa-11f0-4c66-8e0f-5b7a90c3d202';
const AGENT = `${MAIN}/agent-a77`;

describe('a session of Claude Code', () => {
  let found: Imported;
  beforeAll(async () => {
    found = await importAll('claude-code/coding.jsonl');
  });

  test('imports without a loss, with its model and its folder', () => {
    expect(found.losses).toEqual([]);
    expect(entriesOf(found, 'session')).toMatchObject([
      { format: 'claude-code', cwd: '/home/mira/shelf', agent_version: '2.1.39', model: 'claude-opus-4-6' },
    ]);
  });

  test('joins the blocks of one answer to one message with its last reported token counts', () => {
    const [first, second] = entriesOf(found, 'message').filter(({ role }) => role === 'assistant');
    expect(first).toMatchObject({
      text: "I'll look at the code.",
      thinking: expect.stringContaining('check digit'),
      usage: { output: 41 },
    });
    expect(second).toMatchObject({ text: '', usage: { input: 12, output: 90, cache_read: 4000, cache_write: 800 } });
    expect(entriesOf(found, 'message')).toHaveLength(13);
  });

  test('assigns results to parallel calls by id, in any order', () => {
    expect(
      entriesOf(found, 'call')
        .map(({ call_id }) => call_id)
        .slice(1, 3),
    ).toEqual(['toolu_02', 'toolu_03']);
    expect(
      entriesOf(found, 'result')
        .map(({ call_id }) => call_id)
        .slice(1, 3),
    ).toEqual(['toolu_03', 'toolu_02']);
  });

  test('strips gutter and reminder from the file of a read, whole or in part, but not from its text', () => {
    const results = entriesOf(found, 'result');
    expect(results[1]?.files).toEqual([
      expect.objectContaining({
        path: '/home/mira/shelf/src/shelf.ts',
        whole: false,
        start_line: 9,
        total_lines: 26,
        moment: 'after',
      }),
    ]);
    const whole = results[2];
    expect(whole?.files).toEqual([
      expect.objectContaining({ path: '/home/mira/shelf/src/isbn.ts', whole: true, start_line: 1 }),
    ]);
    expect(whole?.files?.[0]?.text).toMatch(/^\/\*\* The check digit/);
    expect(whole?.files?.[0]?.text).toMatch(/\n}\n$/);
    expect(whole?.text).toMatch(/^1\t\/\*\* The check digit/);
    expect(whole?.text).toContain('<system-reminder>');
  });

  test('shows the file before and after an edit; if it was not recorded, only that it changed', () => {
    const [failed, edited, , partly] = entriesOf(found, 'result').slice(4);
    expect(failed).toMatchObject({ is_error: true });
    expect(failed?.files).toBeUndefined();
    const [before, after] = edited?.files ?? [];
    expect(before).toMatchObject({ moment: 'before', whole: true });
    expect(after).toMatchObject({ moment: 'after', whole: true });
    expect(after?.text).toBe(before?.text?.replace('? 1 : 2', '? 1 : 3'));
    expect(partly?.files).toEqual([{ path: '/home/mira/shelf/src/isbn.ts', moment: 'after', whole: false }]);
  });

  test('lists the paths of a listing, and takes a written file as whole', () => {
    const results = entriesOf(found, 'result');
    expect(results[0]?.listed).toEqual([
      '/home/mira/shelf/src/isbn.ts',
      '/home/mira/shelf/src/shelf.ts',
      '/home/mira/shelf/test/isbn.test.ts',
    ]);
    expect(results.find(({ call_id }) => call_id === 'toolu_09')?.files).toMatchObject([
      { path: '/home/mira/shelf/CHANGELOG.md', whole: true },
    ]);
  });
});

describe('traps of Claude Code', () => {
  let found: Imported;
  beforeAll(async () => {
    found = await importAll('claude-code/traps.jsonl');
  });

  test('report every loss with its line', () => {
    expect(lossesOf(found)).toEqual([
      'repaired-text line 1',
      'unparsed-arguments line 34',
      'repaired-text line 40',
      'duplicate-id line 41',
      'unknown-record line 42',
      'malformed-record line 43',
      'mixed-formats line 44',
      'opaque-content line 6',
      'opaque-content line 9',
      'repaired-text line 45',
      'clock-backwards line 45',
      'missing-result line 31',
    ]);
  });

  test('make each sub-agent a separate session with the call that began it', () => {
    expect(entriesOf(found, 'session').map(({ native_id, parent }) => [native_id, parent])).toEqual([
      [MAIN, undefined],
      [AGENT, { native_id: MAIN, relation: 'subagent', call_id: 'toolu_t1' }],
      [expect.stringContaining(`${MAIN}/agent-`), { native_id: MAIN, relation: 'subagent', call_id: 'toolu_t3' }],
    ]);
    expect(entriesOf(found, 'message', AGENT)).toMatchObject([
      { role: 'user', origin: 'model', text: 'Which files use isIsbn?' },
      { role: 'assistant', origin: 'model' },
    ]);
    expect(entriesOf(found, 'result', AGENT)).toMatchObject([{ call_id: 'toolu_a1', text: 'src/shelf.ts' }]);
  });

  test('make a separate file of a sub-agent a session', async () => {
    const alone = await importAll('claude-code/subagent.jsonl');
    expect(alone.losses).toEqual([]);
    expect(entriesOf(alone, 'session')).toMatchObject([
      { native_id: `${MAIN}/agent-b19`, parent: { native_id: MAIN, relation: 'subagent' } },
    ]);
    expect(entriesOf(alone, 'message')[0]).toMatchObject({ origin: 'model' });
  });

  test('give injected text the harness as origin, and a prompt beside it the person', () => {
    expect(entriesOf(found, 'message', MAIN).slice(0, 3)).toMatchObject([
      { origin: 'harness', name: 'skill_listing', text: '- tidy: puts code in order' },
      { origin: 'harness', text: expect.stringContaining('<system-reminder>') },
      { origin: 'person', text: 'Look over the shelf.\n[image image/png 8 bytes]' },
    ]);
    expect(entriesOf(found, 'message', MAIN).find(({ text }) => text.startsWith('<command-name>'))).toMatchObject({
      origin: 'harness',
    });
  });

  test('show attached files, and a changed one in pieces', () => {
    const events = entriesOf(found, 'event', MAIN);
    expect(events.filter(({ name }) => name === 'file-attached')).toMatchObject([
      { files: [{ path: '/home/mira/shelf/src/isbn.ts', whole: true }] },
      {
        text: 'Be brief.\n',
        files: [{ path: '/home/mira/shelf/RULES.md', whole: true, text: '---\nfor: all\n---\nBe brief.\n' }],
      },
    ]);
    expect(events.find(({ name }) => name === 'file-changed')?.files).toEqual([
      {
        path: '/home/mira/shelf/src/shelf.ts',
        moment: 'after',
        whole: false,
        start_line: 9,
        text: '/** Books by their number. */\nexport class Shelf {',
      },
      {
        path: '/home/mira/shelf/src/shelf.ts',
        moment: 'after',
        whole: false,
        start_line: 22,
        text: '  get size(): number {',
      },
    ]);
  });

  test('import a prompt typed during a turn once, whether removed from the queue, attached or both', () => {
    const typed = entriesOf(found, 'message', MAIN).filter(({ text }) => /only the search|in one line/.test(text));
    expect(typed.map(({ origin, text }) => [origin, text])).toEqual([
      ['person', 'only the search, please'],
      ['person', 'and say it in one line'],
    ]);
  });

  test('treat two prompts under one record as a rewind; the abandoned part stays', () => {
    const at = found.entries.findIndex((entry) => entry.kind === 'event' && entry.name === 'rewind');
    expect(found.entries[at + 1]).toMatchObject({ kind: 'message', text: 'Run the tests only.' });
    expect(entriesOf(found, 'event').filter(({ name }) => name === 'rewind')).toHaveLength(1);
    expect(entriesOf(found, 'message').some(({ text }) => text === 'Run everything.')).toBe(true);
  });

  test('make the boundary and the summary of a compaction one entry', () => {
    expect(entriesOf(found, 'compaction')).toMatchObject([
      { trigger: 'manual', tokens_before: 155_000, summary: expect.stringContaining('finds books by number') },
    ]);
  });

  test('report a stop, and attribute its text to the harness', () => {
    expect(entriesOf(found, 'event').filter(({ name }) => name === 'aborted')).toMatchObject([{ place: 'line 32' }]);
    expect(entriesOf(found, 'message').find(({ text }) => text.startsWith('[Request interrupted'))).toMatchObject({
      origin: 'harness',
    });
  });
});

describe('edits of Claude Code', () => {
  const edited = async (twin: object): Promise<Imported> => {
    const base = { sessionId: 's', timestamp: '2026-03-01T10:00:00Z' };
    const call = { type: 'tool_use', id: 'c', name: 'MultiEdit', input: {} };
    return importAll(
      bytesSource(
        linesOf(
          { ...base, type: 'assistant', uuid: 'a', message: { id: 'm', role: 'assistant', content: [call] } },
          {
            ...base,
            type: 'user',
            uuid: 'b',
            message: { content: [{ type: 'tool_result', tool_use_id: 'c', content: 'ok' }] },
            toolUseResult: twin,
          },
        ),
      ),
    );
  };
  const textAfter = async (twin: object): Promise<string | undefined> =>
    entriesOf(await edited(twin), 'result')[0]?.files?.at(-1)?.text;

  test('replace all places, one place, text with a dollar, and text with its line end', async () => {
    const file = { filePath: '/f', originalFile: 'a $1 a\nb\nc\n' };
    expect(await textAfter({ ...file, oldString: 'a', newString: '$&', replaceAll: true })).toBe('$& $1 $&\nb\nc\n');
    expect(await textAfter({ ...file, oldString: 'a', newString: 'z', replaceAll: false })).toBe('z $1 a\nb\nc\n');
    expect(await textAfter({ ...file, oldString: 'b', newString: '' })).toBe('a $1 a\nc\n');
  });

  test('apply several edits in order', async () => {
    const edits = [
      { old_string: 'one', new_string: 'two' },
      { old_string: 'two', new_string: 'three' },
    ];
    expect(await textAfter({ filePath: '/f', originalFileContents: 'one', edits })).toBe('three');
  });

  test('invent nothing if the edit does not fit or the person changed it', async () => {
    expect(await textAfter({ filePath: '/f', originalFile: 'abc', oldString: 'x', newString: 'y' })).toBeUndefined();
    expect(
      await textAfter({ filePath: '/f', originalFile: 'abc', oldString: 'a', newString: 'y', userModified: true }),
    ).toBeUndefined();
  });

  test('show the lines of the patch without the file, unless its tabs may be spaces', async () => {
    const patch = (lines: readonly string[]): object => ({
      filePath: '/f',
      oldString: 'x',
      newString: 'y',
      originalFile: null,
      structuredPatch: [{ oldStart: 4, newStart: 4, lines }],
    });
    const exact = entriesOf(await edited(patch([' \tfunc', '-\tx', '+\ty'])), 'result')[0]?.files;
    expect(exact?.slice(0, 2)).toMatchObject([
      { moment: 'before', start_line: 4, text: '\tfunc\n\tx' },
      { moment: 'after', start_line: 4, text: '\tfunc\n\ty' },
    ]);
    expect(entriesOf(await edited(patch(['   func', '-  x', '+  y'])), 'result')[0]?.files).toEqual([
      { path: '/f', moment: 'after', whole: false },
    ]);
  });
});

describe('replaced results of Claude Code', () => {
  const base = { sessionId: 's', cwd: '/w', timestamp: '2026-03-01T10:00:00Z' };
  const LONG = 'line of the whole file\n'.repeat(50);
  const prompt = { ...base, type: 'user', uuid: 'u1', parentUuid: null, message: { role: 'user', content: 'read it' } };
  const input = { file_path: '/w/a.txt' };
  const answer = (uuid: string, parentUuid: string, ...content: readonly object[]): object => ({
    ...base,
    type: 'assistant',
    uuid,
    parentUuid,
    message: { id: `m-${uuid}`, role: 'assistant', model: 'x', content },
  });
  const call = answer('a1', 'u1', { type: 'tool_use', id: 't1', name: 'Read', input });
  const result = {
    ...base,
    type: 'user',
    uuid: 'u2',
    parentUuid: 'a1',
    message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: LONG }] },
    toolUseResult: {
      type: 'text',
      file: { filePath: '/w/a.txt', content: LONG, numLines: 50, startLine: 1, totalLines: 50 },
    },
  };
  const done = answer('a2', 'u2', { type: 'text', text: 'done' });
  const replaced = (toolUseId: string): object => ({
    type: 'content-replacement',
    sessionId: 's',
    replacements: [{ kind: 'tool-result', toolUseId, replacement: '<persisted-output>\nPreview\n</persisted-output>' }],
  });
  const cleared = (...compactedToolIds: readonly string[]): object => ({
    ...base,
    type: 'system',
    subtype: 'microcompact_boundary',
    uuid: 'b1',
    parentUuid: 'u2',
    content: 'Context microcompacted',
    microcompactMetadata: { trigger: 'auto', preTokens: 1_000, compactedToolIds, clearedAttachmentUUIDs: [] },
  });

  test('are the result if they precede the answer, and then only prove that the file exists', async () => {
    const found = await importAll(bytesSource(linesOf(prompt, call, result, replaced('t1'), done, replaced('t1'))));
    expect(found.losses).toEqual([]);
    expect(entriesOf(found, 'result')).toMatchObject([
      {
        text: '<persisted-output>\nPreview\n</persisted-output>',
        truncated: true,
        files: [{ path: '/w/a.txt', moment: 'after', whole: false }],
      },
    ]);
    expect(entriesOf(found, 'message').map(({ text }) => text)).toEqual(['read it', '', 'done']);
  });

  test('have the empty last line of a part, which has no line end', async () => {
    const file = { filePath: '/w/a.txt', content: 'a\n', numLines: 2, startLine: 4, totalLines: 50 };
    const part = { ...result, toolUseResult: { type: 'text', file } };
    const found = await importAll(bytesSource(linesOf(prompt, call, part, done)));
    expect(entriesOf(found, 'result')[0]?.files).toMatchObject([{ text: 'a\n\n', start_line: 4, whole: false }]);
    const one = { ...part, toolUseResult: { type: 'text', file: { ...file, numLines: 1 } } };
    expect(entriesOf(await importAll(bytesSource(linesOf(prompt, call, one, done))), 'result')[0]?.files).toMatchObject(
      [{ text: 'a\n' }],
    );
  });

  test('are a loss after the answer or without a result; the result stays whole', async () => {
    const found = await importAll(bytesSource(linesOf(prompt, call, result, done, replaced('t1'), replaced('t9'))));
    expect(lossesOf(found)).toEqual(['not-as-shown line 5.replacements[0]', 'not-as-shown line 6.replacements[0]']);
    expect(entriesOf(found, 'result')[0]?.text).toBe(LONG);
  });

  test('leave the context in a micro-compaction; unknown results are a loss', async () => {
    const found = await importAll(bytesSource(linesOf(prompt, call, result, done, cleared('t1'))));
    expect(found.losses).toEqual([]);
    expect(entriesOf(found, 'compaction')).toMatchObject([
      { trigger: 'microcompact', tokens_before: 1_000, dropped: ['u2'] },
    ]);
    const unknown = await importAll(bytesSource(linesOf(prompt, call, result, done, cleared('t1', 't8'))));
    expect(unknown.losses).toMatchObject([
      { reason: 'not-as-shown', place: 'line 5', detail: expect.stringContaining('1 results') },
    ]);
    const unnamed = await importAll(bytesSource(linesOf(prompt, call, result, done, cleared())));
    expect([lossesOf(unnamed), entriesOf(unnamed, 'compaction')[0]?.dropped]).toEqual([['not-as-shown line 5'], []]);
  });

  test('are matched to a later call; without a call, a result is one event in its place', async () => {
    const found = await importAll(bytesSource(linesOf(prompt, result, call, done)));
    expect(found.losses).toEqual([]);
    expect(found.entries.map(({ kind }) => kind)).toEqual([
      'session',
      'message',
      'message',
      'call',
      'result',
      'message',
    ]);
    const alone = await importAll(
      bytesSource(linesOf(prompt, result, done, answer('a3', 'a2', { type: 'text', text: 'more' }))),
    );
    expect(lossesOf(alone)).toEqual(['orphan-result line 2']);
    expect(alone.entries.at(-2)).toMatchObject({ kind: 'event', name: 'orphan-result' });
    expect(lossesOf(await importAll(bytesSource(linesOf(prompt, result))))).toEqual(['orphan-result line 2']);
  });

  test("ignore the program's newer bookkeeping without a loss", async () => {
    const kept = ['bridge-session', 'file-history-delta', 'cost-state', 'frame-link'].map((type) => ({
      type,
      sessionId: 's',
    }));
    expect((await importAll(bytesSource(linesOf(...kept, prompt, done)))).losses).toEqual([]);
  });

  test('do not treat prompts without a parent as rewinds, but a second beginning among others as one', async () => {
    const { parentUuid: _none, ...loose } = prompt;
    const rewinds = async (...records: readonly object[]): Promise<number> =>
      entriesOf(await importAll(bytesSource(linesOf(...records))), 'event').filter(({ name }) => name === 'rewind')
        .length;
    expect(await rewinds(loose, { ...loose, uuid: 'u3' }, { ...loose, uuid: 'u4' })).toBe(0);
    expect(await rewinds(prompt, { ...prompt, uuid: 'u3' })).toBe(0);
    expect(await rewinds(prompt, call, result, done, { ...prompt, uuid: 'u3' })).toBe(1);
  });
});
