import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, realpath, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import { HarnessClient } from '../../../src/harness/harness-client.js';
import type { HarnessSession } from '../../../src/harness/harness-session.js';
import type { ReportedMessage, ToolCallReport } from '../../../src/harness/message-schema.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { filesystemId } from '../../../src/objects/ids.js';
import { sessionLog } from '../../../src/review/ask/session-log.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { openClient } from '../../support/context.js';

/** Ids of this run: other tests on the suite's node have calls too. */
const run = randomUUID().slice(0, 8);
const [R1, T1, V1, C1, C2, C9] = ['r1', 't1', 'v1', 'call_1', 'call_2', 'c9'].map((id) => `${id}-${run}`) as [
  string,
  string,
  string,
  string,
  string,
  string,
];

let root: string;
let harness: HarnessClient;
let session: HarnessSession;
const file = (name: string) => join(root, name);

async function open(options: Partial<ContextClientOptions> = {}, mineShell = false): Promise<void> {
  harness = new HarnessClient(await openClient(root, options), { mineShell, strict: options.strict ?? false });
  session = await harness.openSession();
}

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-harness-')));
  await open();
});

afterEach(async () => {
  await harness.close();
  await rm(root, { recursive: true, force: true });
});

/** Reports a call and waits for the database. */
async function report(call: ToolCallReport) {
  const reported = await session.reportToolCall(call);
  await reported.applied;
  return reported;
}

/** The files of the folder as the session knows them: path, state, and whether active. */
const known = () =>
  session.session
    .pool()
    .flatMap(({ metadata, active }) =>
      metadata.type === 'file' ? [[metadata.displayPath.replace(`${root}/`, ''), metadata.state, active] as const] : [],
    );

const asks = (id: string, name: string, args: Record<string, unknown>): ReportedMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
});
const answers = (id: string, content: string): ReportedMessage => ({ role: 'tool', tool_call_id: id, content });

describe('reported calls obey the rules of wrapped ones [§5.1, §5.6]', () => {
  test('index and activate the source bytes of a whole read, under any tool name and line numbering', async () => {
    await writeFile(file('a.ts'), 'one\ntwo\n');
    await report({ id: R1, name: 'Read', args: { file_path: file('a.ts') }, content: '     1\tone\n     2\ttwo' });
    expect(known()).toEqual([['a.ts', 'indexed', true]]);
    const [id] = session.session.state.sets.index;
    expect((await session.session.load(id as never))?.version.content).toBe('one\ntwo\n');
    expect(session.session.state.sets.active).toContain(R1);
  });

  test('index a partly read file whole without activating it (decisions C1, D8)', async () => {
    await writeFile(file('a.ts'), 'one\ntwo\nthree\n');
    await report({ name: 'view', args: { path: 'a.ts', view_range: [2, 2] }, content: 'two' });
    expect(known()).toEqual([['a.ts', 'indexed', false]]);
    const [id] = session.session.state.sets.index;
    expect((await session.session.load(id as never))?.version.content).toBe('one\ntwo\nthree\n');
  });

  test('discover existing regular files of listings, relative to their folder, without ignored ones (C7)', async () => {
    await mkdir(file('src/deep'), { recursive: true });
    await mkdir(file('.git'));
    await writeFile(file('.gitignore'), 'skip.log\n');
    for (const name of ['src/a.ts', 'src/deep/b.ts', 'skip.log', '.git/config', 'c.ts'])
      await writeFile(file(name), 'x');
    await symlink(file('c.ts'), file('link.ts'));
    await report({ name: 'LS', args: { path: 'src' }, content: 'a.ts\ndeep/\nmissing.ts' });
    expect(known()).toEqual([['src/a.ts', 'stub', false]]);
    await report({
      name: 'Glob',
      args: { pattern: '**' },
      content: [file('c.ts'), file('skip.log'), file('.git/config'), file('link.ts'), '/etc/passwd'].join('\n'),
    });
    await report({ name: 'grep_search', args: { pattern: 'x' }, content: 'src/deep/b.ts:1: x' });
    expect(known()).toEqual([
      ['src/a.ts', 'stub', false],
      ['c.ts', 'stub', false],
      ['src/deep/b.ts', 'stub', false],
    ]);
  });

  test('treat viewing a folder as a listing', async () => {
    await mkdir(file('sub'));
    await writeFile(file('sub/x.ts'), '');
    await report({
      name: 'str_replace_based_edit_tool',
      args: { command: 'view', path: 'sub' },
      content: "Here're the files:\nsub\nsub/x.ts",
    });
    expect(known()).toEqual([['sub/x.ts', 'stub', false]]);
  });

  test('start a relative listing in the working directory of its call', async () => {
    await mkdir(file('sub'));
    await writeFile(file('sub/x.ts'), '');
    await report({ name: 'ls', args: {}, cwd: file('sub'), content: 'x.ts' });
    expect(known()).toEqual([['sub/x.ts', 'stub', false]]);
  });

  test('report a listing over the file cap', async () => {
    await mkdir(file('many'));
    const names = Array.from({ length: 2_100 }, (_, i) => `f${i}.txt`);
    await Promise.all(names.map((name) => writeFile(file(`many/${name}`), '')));
    const reported = await report({ name: 'ls', args: { path: 'many' }, content: names.join('\n') });
    expect(reported.files).toBe(2_000);
    expect(reported.notes.join()).toMatch(/only the first 2000 files/);
  });

  test('index the disk after writes and edits; a deleted file is known to be gone', async () => {
    await writeFile(file('a.ts'), 'before');
    await report({ name: 'Write', args: { file_path: 'a.ts', content: 'not this' }, content: 'ok' });
    const [id] = session.session.state.sets.index;
    expect((await session.session.load(id as never))?.version.content).toBe('before');
    await unlink(file('a.ts'));
    await report({
      name: 'apply_patch',
      args: { input: '*** Begin Patch\n*** Delete File: a.ts\n*** End Patch' },
      content: 'Done',
    });
    expect(known()).toEqual([['a.ts', 'deleted', false]]);
  });

  test('search shell output only on request (decision C8)', async () => {
    await writeFile(file('a.ts'), 'x');
    await report({ name: 'Bash', args: { command: 'ls' }, content: 'a.ts\n' });
    expect(known()).toEqual([]);
    await harness.close();
    await open({}, true);
    await report({ name: 'Bash', args: { command: 'ls' }, content: "a.ts 'b.ts'\n" });
    expect(known()).toEqual([['a.ts', 'stub', false]]);
  });

  test('know the tools of every harness: editors with commands read, any shell is searched on request', async () => {
    await writeFile(file('a.ts'), 'x\n');
    await report({ name: 'execute_bash', args: { command: 'cat a.ts' }, content: 'x\n' });
    await report({ name: 'shell_command', args: { command: 'ls' }, content: 'a.ts\n' });
    expect(known()).toEqual([]);
    await report({ name: 'file_editor', args: { command: 'view', path: 'a.ts' }, content: '     1\tx\n' });
    expect(known()).toEqual([['a.ts', 'indexed', true]]);
    await writeFile(file('b.ts'), 'y');
    await report({ name: 'search_dir', args: { search_term: 'y', dir: '.' }, content: 'b.ts:1:y\n' });
    expect(known()).toEqual([
      ['a.ts', 'indexed', true],
      ['b.ts', 'stub', false],
    ]);
  });

  test('keep a failed call as failed without touching a file; images become one line (decision B4)', async () => {
    await writeFile(file('a.ts'), 'x');
    const failed = await report({ name: 'read', args: { path: 'a.ts' }, content: 'EACCES', status: 'fail' });
    const shot = await report({
      name: 'screenshot',
      args: {},
      content: [{ type: 'image', mimeType: 'image/png', data: 'AAAA' }],
    });
    expect(known()).toEqual([]);
    expect((await session.session.load(failed.callId))?.version).toMatchObject({ status: 'fail', content: 'EACCES' });
    expect((await session.session.load(shot.callId))?.version.content).toBe('[image image/png 3 bytes]');
  });

  test('note a path outside the roots without failing', async () => {
    const reported = await report({ name: 'read', args: { path: '/etc/hostname' }, content: 'x' });
    expect(reported).toMatchObject({ outcome: 'recorded', files: 0 });
    expect(reported.notes.join()).toMatch(/hostname was not recorded/);
  });
});

describe('files only the container can reach', () => {
  const container = filesystemId('container-1');
  beforeEach(async () => {
    await harness.close();
    await open({ agentFilesystemId: container, mounts: [{ agentPrefix: '/workspace', canonicalPrefix: root }] });
  });

  test('are indexed under the container’s filesystem if the text is complete, and else only mentioned', async () => {
    await report({
      name: 'read',
      args: { path: '/opt/tool/config.json' },
      content: '{"a":1}',
      files: [
        { path: '/opt/tool/config.json', content: '{"a":1}', complete: true },
        { path: '/opt/tool/big.log', content: 'the beginning' },
      ],
    });
    const pool = session.session
      .pool()
      .flatMap(({ metadata, active }) => (metadata.type === 'file' ? [{ ...metadata, active }] : []));
    expect(pool).toMatchObject([
      { displayPath: '/opt/tool/config.json', state: 'indexed', charCount: 7, active: true },
      { displayPath: '/opt/tool/big.log', state: 'stub', active: false },
    ]);
    expect((await session.session.load(pool[0]?.id as never))?.version.source).toMatchObject({
      filesystemId: container,
    });
  });

  test('leave a stub and a note in the step if they come without text', async () => {
    const reported = await report({ name: 'read', args: { path: '/opt/tool/only-here.json' }, content: '{"a":1}' });
    await report({ name: 'write', args: { path: '/opt/tool/made.txt', content: 'x' }, content: 'ok' });
    expect(known()).toEqual([
      ['/opt/tool/only-here.json', 'stub', false],
      ['/opt/tool/made.txt', 'stub', false],
    ]);
    const note = "only-here.json stays unread: only the agent's own filesystem has it";
    expect(reported).toMatchObject({ files: 1, notes: [note] });
    const [turn] = await sessionLog(await Timeline.open(await harness.client.delivered()), session.id);
    expect(turn?.calls.map(({ notes }) => notes)).toEqual([[note], [expect.stringMatching(/^made\.txt stays unread/)]]);
    expect(await session.verb('activate', ['/opt/tool/only-here.json'])).toMatchObject({
      ok: false,
      text: expect.stringContaining('is inaccessible'),
    });
    const known1 = await report({
      name: 'read',
      args: { path: '/opt/tool/only-here.json' },
      content: '{"a":1}',
      files: [{ path: '/opt/tool/only-here.json', content: '{"a":1}', complete: true }],
    });
    expect(known1.notes).toEqual([]);
    expect(known()[0]).toEqual(['/opt/tool/only-here.json', 'indexed', true]);
  });

  test('are read from a reachable source in preference to the passed text (decision C1)', async () => {
    await writeFile(file('a.ts'), 'the truth');
    await report({
      name: 'read',
      args: { path: '/workspace/a.ts' },
      content: 'the truth',
      files: [{ path: '/workspace/a.ts', content: 'something else', complete: true }],
    });
    const [id] = session.session.state.sets.index;
    expect((await session.session.load(id as never))?.version.content).toBe('the truth');
    expect(session.session.pool()[0]?.metadata).toMatchObject({ displayPath: '/workspace/a.ts' });
  });
});

describe('repeated histories (decisions F1, B2)', () => {
  const start: readonly ReportedMessage[] = [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: 'look at a' },
    asks(C1, 'read', { path: 'a.ts' }),
    answers(C1, 'alpha'),
    { role: 'assistant', content: 'it says alpha' },
  ];

  beforeEach(async () => {
    await writeFile(file('a.ts'), 'alpha');
    ids = [1, 2, 3].map((n) => `silent${n}-${randomUUID()}`);
    const calls = ids.flatMap((id) => [asks(id, 'bash', { command: id }), answers(id, `output of ${id}`)]);
    silent = [{ role: 'user', content: 'look around' }, ...calls, { role: 'assistant', content: '' }];
  });

  test('record only new entries of a whole list, repeatedly, and after a resume', async () => {
    const first = await session.reportMessages(start, { mode: 'history' });
    expect(first.recorded.map(({ index, kind }) => [index, kind])).toEqual([
      [1, 'message'],
      [2, 'message'],
      [3, 'call'],
      [4, 'message'],
    ]);
    const { seq } = session.session.state;
    for (let i = 0; i < 3; i++) expect((await session.reportMessages(start, { mode: 'history' })).recorded).toEqual([]);
    expect(session.session.state.seq).toBe(seq);
    const { id } = session;
    await session.close();
    session = await harness.resumeSession(id);
    const grown = [...start, { role: 'user', content: 'thanks' }];
    const again = await session.reportMessages(grown, { mode: 'history' });
    expect(again).toMatchObject({ recorded: [{ index: 5, kind: 'message' }], known: 4, notice: undefined });
    expect(
      session.session.state.turns.map(({ messages }) =>
        messages.map(({ role, text, toolcall_refs }) => [role, text, toolcall_refs]),
      ),
    ).toEqual([
      [
        ['user', 'look at a', undefined],
        ['assistant', '', [C1]],
        ['assistant', 'it says alpha', undefined],
      ],
      [['user', 'thanks', undefined]],
    ]);
  });

  let ids: readonly string[];
  /** Three messages that contain only calls, and one that was cut off. */
  let silent: readonly ReportedMessage[];
  const byItself = (id: string) => report({ id, name: 'bash', args: { command: id }, content: `output of ${id}` });
  const picked = (...places: readonly number[]) => places.flatMap((place) => silent[place] ?? []);
  const rows = () =>
    session.session.state.turns.flatMap(({ messages }) =>
      messages.map(({ role, toolcall_refs = [] }) => [role, ...toolcall_refs]),
    );
  const each = () => [['user'], ...ids.map((id) => ['assistant', id])];

  test.each(['append', 'history'] as const)(
    'keep each message without text with its own calls (%s), once, also after a resume',
    async (mode) => {
      for (const upto of mode === 'history' ? [2, 3, 5, 6, 8, 8] : [8])
        await session.reportMessages(silent.slice(0, upto), { mode });
      expect(rows()).toEqual([...each(), ['assistant']]);
      expect(await session.assemble()).toMatchObject({
        text: expect.stringContaining(
          `user: look around\n${ids.map((id) => `toolcall_ref id=${id} tool=bash status=ok`).join('\n')}\n\n`,
        ),
      });
      const { id } = session;
      await session.close();
      session = await harness.resumeSession(id);
      const again = await session.reportMessages([...silent, { role: 'user', content: 'thanks' }], { mode: 'history' });
      expect(again).toMatchObject({ recorded: [{ index: 8 }], known: 8 });
      expect(rows()).toEqual([...each(), ['assistant'], ['user']]);
    },
  );

  test('keep calls with their message if their results follow a later message', async () => {
    await session.reportMessages(picked(0, 1, 3));
    await session.reportMessages([
      ...picked(5).map((message) => ({ ...message, content: 'and one more' })),
      ...picked(4),
    ]);
    await byItself(ids[0] ?? '');
    await session.reportMessages(picked(6));
    expect(rows()).toEqual(each());
    const { id } = session;
    await session.close();
    session = await harness.resumeSession(id);
    expect(rows()).toEqual(each());
    expect(await verifySession(await harness.client.delivered(), id)).toMatchObject({ ok: true });
  });

  test('record nothing if calls were recorded without their messages, by hooks or an earlier version', async () => {
    await session.reportMessages(silent.slice(0, 1));
    for (const id of ids.slice(0, 2)) await byItself(id);
    await session.reportMessages(picked(3));
    const merged = [['user'], ['assistant', ...ids.slice(0, 2)]];
    expect(rows()).toEqual(merged);
    expect(await session.reportMessages(silent.slice(0, 5), { mode: 'history' })).toMatchObject({
      recorded: [],
      notice: undefined,
    });
    const { id } = session;
    await session.close();
    session = await harness.resumeSession(id);
    await session.reportMessages(silent.slice(1, 5));
    expect(rows()).toEqual(merged);
    await session.reportMessages(silent.slice(5, 7));
    expect(rows()).toEqual([...merged, ['assistant', ids[2]]]);
  });

  test('record a changed system prompt and nothing else', async () => {
    await session.reportMessages(start, { mode: 'history' });
    const changed = [{ role: 'system', content: 'be long' }, ...start.slice(1)];
    expect((await session.reportMessages(changed, { mode: 'history' })).recorded).toEqual([]);
    expect((await session.assemble()).format === 'text' && (await session.assemble())).toMatchObject({
      text: expect.stringMatching(/^be long\n/),
    });
  });

  test('notice a compacted history and delete nothing', async () => {
    const more = [asks(C2, 'ls', {}), answers(C2, 'a.ts'), { role: 'assistant', content: 'that is all' }];
    await session.reportMessages([...start, ...more], { mode: 'history' });
    const before = session.session.state.sets.index;
    const compacted = [
      start[0] as ReportedMessage,
      { role: 'user', content: 'summary: a says alpha' },
      ...more,
      { role: 'user', content: 'next' },
    ];
    const { recorded, notice } = await session.reportMessages(compacted, { mode: 'history' });
    expect(recorded.map(({ index }) => index)).toEqual([1, 5]);
    expect(notice).toMatchObject({ kind: 'compacted', missing: 3 });
    expect(session.session.state.sets.index).toEqual(before);
    expect((await session.reportMessages(compacted, { mode: 'history' })).recorded).toEqual([]);
  });

  test.each([
    ['', false],
    [', where another session has the id too', true],
  ])(
    'treat an id repeated after its result as a new call, and the same call reported twice as one%s',
    async (_name, taken) => {
      const C1 = `again-${randomUUID().slice(0, 8)}`;
      const start = [asks(C1, 'read', { path: 'a.ts' }), answers(C1, 'alpha')];
      if (taken) await (await harness.openSession()).reportMessages(start, { mode: 'history' });
      const twice = [...start, asks(C1, 'read', { path: 'b.ts' }), answers(C1, 'beta')];
      await session.reportMessages(twice, { mode: 'history' });
      const own = (id: string) => (taken ? id.replace(C1, `${C1}@${session.id}`) : id);
      expect(session.session.state.sets.index.filter((id) => id.startsWith(C1))).toEqual([own(C1), own(`${C1}~2`)]);
      expect((await session.reportMessages(twice, { mode: 'history' })).recorded).toEqual([]);
      const late: ToolCallReport = { id: C1, name: 'read', args: { path: 'b.ts' }, content: 'beta' };
      expect(await session.reportToolCall(late)).toMatchObject({ outcome: 'known', callId: own(`${C1}~2`) });
      expect(await session.reportToolCall({ ...late, content: 'gamma' })).toMatchObject({
        outcome: 'recorded',
        callId: own(`${C1}~3`),
      });
    },
  );

  test('take new messages with ids once; results may come in a later report', async () => {
    const message = { role: 'user', content: 'go', id: 'm1' };
    await session.reportMessages([message, asks(C9, 'ls', {})]);
    await session.reportMessages([message]);
    const { recorded } = await session.reportMessages([answers(C9, 'a.ts')]);
    expect(recorded).toEqual([{ index: 0, kind: 'call', callId: C9 }]);
    expect(session.session.state.turns).toHaveLength(1);
    await expect(session.reportMessages([answers('zz', '')])).rejects.toMatchObject({ code: 'unknown-call' });
  });
});

describe('a turn', () => {
  test('returns its context as text or in parts, proved by its record', async () => {
    await writeFile(file('a.ts'), 'alpha');
    await session.setSystemPrompt('be brief');
    const begun = await session.beginTurn({
      messages: [{ role: 'user', content: 'look' }, asks(T1, 'read', { path: 'a.ts' }), answers(T1, 'alpha')],
    });
    if (begun.format !== 'text') throw new Error('not text');
    expect(begun.report?.recorded).toHaveLength(3);
    expect(begun.text).toMatch(
      new RegExp(
        '^be brief\\n\\nid=[0-9a-f]{64} type=file .*\\n.*\\n\\nuser: look\\n' +
          'toolcall_ref id=t1-[0-9a-f]{8} tool=read status=ok\\n\\nACTIVE_CONTENT id=',
      ),
    );
    expect(begun.record).toMatchObject({
      renderer: 'text',
      session: session.id,
      turn: 1,
      step: 3,
      delivered: 'library',
    });
    const parts = await session.assemble({ format: 'messages' });
    if (parts.format !== 'messages') throw new Error('no messages');
    expect(parts.system).toBe('be brief');
    expect(parts.messages.map(({ section, role }) => [section, role])).toEqual([
      ['pool', 'user'],
      ['chat', 'user'],
      ['chat', 'assistant'],
      ['active', 'user'],
    ]);
    expect(parts.record).toMatchObject({ renderer: 'messages', turn: 1, delivered: 'library' });
  });

  test('answers activate with a line; the content is in the next context (decision D7)', async () => {
    await writeFile(file('a.ts'), 'alpha');
    await report({ name: 'ls', args: {}, content: 'a.ts' });
    const activated = await session.verb('activate', ['a.ts'], { callId: V1 });
    expect(activated).toMatchObject({ ok: true, callId: V1 });
    expect(activated.text).toMatch(/^activated id=[0-9a-f]{64} .*a\.ts chars=5\nactive now: 2 objects/);
    expect(activated.text).not.toContain('alpha');
    expect(await session.assemble()).toMatchObject({ text: expect.stringContaining('\nalpha') });
    expect(await session.verb('unpin', ['a.ts', 'nothing'])).toMatchObject({ ok: false });
  });

  test('lists, forks and resumes sessions, and does not create an unknown one on resume', async () => {
    await session.reportMessages([
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
    ]);
    const fork = await harness.forkSession(session.id, { at: 1 });
    expect(fork.session.state.turns).toMatchObject([{ messages: [{ text: 'one' }] }]);
    const listed = (await harness.listSessions()).filter(({ id }) => id === fork.id || id === session.id);
    expect(listed).toHaveLength(2);
    await expect(harness.resumeSession('never-was')).rejects.toMatchObject({ code: 'no-such-session' });
  });
});
