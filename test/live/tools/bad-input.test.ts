import { chmod, mkdir, open, readFile, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { effort } from '../../support/effort.js';
import { type Agent, type Answer, stdioAgent, temporaryRoot } from '../../support/mcp-clients.js';

const SESSION = `bad-input-${process.pid}`;
let root: string;
let remove: () => Promise<void>;
let agent: Agent;

/** Checks every failed answer: short, marked, and recorded as a call. */
function expectFailure(answer: Answer, pattern: RegExp): void {
  expect(answer.text).toMatch(pattern);
  expect(answer.isError).toBe(true);
  expect(answer.text.startsWith('Error: ')).toBe(true);
  expect(Buffer.byteLength(answer.text)).toBeLessThan(2_048);
  expect(answer.meta).toMatchObject({ session: SESSION, call: expect.stringContaining(SESSION) });
}

beforeAll(async () => {
  ({ root, remove } = await temporaryRoot());
  await mkdir(join(root, 'src'));
  await writeFile(join(root, 'src', 'poem.txt'), 'roses\nviolets\nroses\n');
  await writeFile(join(root, 'crlf.txt'), 'one\r\ntwo\r\nthree\r\n');
  await writeFile(join(root, 'picture.png'), Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 0xff]));
  await writeFile(join(root, 'latin1.txt'), Buffer.from([0x63, 0x61, 0x66, 0xe9]));
  await writeFile(join(root, 'empty.txt'), '');
  await writeFile(join(root, 'secret.txt'), 'for nobody');
  await chmod(join(root, 'secret.txt'), 0);
  await symlink('/etc/passwd', join(root, 'link'));
  await symlink('nothing-there', join(root, 'dangling'));
  await writeFile(join(root, 'café.txt'.normalize('NFD')), 'coffee\n');
  await writeFile(join(root, 'huge.log'), '');
  await truncate(join(root, 'huge.log'), 64 * 1024 * 1024 + 1);
  await writeFile(Buffer.concat([Buffer.from(`${root}/bad-`), Buffer.from([0xff, 0xfe])]), 'x');
  agent = await stdioAgent(root, ['--session', SESSION], {}, { withoutOverride: true });
});

afterAll(async () => {
  await agent.close();
  await remove();
});

describe('an agent’s mistake is answered by an error with a remedy', () => {
  test.each([
    ['an unknown id', 'read', { id: 'f'.repeat(64) }, /no object of this session is called "f+"\.\n.*Use context/s],
    [
      'an unknown id to activate',
      'activate',
      { ids: ['nothing-of-the-kind'] },
      /activate: "nothing-of-the-kind" was not found: it is not known to this session/,
    ],
    ['an infrastructure id', 'read', { id: `session:${SESSION}` }, /is part of the session itself/],
    ...(['activate', 'deactivate', 'pin', 'unpin'] as const).flatMap((verb) => [
      [`an unknown id to ${verb}`, verb, { ids: ['f'.repeat(64)] }, /"f{64}" was not found/] as const,
      ...['chat', 'session', 'system_prompt'].map(
        (type) =>
          [
            `an infrastructure id to ${verb}`,
            verb,
            { ids: [`${type}:${SESSION}`] },
            /is infrastructure, a part of the session itself/,
          ] as const,
      ),
    ]),
    [
      'a path outside the roots',
      'read',
      { path: '/etc/passwd' },
      /"\/etc\/passwd" is outside the allowed folders.*\nAllowed: \//s,
    ],
    ['a path that climbs out', 'read', { path: '../../../../etc/passwd' }, /outside the allowed folders/],
    ['a link that leads out', 'read', { path: 'link' }, /^Error: "link" is outside the allowed folders/],
    [
      'a write outside the roots',
      'write',
      { path: '/etc/palimpsest-test', content: 'x' },
      /outside the allowed folders/,
    ],
    ['a directory', 'read', { path: 'src' }, /src is a folder, not a file\.\nList it instead: ls path=src/],
    ['a directory to write to', 'write', { path: 'src', content: 'x' }, /"src" is a folder/],
    ['a file to list', 'ls', { path: 'crlf.txt' }, /"crlf.txt"/],
    [
      'a missing file',
      'read',
      { path: 'src/pome.txt' },
      /"src\/pome\.txt" does not exist\.\nDid you mean src\/poem\.txt\? List the folder.*ls path=src$/,
    ],
    ['a missing folder', 'ls', { path: 'scr' }, /"scr" does not exist\.\nDid you mean src\?/],
    ['a binary file', 'read', { path: 'picture.png' }, /picture\.png is not UTF-8 text \(binary, 8 bytes\)/],
    ['a file that is not UTF-8', 'read', { path: 'latin1.txt' }, /latin1\.txt is not UTF-8 text/],
    [
      'a binary file to edit',
      'edit',
      { path: 'picture.png', edits: [{ oldText: 'a', newText: 'b' }] },
      /not UTF-8 text/,
    ],
    ['a file without permission', 'read', { path: 'secret.txt' }, /secret\.txt.*permission denied/],
    [
      'a file without permission to write',
      'write',
      { path: 'secret.txt', content: 'x' },
      /"secret\.txt" may not be accessed: permission denied/,
    ],
    ['a NUL in a path', 'read', { path: 'a\u0000b' }, /"a\\u0000b" holds a NUL character/],
    ['a lone surrogate', 'write', { path: 'x.txt', content: 'a\ud800' }, /a lone surrogate/],
    ['an empty path', 'read', { path: '' }, /read: "path": expected string to have >=1 characters/],
    ['no path at all', 'read', {}, /read needs a path or an id/],
    [
      'a missing argument',
      'write',
      { path: 'x.txt' },
      /write: "content": expected string, received undefined \(The whole new text\)/,
    ],
    ['an invalid glob', 'find', { pattern: '[a' }, /the glob "\[a" is invalid.*\nCorrect the glob, for example/],
    [
      'an invalid glob to search by',
      'grep',
      { pattern: 'a', glob: '{a' },
      /the glob "\{a" is invalid.*\nCorrect the glob, for example/,
    ],
    [
      'a binary file to search',
      'grep',
      { pattern: 'x', path: 'picture.png' },
      /picture\.png is not searched: it is binary \(8 bytes/,
    ],
    [
      'a file to search that is too large',
      'grep',
      { pattern: 'x', path: 'huge.log' },
      /huge\.log is left out: it has 67108865 bytes, and files over 64 MiB are not searched\./,
    ],
    [
      'a name in another Unicode form',
      'read',
      { path: 'café.txt'.normalize('NFC') },
      /Did you mean "cafe\\u0301\.txt" \(the same letters in another Unicode form\)\?/,
    ],
    ['a link to nothing', 'read', { path: 'dangling' }, /"dangling" .* does not exist\.\nList the folder/],
    ['an invalid regular expression', 'grep', { pattern: '(' }, /the pattern "\(" cannot be searched for/],
    [
      'an offset past the end',
      'read',
      { path: 'src/poem.txt', offset: 99 },
      /offset 99 is past the end of src\/poem\.txt, which has 3 lines\.\nUse an offset from 1 to 3/,
    ],
    [
      'an edit without a match',
      'edit',
      { path: 'src/poem.txt', edits: [{ oldText: 'tulips', newText: 'x' }] },
      /the text was not found in src\/poem\.txt\. Nothing was changed/,
    ],
    [
      'an edit with several matches',
      'edit',
      { path: 'src/poem.txt', edits: [{ oldText: 'roses', newText: 'x' }] },
      /occurs 2 times in src\/poem\.txt \(lines 1, 3\)/,
    ],
    [
      'an edit of a missing file',
      'edit',
      { path: 'nope.txt', edits: [{ oldText: 'a', newText: 'b' }] },
      /"nope\.txt" does not exist/,
    ],
    ['a version that never was', 'read', { path: 'src/poem.txt', version: 0 }, /has nothing stored at version 0/],
    [
      'a version to come',
      'read',
      { path: 'src/poem.txt', version: 2 ** 40 },
      /has nothing stored at version 1099511627776/,
    ],
  ] as const)('%s', async (_name, tool, args, pattern) => {
    expectFailure(await agent.call(tool, args), pattern);
  });

  test('lists the candidates of an ambiguous prefix (decision D6)', async () => {
    expectFailure(
      await agent.call('read', { id: SESSION }),
      new RegExp(`matches several objects:\\n  ${SESSION}:1 .*\\n  ${SESSION}:2 `),
    );
    expectFailure(
      await agent.call('deactivate', { ids: [SESSION] }),
      /matches several objects; give more characters:\n {2}/,
    );
  });

  test('changes nothing after all these errors', async () => {
    expect(await readFile(join(root, 'src', 'poem.txt'), 'utf8')).toBe('roses\nviolets\nroses\n');
    await expect(readFile('/etc/palimpsest-test')).rejects.toThrow(/ENOENT/);
    await expect(readFile(join(root, 'x.txt'))).rejects.toThrow(/ENOENT/);
  });

  test('returns a protocol error for an unknown tool', async () => {
    await expect(agent.client.callTool({ name: 'raed', arguments: {} })).rejects.toMatchObject({
      code: -32_602,
      message: expect.stringContaining('Unknown tool: raed'),
    });
  });

  test('reports each failed id of a call and applies the others', async () => {
    await agent.call('read', { path: 'src/poem.txt' });
    const answer = await agent.call('deactivate', { ids: ['src/poem.txt', 'nonsense', 'picture.png'] });
    expect(answer.isError).toBe(false);
    expect(answer.text).toMatch(
      new RegExp(
        '^deactivated id=[0-9a-f]{8,12} \\S+poem\\.txt chars=20\\n' +
          'failed: "nonsense" was not found.*\\nfailed: \\S+ is not active',
      ),
    );
    expectFailure(await agent.call('deactivate', { ids: ['src/poem.txt'] }), /is not active\nNothing was changed/);
    expectFailure(await agent.call('unpin', { ids: ['src/poem.txt'] }), /is not pinned/);
    expectFailure(await agent.call('activate', { ids: ['picture.png'] }), /is not text and cannot be loaded/);
    await agent.call('ls', {});
    expectFailure(
      await agent.call('activate', { ids: ['secret.txt'] }),
      /activate: \S+ is inaccessible: its source cannot be read now/,
    );
  });
});

describe('odd but valid input', () => {
  test('reads from the whole character for a column inside a surrogate pair', async () => {
    await writeFile(join(root, 'emoji.txt'), 'a😀b\n');
    expect((await agent.call('read', { path: 'emoji.txt', column: 3 })).text).toMatch(/\]\n😀b\n$/);
  });

  test('reports skipped files of a search and an empty glob', async () => {
    const { text } = await agent.call('grep', { pattern: 'three' });
    expect(text).toMatch(/\ncrlf\.txt:3: three\n.*\n\[Left out, over 64 MiB: huge\.log\. /);
    expect((await agent.call('grep', { pattern: 'three', glob: '*.txt,*.md' })).text).toMatch(
      /\nNo files below \. match \*\.txt,\*\.md\. A glob is one pattern: write alternatives as \{\*\.txt,\*\.md\}\.\n/,
    );
    expect((await agent.call('find', { pattern: 'emojis.txt' })).text).toMatch(
      /No files .*\. Did you mean \S+\/emoji\.txt\?\n/,
    );
  });

  test('reports an empty file as empty', async () => {
    const { text, isError } = await agent.call('read', { path: 'empty.txt' });
    expect({ text, isError }).toEqual({
      text: expect.stringMatching(/lines=0 chars=0\]\n\(empty file\)$/),
      isError: false,
    });
  });

  test('shows and counts a name that is not UTF-8, escaped', async () => {
    const { text } = await agent.call('ls', {});
    expect(text).toContain('bad-\\xff\\xfe');
    expect(text).toContain('[1 names are not UTF-8; such files cannot be used here.]');
  });

  test('keeps Windows line endings in an edit without them', async () => {
    const { text } = await agent.call('edit', { path: 'crlf.txt', edits: [{ oldText: 'one\ntwo', newText: '1\n2' }] });
    expect(text).toContain('Edited crlf.txt: 1 replacement, now lines 1-2.');
    expect(await readFile(join(root, 'crlf.txt'), 'utf8')).toBe('1\r\n2\r\nthree\r\n');
  });

  test('keeps and reports Windows line endings and byte order mark of a replaced file', async () => {
    const path = join(root, 'marked.txt');
    await writeFile(path, '\ufeffone\r\ntwo\r\n');
    const { text } = await agent.call('write', { path, content: 'one\n2\n' });
    expect(text).toContain('2 lines, 9 characters. The line endings and byte order mark that it had are kept.');
    expect(await readFile(path, 'utf8')).toBe('\ufeffone\r\n2\r\n');
    await writeFile(path, 'one\r\ntwo\n');
    expect((await agent.call('write', { path, content: 'a\n' })).isError).toBe(true);
    expect((await agent.call('write', { path, content: 'a\n' })).text).toMatch(/1 line, 2 characters\.$/);
    await writeFile(path, 'a\r\n');
    await agent.call('read', { path });
    await agent.call('write', { path, content: 'a\r\nb\n' });
    expect(await readFile(path, 'utf8')).toBe('a\r\nb\n');
  });

  test('reads a file of tens of megabytes page by page, with short protocol lines', async () => {
    const parts = effort(20, 100);
    const file = await open(join(root, 'big.txt'), 'w');
    const block = Array.from({ length: 10_000 }, (_, index) => `${String(index).padStart(49, '.')}`).join('\n');
    for (let part = 0; part < parts; part++) await file.write(`${block}\n`);
    await file.close();
    const first = await agent.call('read', { path: 'big.txt' });
    expect(first.isError).toBe(false);
    expect(first.text.length).toBeLessThanOrEqual(40_000);
    const lines = parts * 10_000;
    expect(first.text).toMatch(
      new RegExp(`^\\[file id=\\S+ path=\\S+big\\.txt lines=1-\\d+/${lines} chars=${lines * 50}\\]\\n`),
    );
    const [, offset] = /Continue: read path=big\.txt offset=(\d+)\]$/.exec(first.text) ?? [];
    const second = await agent.call('read', { path: 'big.txt', offset: Number(offset), limit: 2 });
    expect(second.text.split('\n').slice(1, 3)).toEqual(
      [Number(offset) - 1, Number(offset)].map((line) => String(line % 10_000).padStart(49, '.')),
    );
    const last = await agent.call('read', { path: 'big.txt', offset: lines });
    expect(last.text).toMatch(new RegExp(`lines=${lines}-${lines}/${lines} .*\\n\\.+9999\\n$`));
    expect((await agent.call('context')).text).not.toMatch(
      /active \([^)]*\):\n(?:.*\n)*?.*big\.txt.*\n(?:.*\n)*known, not active/,
    );
  });

  test('keeps an answer within the limits if each character takes six bytes of JSON', async () => {
    await writeFile(join(root, 'controls.txt'), '\u0001'.repeat(200_000));
    const { text } = await agent.call('read', { path: 'controls.txt' });
    expect(text.length).toBeLessThanOrEqual(40_000);
    const [, column] = /\[line 1 goes on\. Continue: read path=controls\.txt offset=1 column=(\d+)\]$/.exec(text) ?? [];
    const next = await agent.call('read', { path: 'controls.txt', column: Number(column) });
    expect(next.text).toContain('\u0001\u0001\u0001');
  });
});
