import { randomUUID } from 'node:crypto';
import { appendFile, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { exportSession } from '../../../src/contracts/cortexfs/export-session.js';
import { ImportClock } from '../../../src/contracts/cortexfs/import-clock.js';
import { importDirectory } from '../../../src/contracts/cortexfs/import-session.js';
import { PALIMPSEST_FILE } from '../../../src/contracts/cortexfs/palimpsest-file.js';
import { readProjection } from '../../../src/contracts/projection/read-projection.js';
import { REDACTION } from '../../../src/contracts/projection/redaction-rules.js';
import { askedMoment } from '../../../src/history/rebuild/moment.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { RECORD_KINDS, type RecordKind } from '../../../src/objects/context-record.js';
import { sessionId, sessionObjectId } from '../../../src/objects/ids.js';
import { askHere } from '../../support/ask-here.js';
import { openClient } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { anyDirectory, type DirectoryFiles, FOREIGN, filesIn, writeFiles } from '../../support/session-directories.js';

describe('a session directory of another program', () => {
  const clock = new ImportClock();
  let client: ContextClient;
  let root = '';
  let close = async (): Promise<void> => undefined;
  let made = 0;

  beforeAll(async () => {
    const folder = await temporaryRoot();
    client = await openClient(folder.root, { clock: clock.now });
    root = await mkdtemp(join(tmpdir(), 'palimpsest-import-'));
    close = async () => {
      await client.close();
      await folder.remove();
      await rm(root, { recursive: true, force: true });
    };
  });
  afterAll(() => close());

  const place = (): string => {
    made += 1;
    return join(root, `d${made}`);
  };
  const write = async (files: DirectoryFiles): Promise<string> => {
    const folder = place();
    await writeFiles(folder, files);
    return folder;
  };
  const fresh = (): string => `imported-${randomUUID()}`;
  const bring = (folder: string, session: string, more = {}) =>
    importDirectory(client, folder, { clock, session, ...more });
  const given = async (session: string, at?: string): Promise<DirectoryFiles> => {
    const folder = place();
    const when = askedMoment({ at });
    await exportSession(await Timeline.open(await client.delivered()), folder, { session: sessionId(session), when });
    return filesIn(folder);
  };
  const recorded = async <Kind extends RecordKind>(session: string, kinds: readonly Kind[]) =>
    (await client.store.latest()).records(sessionId(session), { kinds });
  const projected = async (session: string) =>
    readProjection(await Timeline.open(await client.delivered()), sessionId(session));

  test('returns byte for byte, and is an ordinary session in between', async () => {
    const session = fresh();
    const folder = await write(FOREIGN);
    expect(await bring(folder, session, { planOnly: true })).toMatchObject({
      outcome: 'created',
      messages: 5,
      calls: 7,
    });
    expect(await bring(folder, session)).toMatchObject({ outcome: 'created', messages: 5, calls: 7 });
    expect(await given(session)).toEqual(FOREIGN);
    expect(await bring(folder, session)).toMatchObject({ outcome: 'unchanged', steps: 0, records: 0 });
    const { entries, turn } = await projected(session);
    expect(turn).toBe(2);
    const results = entries.flatMap((entry) =>
      entry.kind === 'result' ? [[entry.native.split('~')[0], entry.tool, entry.status, entry.pinned]] : [],
    );
    expect(results).toEqual([
      ['c1', 'grep', 'ok', false],
      ['c3', 'cat', 'fail', false],
      ['c2', 'ls', 'ok', false],
      ['none', 'unknown', 'ok', false],
      ['import-pinned-no-end.md', 'import.pinned', 'ok', true],
      ['import-pinned-style.md', 'import.pinned', 'ok', true],
      ['import-child-rev-1', 'agent.handoff', 'ok', false],
    ]);
    expect(entries.find((entry) => entry.kind === 'system')).toMatchObject({ isPrompt: true, text: 'You are terse.' });
    // A reader of a session's own records does not see imported ones.
    expect(await recorded(session, ['event'])).toEqual([]);
    const notes = await recorded(session, ['note', 'approval']);
    expect(notes.map(({ body }) => ('note' in body ? `${body.note} ${body.text}` : body.state)).sort()).toEqual([
      'approved',
      'decision Leave it.',
      'done find the port',
      'fact The port is 8080.',
      'pending',
      'todo look at a.png',
    ]);
  });

  test('is exported as imported, and imported once, for any directory', async () => {
    await fc.assert(
      fc.asyncProperty(anyDirectory, async (files) => {
        const [session, folder] = [fresh(), await write(files)];
        await bring(folder, session);
        expect(await given(session)).toEqual(files);
        expect(await bring(folder, session)).toMatchObject({ outcome: 'unchanged' });
      }),
      { numRuns: effort(4, 200) },
    );
  });

  test('continues if the directory grew; refuses a changed one with its difference, ignores an older one', async () => {
    const session = fresh();
    const more: DirectoryFiles = {
      ...FOREIGN,
      'messages.jsonl': `${FOREIGN['messages.jsonl']}{"role":"assistant","content":"Done."}\n`,
      'events.jsonl': `${FOREIGN['events.jsonl']}{"type":"done","run":"r2","status":"ok"}\n`,
      'context/summary.md': 'It is 8080.\n',
      'context/pinned/style.md': 'Long sentences.\n',
    };
    await bring(await write(FOREIGN), session);
    const grown = await write(more);
    expect(await bring(grown, session)).toMatchObject({
      outcome: 'extended',
      messages: 1,
      calls: 1,
      known: { messages: 9, events: 9 },
    });
    expect(await given(session)).toEqual(more);
    const pinned = (await projected(session)).entries.flatMap((entry) =>
      entry.kind === 'result' && entry.pinned ? [entry.text] : [],
    );
    expect(pinned).toEqual(['without an end', 'Long sentences.\n']);
    expect(await bring(grown, session)).toMatchObject({ outcome: 'unchanged' });
    expect(await bring(await write(FOREIGN), session)).toMatchObject({ outcome: 'unchanged' });
    const said = more['messages.jsonl']?.replace('In the settings.', 'Nowhere.') ?? '';
    await expect(bring(await write({ ...more, 'messages.jsonl': said }), session)).rejects.toThrow(
      /^messages\.jsonl, line 5: .*nothing was changed/,
    );
    const told = more['events.jsonl']?.replace('"input_tokens":10', '"input_tokens":11') ?? '';
    await expect(bring(await write({ ...more, 'events.jsonl': told }), session)).rejects.toThrow(
      /^events\.jsonl, line 6: /,
    );
    const seq = more['messages.jsonl']?.replace('"seq":1', '"seq":2') ?? '';
    await expect(bring(await write({ ...more, 'messages.jsonl': seq }), session)).rejects.toMatchObject({
      code: 'conflict',
    });
    expect(await given(session)).toEqual(more);
  });

  test('keeps its foreign parts after the session continued', async () => {
    const name = fresh();
    await bring(await write(FOREIGN), name);
    const session = await client.openSession({ id: name });
    await session.reportMessage({ role: 'user', text: 'Go on' });
    const own = { tool: 'ls', args: {}, status: 'ok' as const, content: 'b', answer: () => 'b' };
    await session.recordCall(own);
    await client.closeSession(session);
    const store = await client.delivered();
    const note = { name: 'late', note: 'fact', text: 'It moved.' } as const;
    await store.putRecords([
      {
        kind: 'note',
        owner: { session: sessionId(name) },
        turn: 3,
        seq: session.state.seq,
        at: 5,
        basis: null,
        body: note,
      },
    ]);
    const files = await given(name);
    expect(files['messages.jsonl']?.startsWith(FOREIGN['messages.jsonl'] ?? 'missing')).toBe(true);
    expect(files['messages.jsonl']?.split('\n')).toHaveLength(9 + 3 + 1);
    expect(files['events.jsonl']?.startsWith(FOREIGN['events.jsonl'] ?? 'missing')).toBe(true);
    expect(files['context/facts.jsonl']).toMatch(
      /^\{"id":"f1", "text":.*\n\{"id":"late","text":"It moved\.","source":"messages:12"\}\n$/,
    );
    expect(files['context/summary.md']).toBe(FOREIGN['context/summary.md']);
    expect(files['context/pinned/style.md']).toBe('Short sentences.\n');
    expect(files['context/child/rev-1/artifact/notes.md']).toBe('one\n');
    expect(JSON.parse(files['meta.json'] ?? '')).toMatchObject({
      client: 'another',
      model: 'm-1',
      palimpsest: { session: name },
    });
    // All of this can be imported again as another session.
    const [again, folder] = [fresh(), await write(files)];
    await bring(folder, again);
    // Our own file names the calls of its session.
    const { [PALIMPSEST_FILE]: _own, ...others } = await given(again);
    expect({ ...others, [PALIMPSEST_FILE]: files[PALIMPSEST_FILE] }).toEqual(files);
    const said = async (one: string) =>
      (await projected(one)).entries.map((entry) => [entry.kind, entry.seq, entry.text]);
    expect(await said(again)).toEqual(await said(name));
    await expect(bring(await write(FOREIGN), name)).resolves.toMatchObject({ outcome: 'unchanged' });
  });

  test('is complete even if our exported session had no steps', async () => {
    const [name, folder] = [fresh(), place()];
    const session = await client.openSession({ id: name });
    await session.setSystemPrompt('Be kind.');
    await client.closeSession(session);
    await exportSession(await Timeline.open(await client.delivered()), folder, { session: sessionId(name) });
    expect(await bring(folder, name)).toMatchObject({ outcome: 'unchanged' });
    const copy = fresh();
    expect(await bring(folder, copy)).toMatchObject({ outcome: 'created', steps: 0 });
    expect((await projected(copy)).entries).toMatchObject([{ kind: 'system', text: 'Be kind.' }]);
    expect(await bring(folder, copy)).toMatchObject({ outcome: 'unchanged' });
  });

  test('shows messages that followed an interrupted import, which then does not continue over them', async () => {
    const [whole, broken] = [fresh(), fresh()];
    const folder = await write(FOREIGN);
    await bring(folder, whole);
    const records = await recorded(whole, ['import']);
    const session = await client.openSession({ id: broken });
    await session.keepRecords(records.map((record) => ({ ...record, owner: { session: sessionId(broken) } })));
    await session.reportMessage({ role: 'user', text: 'Where is the port set?' });
    const said = Array.from({ length: 13 }, (_, i) => `Said since: ${i}`);
    for (const text of said) await session.reportMessage({ role: 'user', text });
    await client.closeSession(session);
    const files = await given(broken);
    const [first, ...others] = (files['messages.jsonl'] ?? '').trim().split('\n').slice(-14);
    expect(first).toContain('Where is the port set?');
    expect(others.map((line) => (JSON.parse(line) as { readonly content: string }).content)).toEqual(said);
    expect(files['context/summary.md']).toBe('');
    await expect(bring(folder, broken)).rejects.toMatchObject({ code: 'conflict' });
    // Others write to the database meanwhile: its newest transaction need not be the same.
    const still = ({ 'meta.json': meta, ...rest }: Readonly<Record<string, string>>) => [
      rest,
      meta?.replace(/"tx_id": \d+/, ''),
    ];
    expect(still(await given(broken))).toEqual(still(files));
  });

  test('is read from the events of an earlier version, whose interrupted import is finished', async () => {
    const [whole, old] = [fresh(), fresh()];
    const folder = await write(FOREIGN);
    await bring(folder, whole);
    const session = await client.openSession({ id: old });
    await session.keepRecords(
      (await recorded(whole, ['import'])).map(({ body: { whole: subject, part, parts, text }, ...record }) => ({
        ...record,
        kind: 'event',
        owner: { session: sessionId(old) },
        body: { type: 'cortexfs.import', subject, data: { part, parts, text } },
      })),
    );
    await client.closeSession(session);
    expect(await bring(folder, old)).toMatchObject({ outcome: 'extended', messages: 5, calls: 7 });
    expect(await recorded(old, ['import'])).toEqual([]);
    expect(await given(old)).toEqual(FOREIGN);
    expect(await bring(folder, old)).toMatchObject({ outcome: 'unchanged' });
  });

  test('shows at a past moment nothing of the later part of its import', async () => {
    const name = fresh();
    await bring(await write(FOREIGN), name);
    const past = await given(name, 'turn:1');
    expect(FOREIGN['messages.jsonl']?.startsWith(past['messages.jsonl'] ?? 'missing')).toBe(true);
    expect(past['messages.jsonl']?.split('\n')).toHaveLength(5 + 1);
    expect(past['context/summary.md']).toBe('');
    expect(past['context/decisions.jsonl']).toBe('');
    expect(past['context/child/rev-1/result.md']).toBe(undefined);
    expect(await given(name)).toEqual(FOREIGN);
  });

  test('returns an output beyond the size of one piece too', async () => {
    const session = fresh();
    const large = FOREIGN['messages.jsonl']?.replace('port = 8080', 'x'.repeat(1_100_000)) ?? '';
    const files = { ...FOREIGN, 'messages.jsonl': large };
    const folder = await write(files);
    await bring(folder, session);
    expect((await given(session))['messages.jsonl'] === large).toBe(true);
    expect(await bring(folder, session)).toMatchObject({ outcome: 'unchanged' });
  });

  test('is refused with new messages and fewer events, or the reverse', async () => {
    const session = fresh();
    await bring(await write(FOREIGN), session);
    const more = (path: string): string => `${FOREIGN[path]}${FOREIGN[path]?.split('\n').at(-2)}\n`;
    const fewer = (path: string): string => FOREIGN[path]?.replace(/[^\n]*\n$/, '') ?? '';
    for (const [grown, cut, line] of [
      ['messages.jsonl', 'events.jsonl', 9],
      ['events.jsonl', 'messages.jsonl', 9],
    ] as const) {
      const folder = await write({ ...FOREIGN, [grown]: more(grown), [cut]: fewer(cut) });
      await expect(bring(folder, session)).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining(
          `${cut}, line ${line}: the session has 1 more lines there, and ${grown} has new ones`,
        ),
      });
    }
  });

  test('keeps an answered call despite a pending call of the same id', async () => {
    const session = fresh();
    const lines = [
      { role: 'user', content: 'Look' },
      { role: 'tool', content: [{ type: 'tool_result', tool_call_id: 'c1', content: 'seen' }] },
      { role: 'assistant', content: '', tool_calls: [{ id: 'c1', name: 'cat', arguments: { path: 'a' } }] },
    ];
    const folder = await write({ 'messages.jsonl': lines.map((line) => `${JSON.stringify(line)}\n`).join('') });
    await bring(folder, session);
    expect(await bring(folder, session)).toMatchObject({ outcome: 'unchanged' });
    const more = await client.openSession({ id: session });
    await more.reportMessage({ role: 'user', text: 'On' });
    await client.closeSession(more);
    const [again, copy] = [fresh(), await write(await given(session))];
    await bring(copy, again);
    const asked = async (one: string) =>
      (await projected(one)).entries.flatMap((entry) =>
        entry.kind === 'assistant' ? entry.calls.map(({ argsText }) => argsText) : [],
      );
    expect(await asked(session)).toEqual(['{}', '{"path":"a"}']);
    expect(await asked(again)).toEqual(await asked(session));
  });

  test('hides its redacted parts in another database too', async () => {
    const [name, copy] = [fresh(), fresh()];
    const session = await client.openSession({ id: name });
    await session.reportMessage({ role: 'user', text: 'the word is hunter2' });
    await client.closeSession(session);
    const rule = { type: REDACTION, subject: 'm1', data: { redaction_state: 'masked', exact: ['hunter2'] } };
    const store = await client.delivered();
    await store.putRecords([
      { kind: 'event', owner: { session: sessionId(name) }, turn: 1, seq: 1, at: 5, basis: null, body: rule },
    ]);
    const folder = await write(await given(name));
    await bring(folder, copy);
    const events = await recorded(copy, ['event']);
    expect(events.map(({ body }) => body)).toEqual([rule]);
    expect(await bring(folder, copy)).toMatchObject({ outcome: 'unchanged' });
  });

  test.each<readonly [string, string, (folder: string) => Promise<unknown>]>([
    [
      'a cut last line',
      'invalid-file',
      (folder) => appendFile(join(folder, 'events.jsonl'), '{"type":"done","run":"r2"'),
    ],
    ['a malformed line', 'invalid-file', (folder) => appendFile(join(folder, 'context/facts.jsonl'), '{"id":"f2"}\n')],
    ['a linked file', 'symbolic-link', (folder) => symlink('/etc/hostname', join(folder, 'AGENTS.md'))],
    ['a file over its limit', 'too-large', (folder) => truncate(join(folder, 'context/todo.md'), 16_777_217)],
    ['an unknown version', 'invalid-file', (folder) => writeFile(join(folder, PALIMPSEST_FILE), '{"format":9}\n')],
    ['a foreign session', 'foreign-session', (folder) => writeFiles(folder, { 'session/s2/messages.jsonl': '' })],
    [
      'more calls without a result than can wait',
      'too-large',
      (folder) =>
        writeFile(
          join(folder, 'messages.jsonl'),
          Array.from(
            { length: 10_001 },
            (_, n) => `{"role":"assistant","content":"","tool_calls":[{"id":"c${n}","name":"ls"}]}\n`,
          ).join(''),
        ),
    ],
  ])('is refused as a whole with %s', async (_what, code, harm) => {
    const [session, folder] = [fresh(), await write(FOREIGN)];
    await harm(folder);
    await expect(bring(folder, session)).rejects.toMatchObject({ code });
    expect(await (await client.store.latest()).existing([sessionObjectId(sessionId(session))])).toEqual([]);
    expect(await recorded(session, RECORD_KINDS)).toEqual([]);
    await rm(folder, { recursive: true });
  });

  test('reports plan, result and failure on the command line', async () => {
    const [session, folder] = [fresh(), await write(FOREIGN)];
    const ask = async (...args: string[]) => {
      const { code, stdout, stderr } = await askHere(['import', ...args, '--json', '--data', suiteData()]);
      expect(stderr).toBe('');
      return { code, ...(JSON.parse(stdout) as object) };
    };
    expect(await ask(folder, '--session', session, '--plan')).toMatchObject({
      code: 0,
      plan: true,
      outcome: 'created',
      steps: 12,
    });
    expect(await ask(folder, '--session', session)).toMatchObject({
      code: 0,
      session,
      outcome: 'created',
      steps: 12,
      records: 6,
    });
    expect(await ask(folder, '--session', session)).toMatchObject({ code: 0, outcome: 'unchanged' });
    const others = fresh();
    await bring(folder, others);
    await writeFiles(folder, { 'context/summary.md': 'Later.\n' });
    expect(await ask(folder, '--session', others)).toMatchObject({ code: 1, error: { code: 'other-roots' } });
    const collected = await askHere(['gc', folder, '--json']);
    expect(JSON.parse(collected.stdout)).toMatchObject({
      applied: false,
      collected: [],
      kept: [{ path: 'context/swap/chunk/sha256-abc', reason: 'it cannot be rebuilt from the raw files' }],
    });
    await writeFiles(folder, { 'messages.jsonl': '{"role":"user","content":"else"}\n' });
    expect(await ask(folder, '--session', session)).toMatchObject({ code: 1, error: { code: 'conflict' } });
    expect(await ask(root, '--plan')).toMatchObject({ code: 64, error: { code: 'usage' } });
    expect(await ask(root, '--format', 'cortexfs')).toMatchObject({ code: 1, error: { code: 'no-session' } });
  });
});
