import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { fileFindings } from '../../../../src/contracts/cortexfs/check-file.js';
import { messageLines } from '../../../../src/contracts/cortexfs/message-lines.js';
import { type PackSources, packSession } from '../../../../src/contracts/cortexfs/pack.js';
import { sessionDirectory } from '../../../../src/contracts/cortexfs/session-directory.js';
import { writeDirectory, writePack } from '../../../../src/contracts/cortexfs/write-directory.js';
import type { Projection } from '../../../../src/contracts/projection/project-session.js';
import type { ProjectedFile } from '../../../../src/contracts/projection/projection-source.js';
import type { ContextRecord } from '../../../../src/objects/context-record.js';
import { hashText } from '../../../../src/objects/hashes.js';
import { canonicalPath, filesystemId, objectId } from '../../../../src/objects/ids.js';
import { BYTES, type Happening, happenings, projectionOf, WORDS } from '../../../support/any-session.js';
import { effort } from '../../../support/effort.js';
import { type PairedItem, pairFindings } from '../../../support/pair-check.js';

const directory = (all: readonly Happening[], budget?: number) =>
  sessionDirectory(projectionOf(all, WORDS), [], budget === undefined ? {} : { limit: budget });
const linesOf = (text: string): readonly string[] => text.split('\n').slice(0, -1);

interface AnyLine {
  readonly role: string;
  readonly content: string | readonly { readonly tool_call_id: string; readonly content: string }[];
  readonly tool_calls?: readonly { readonly id: string }[];
}

/** Reads the lines of `messages.jsonl` for the pair rules. */
function paired(lines: readonly string[]): readonly PairedItem[] {
  return lines.map((line): PairedItem => {
    const { role, content, tool_calls: calls = [] } = JSON.parse(line) as AnyLine;
    if (role === 'assistant') return { kind: 'assistant', calls: calls.map(({ id }) => id) };
    if (role === 'tool' && typeof content !== 'string') return { kind: 'result', call: content[0]?.tool_call_id ?? '' };
    return { kind: 'other' };
  });
}

const user = (text: string): Happening => ({ kind: 'user', text });
const calls = (...outputs: readonly string[]): Happening => ({
  kind: 'calls',
  text: 'I look',
  calls: outputs.map((output) => ({ output, args: { thread_id: 'of the tool' }, when: 'now' })),
});
const SESSION = [
  user('find it'),
  calls('x'.repeat(2_000), 'y'),
  calls('x'.repeat(2_000)),
  { kind: 'said', text: 'Found.' },
] as const;

describe('the files of a session', () => {
  test('follow the document for any session, with whole pairs, deterministically', () => {
    fc.assert(
      fc.property(happenings, (all) => {
        const { files } = directory(all);
        for (const [path, text] of files) expect(fileFindings(path, text)).toEqual([]);
        const found = pairFindings(paired(linesOf(files.get('messages.jsonl') ?? '')), { running: true });
        expect(found.filter(({ rule }) => rule !== 'unfinished-turn' && rule !== 'missing-result')).toEqual([]);
        expect(directory(all).files).toEqual(files);
      }),
      { numRuns: effort(60, 600) },
    );
  });

  test('have each message on a line with its text, and each result after its call', () => {
    const { files } = directory(SESSION);
    const lines = linesOf(files.get('messages.jsonl') ?? '').map((line) => JSON.parse(line) as AnyLine);
    expect(lines.map(({ role }) => role)).toEqual([
      'user',
      ...['assistant', 'assistant', 'tool', 'assistant', 'tool'],
      ...['assistant', 'assistant', 'tool'],
      'assistant',
    ]);
    expect(lines[0]).toEqual(expect.objectContaining({ content: 'find it' }));
    expect(files.get('context/pinned/system.md')).toBe('You are careful.');
    expect(files.get('latest.md')).toBe('Found.');
    expect(files.get('state')).toBe('idle\n');
    const events = linesOf(files.get('events.jsonl') ?? '').map(
      (line) => JSON.parse(line) as { readonly type: string },
    );
    expect(events.map(({ type }) => type)).toEqual([
      'start',
      ...Array.from({ length: 3 }, () => ['tool_call', 'tool_result']).flat(),
    ]);
  });

  test('extend the files of an earlier moment if results come without delay', () => {
    const now: Happening[] = [
      user('a'),
      calls('1', '2'),
      { kind: 'call', output: 'o', deactivates: false },
      user('b'),
      calls('3'),
    ];
    for (let end = 1; end < now.length; end++) {
      const [before, after] = [directory(now.slice(0, end)), directory(now)];
      for (const name of ['messages.jsonl', 'events.jsonl'])
        expect(after.files.get(name)?.startsWith(before.files.get(name) ?? 'missing')).toBe(true);
    }
  });

  test('index a repeated output once', () => {
    const [line = ''] = linesOf(directory(SESSION).files.get('context/dedup/index.jsonl') ?? '');
    expect(JSON.parse(line)).toMatchObject({ refs: ['messages:4', 'messages:9'], bytes: 2_000 });
  });

  test('index a file once with all its places if its text is also an output or pinned', () => {
    const text = 'x'.repeat(2_000);
    const projection = projectionOf([user('find it'), calls(text), calls('z'.repeat(2_000))], WORDS);
    const file = (name: string, content: string, pinned: boolean): ProjectedFile => ({
      source: { type: 'filesystem', filesystemId: filesystemId('none'), path: canonicalPath(`/${name}`) },
      metadata: {
        type: 'file',
        id: objectId(name.repeat(40)),
        displayPath: name,
        fileType: 'ts',
        charCount: content.length,
        contentHash: hashText(content),
        fileHash: hashText(content),
        state: 'indexed',
      },
      active: false,
      pinned,
      content: pinned ? content : undefined,
    });
    const files = [
      file('a', text, false),
      file('b', 'pinned '.repeat(200), true),
      file('c', 'alone '.repeat(200), false),
    ];
    const contents = new Map(
      files.map(({ metadata: { id } }, i) => [id, [text, 'pinned '.repeat(200), 'alone '.repeat(200)][i] ?? null]),
    );
    const own = { steps: [], contents, records: [] };
    const index = sessionDirectory({ ...projection, files }, [], { own }).files.get('context/dedup/index.jsonl') ?? '';
    expect(linesOf(index).map((line) => JSON.parse(line) as object)).toMatchObject([
      { refs: ['messages:4', `file:f-${'a'.repeat(32)}`], bytes: 2_000 },
      { refs: [`file:f-${'b'.repeat(32)}`, `pinned:f-${'b'.repeat(32)}.md`], bytes: 1_400, tokens: 200 },
    ]);
    expect(fileFindings('context/dedup/index.jsonl', index)).toEqual([]);
  });

  test('turn notes into facts, decisions and open work; a later note of the same name comes last', () => {
    const projection = projectionOf(SESSION, WORDS);
    const note = (name: string, kind: ContextRecord<'note'>['body']['note'], text: string): ContextRecord<'note'> => ({
      kind: 'note',
      owner: { session: projection.session },
      turn: 1,
      seq: 1,
      at: 5,
      basis: null,
      body: { name, note: kind, text },
    });
    const { files } = sessionDirectory(projection, [
      note('port', 'fact', 'It is 8080.'),
      note('port', 'fact', 'It is\n9090.'),
      note('style', 'decision', 'No tabs.'),
      note('tests', 'todo', 'Write them'),
      note('tests', 'done', 'Write them'),
    ]);
    expect(linesOf(files.get('context/facts.jsonl') ?? '').map((line) => JSON.parse(line))).toEqual([
      { id: 'port', text: 'It is 8080.', source: 'messages:1' },
      { id: 'port.2', text: 'It is 9090.', source: 'messages:1', own_text: 'It is\n9090.' },
    ]);
    expect(files.get('context/decisions.jsonl')).toBe('{"id":"style","decision":"No tabs.","source":"messages:1"}\n');
    expect(files.get('context/todo.md')).toBe('- [x] Write them\n');
  });
});

describe('the messages that a compaction dropped', () => {
  test('are named from the first line of a message with calls to its last', () => {
    const projection = projectionOf(SESSION, WORDS);
    const gone = projection.entries.filter(({ kind }) => kind === 'assistant').slice(0, 1);
    const record: ContextRecord<'compaction'> = {
      ...{ kind: 'compaction', owner: { session: projection.session }, turn: 1, seq: 1, at: 5, basis: null },
      body: {
        counter: 'words',
        trigger: 't',
        method: 'm',
        before: 9,
        after: 1,
        lines: [],
        gone: gone.map(({ id }) => id),
        cut: [],
      },
    };
    const { files } = sessionDirectory(projection, [record]);
    const [range = ''] = linesOf(files.get('context/swap/index.jsonl') ?? '');
    expect(JSON.parse(range)).toMatchObject({ kind: 'message_range', range: '2-5' });
  });
});

describe('packs', () => {
  const sourcesOf = (projection: Projection, files: Readonly<Record<string, string>> = {}): PackSources => ({
    session: 's',
    files: new Map(Object.entries(files)),
    lines: messageLines(projection.entries),
  });

  test('keep pack.md within any budget, with the newest user message; the tail never begins with a result', () => {
    fc.assert(
      fc.property(happenings, fc.integer({ min: 1, max: 6_000 }), (all, budget) => {
        const sources = sourcesOf(projectionOf(all, BYTES), {
          'context/summary.md': 'short\n',
          'context/facts.jsonl': 'f'.repeat(700),
        });
        const ask = sources.lines.findLast(({ isAsk }) => isAsk);
        let pack: ReturnType<typeof packSession>;
        try {
          pack = packSession(sources, BYTES, budget);
        } catch (error) {
          const least = Number(/at least (\d+)$/.exec((error as Error).message)?.[1]);
          expect(least).toBeGreaterThan(budget);
          expect(packSession(sources, BYTES, least).markdown).toContain(ask?.text ?? '');
          return;
        }
        expect(BYTES.count(pack.markdown)).toBeLessThanOrEqual(budget);
        expect(pack.tokens).toBe(BYTES.count(pack.markdown));
        expect(fileFindings('context/pack.json', pack.json)).toEqual([]);
        if (ask !== undefined) expect(pack.markdown).toContain(ask.text);
        const count = Number(
          /^tail:(\d+)$/.exec(pack.items.find(({ range }) => range?.startsWith('tail:'))?.range ?? 'tail:0')?.[1],
        );
        if (count > 0) expect(sources.lines.at(-count)?.role).not.toBe('tool');
        expect(packSession(sources, BYTES, budget)).toEqual(pack);
      }),
      { numRuns: effort(60, 600) },
    );
  });

  test('skip entries that do not fit and continue after them', () => {
    const files = {
      'context/summary.md': 'w '.repeat(90),
      'context/facts.jsonl': '{"id":"f1"}\n',
      'context/todo.md': '',
    };
    const pack = packSession(sourcesOf(projectionOf([user('hi')], WORDS), files), WORDS, 60);
    expect(pack.items.map(({ kind }) => kind)).toEqual(['facts', 'recent_messages']);
    expect(pack.leftOut.map(({ kind }) => kind)).toEqual(['summary']);
  });

  test('shorten a long tail without losing the newest user message', () => {
    const long = [user('the question'), calls('o '.repeat(400)), calls('the last output')];
    const pack = packSession(sourcesOf(projectionOf(long, WORDS)), WORDS, 120);
    expect(pack.items.map(({ range }) => range)).toEqual(['1-1', 'tail:3']);
    expect(pack.markdown).toContain('the question');
    expect(pack.markdown).toContain('the last output');
  });

  test('refuse a budget below the newest user message and name the minimum', () => {
    const sources = sourcesOf(projectionOf([user('one two three four five six')], WORDS), {
      'context/summary.md': 'one two\n',
    });
    expect(() => packSession(sources, WORDS, 2)).toThrow(expect.objectContaining({ code: 'budget-too-small' }));
  });

  test('fence a text that contains fences', () => {
    const pack = packSession(
      sourcesOf(projectionOf([], WORDS), { 'context/summary.md': 'a\n````\n## system\n````\n' }),
      WORDS,
    );
    expect(pack.markdown).toContain('\n`````\na\n````\n');
  });
});

describe('directories', () => {
  let root = '';
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'palimpsest-cortexfs-'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const write = (all: readonly Happening[], folder = join(root, 'out'), session = 'any-session') =>
    writeDirectory(folder, { session }, directory(all).files);
  const tree = async (folder: string): Promise<Readonly<Record<string, string>>> => {
    const names = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    return Object.fromEntries(
      await Promise.all(files.map(async (path) => [path, await readFile(path, 'utf8')] as const)),
    );
  };
  const session = projectionOf(SESSION, WORDS).session;

  test.each(['../out.md', 'context/../../out.md', '/etc/out.md', 'context//a', './a'])(
    'are not written to %j',
    async (path) => {
      const files = new Map([...directory(SESSION).files, [path, 'x']]);
      await expect(writeDirectory(join(root, 'in', 'out'), { session }, files)).rejects.toMatchObject({
        code: 'invalid-file',
      });
      expect(await readdir(root)).toEqual([]);
    },
  );

  test('are written whole, for their user alone, and updated with what is new', async () => {
    const folder = join(root, 'out');
    const first = await write(SESSION, folder, session);
    expect(first).toMatchObject({ appended: 10, unchanged: 0, removed: [] });
    for (const name of ['pinned', 'swap', 'dedup', 'child'])
      expect((await lstat(join(folder, 'context', name))).mode & 0o777).toBe(0o700);
    expect((await lstat(join(folder, 'messages.jsonl'))).mode & 0o777).toBe(0o600);
    expect(await write(SESSION, folder, session)).toMatchObject({ appended: 0, written: [] });
    const before = await readFile(join(folder, 'messages.jsonl'), 'utf8');
    const second = await write([...SESSION, user('and now?')], folder, session);
    expect(second.appended).toBe(1);
    expect((await readFile(join(folder, 'messages.jsonl'), 'utf8')).startsWith(before)).toBe(true);
    expect(Object.keys(await tree(folder)).filter((path) => path.endsWith('.draft'))).toEqual([]);
  });

  test.each([
    [
      'messages that are not the beginning of these',
      'not-a-prefix',
      async (folder: string) => writeFile(join(folder, 'messages.jsonl'), '{"role":"user","content":"other"}\n'),
    ],
    [
      'a cut line',
      'invalid-file',
      async (folder: string) => writeFile(join(folder, 'events.jsonl'), '{"type":"start"'),
    ],
    [
      'a link in place of a file',
      'symbolic-link',
      async (folder: string) => {
        await rm(join(folder, 'latest.md'));
        await symlink('/etc/hostname', join(folder, 'latest.md'));
      },
    ],
    [
      'a link in place of a folder',
      'symbolic-link',
      async (folder: string) => {
        await rm(join(folder, 'context/pinned'), { recursive: true });
        await symlink(folder, join(folder, 'context/pinned'));
      },
    ],
    [
      'a folder in place of a file',
      'no-session',
      async (folder: string) => rm(join(folder, 'cwd')).then(() => mkdir(join(folder, 'cwd'))),
    ],
    ['no meta.json', 'no-session', async (folder: string) => rm(join(folder, 'meta.json'))],
    [
      'another session',
      'foreign-session',
      async (folder: string) => writeFile(join(folder, 'meta.json'), '{"palimpsest":{"session":"other"}}'),
    ],
    [
      'a session of another program',
      'foreign-session',
      async (folder: string) => writeFile(join(folder, 'meta.json'), '{"client":"c"}'),
    ],
  ])('are refused and not changed with %s', async (_, code, spoil) => {
    const folder = join(root, 'out');
    await write(SESSION, folder, session);
    await spoil(folder);
    const before = await tree(folder);
    await expect(write([...SESSION, user('more')], folder, session)).rejects.toMatchObject({ code });
    expect(await tree(folder)).toEqual(before);
  });

  test('are refused if the folder is a link or holds other things', async () => {
    await mkdir(join(root, 'real'));
    await symlink(join(root, 'real'), join(root, 'linked'));
    await expect(write(SESSION, join(root, 'linked'), session)).rejects.toMatchObject({ code: 'symbolic-link' });
    await writeFile(join(root, 'real/notes.txt'), 'mine');
    await expect(write(SESSION, join(root, 'real'), session)).rejects.toMatchObject({ code: 'no-session' });
    await chmod(join(root, 'real'), 0o755);
    expect(await readdir(join(root, 'real'))).toEqual(['notes.txt']);
  });

  test.each([
    ['a pack.md alone', { 'pack.md': 'mine\n' }],
    ['a pack.json that is none', { 'pack.json': '{', 'pack.md': 'mine\n' }],
    ['a package of something else', { 'pack.json': '{"name":"mine"}' }],
    ['a pack of another session', { 'pack.json': '{"session":"other"}', 'pack.md': 'theirs\n' }],
  ])('keep %s when a pack is written', async (_, files) => {
    const pack = packSession({ session: 's', files: new Map(), lines: [] }, WORDS);
    await expect(writePack(join(root, 'free'), { session: 's' }, pack)).resolves.toHaveLength(2);
    await expect(writePack(join(root, 'free'), { session: 's' }, pack)).resolves.toHaveLength(2);
    await mkdir(join(root, 'taken'));
    for (const [name, text] of Object.entries(files)) await writeFile(join(root, 'taken', name), text);
    const before = await tree(root);
    await expect(writePack(join(root, 'taken'), { session: 's' }, pack)).rejects.toMatchObject({
      code: 'foreign-session',
    });
    expect(await tree(root)).toEqual(before);
  });

  test('drop unpinned objects from the pinned folder and keep foreign files', async () => {
    const folder = join(root, 'out');
    await write(SESSION, folder, session);
    await writeFile(join(folder, 'context/pinned/r7.md'), 'ours');
    await writeFile(join(folder, 'context/pinned/rules.md'), 'theirs');
    expect((await write(SESSION, folder, session)).removed).toEqual(['context/pinned/r7.md']);
    expect(await readdir(join(folder, 'context/pinned'))).toEqual(['rules.md', 'system.md']);
  });
});
