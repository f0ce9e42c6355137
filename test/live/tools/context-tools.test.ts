import { rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { fileObjectId } from '../../../src/client/file-access.js';
import { localFilesystemId } from '../../../src/filesystem/access/filesystem-id.js';
import { canonicalPath, filesystemId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { openClient } from '../../support/context.js';
import { type Agent, type Answer, httpAgent, suiteData } from '../../support/mcp-clients.js';
import { historyOf } from '../../support/object-history.js';
import { servedFolders } from '../../support/served-folders.js';
import { until } from '../../support/until.js';

const served = servedFolders({
  folders: [
    {
      'src/a.ts': 'export const a = 1;\n',
      'src/b.ts': 'export const b = 2;\n',
      'long.txt': Array.from({ length: 2_500 }, (_, index) => `line ${index + 1}\n`).join(''),
    },
  ],
});
let agent: Agent;

// Every test has its own connection and session.
beforeEach(async () => {
  agent = await httpAgent(served.serve);
});
afterEach(async () => {
  await (agent.transport as StreamableHTTPClientTransport).terminateSession();
  await agent.close();
});

/** Returns the lines of `context` below one of its two titles. */
async function listed(title: 'active' | 'known'): Promise<readonly string[]> {
  const lines = (await agent.call('context')).text.split('\n').slice(1);
  const isTitle = (line: string): boolean => /^(active|known, not active) \(/.test(line);
  const from = lines.findIndex((line) => isTitle(line) && line.startsWith(title));
  if (from < 0) return [];
  const rest = lines.slice(from + 1);
  const end = rest.findIndex(isTitle);
  return end < 0 ? rest : rest.slice(0, end);
}

const idIn = ({ text }: Answer): string => /id=(\S+?)[ \]]/.exec(text)?.[1] ?? '';

/** Returns the transactions of a file's stored or pending versions, oldest first. */
async function transactionsOf(name: string): Promise<readonly number[]> {
  const here = filesystemId(await localFilesystemId(suiteData()));
  const id = fileObjectId(filesystemSource(here, canonicalPath(join(served.root, name))));
  const client = await openClient(served.root);
  try {
    const history = await until(
      async () => historyOf(await client.store.latest(), id),
      (found) => found.length > 0,
    );
    return history.map(({ txId }) => txId);
  } finally {
    await client.close();
  }
}

describe('the context of an agent', () => {
  test('shows a wholly read file as active, with its exact text in its call [§5.6]', async () => {
    const read = await agent.call('read', { path: 'src/a.ts' });
    expect(read.text).toMatch(
      /^\[file id=[0-9a-f]{8,12} path=\S+\/src\/a\.ts lines=1-1\/1 chars=20\]\nexport const a = 1;\n$/,
    );
    expect(await listed('active')).toEqual([
      expect.stringMatching(/type=file path=\S+\/src\/a\.ts file_type=ts char_count=20$/),
      expect.stringMatching(/type=toolcall tool=read status=ok char_count=20$/),
    ]);
    const again = await agent.call('read', { id: String(read.meta.call) });
    expect(again.text.split('\n').slice(1).join('\n')).toBe('export const a = 1;\n');
  });

  test('indexes a partly read file without activating it: the slice is the content of its call (D8)', async () => {
    const part = await agent.call('read', { path: 'long.txt', offset: 5, limit: 2 });
    expect(part.text).toMatch(
      /lines=5-6\/2500 chars=\d+\]\nline 5\nline 6\n\[2494 more lines\. Continue: read path=long\.txt offset=7\]$/,
    );
    expect((await listed('known')).some((line) => /long\.txt .*char_count=\d+$/.test(line))).toBe(true);
    const whole = await agent.call('read', { path: 'long.txt' });
    expect(whole.text.split('\n').length).toBeLessThanOrEqual(2_000);
    expect((await listed('active')).some((line) => line.includes('type=file'))).toBe(false);
  });

  test('makes stubs from listings, which activation reads first [§3.3, §5.6]', async () => {
    await agent.call('ls', { path: 'src' });
    expect((await listed('known')).filter((line) => line.endsWith('[unread]')).length).toBeGreaterThan(0);
    const activated = await agent.call('activate', { ids: ['src/b.ts'] });
    expect(activated.text).toMatch(
      new RegExp(
        '^activated id=[0-9a-f]{8,12} \\S+/src/b\\.ts chars=20\\nactive now: 3 objects, \\d+ characters\\n' +
          '\\[file id=\\S+ path=\\S+b\\.ts chars=20\\]\\nexport const b = 2;$',
      ),
    );
    expect((await listed('active')).some((line) => /b\.ts file_type=ts char_count=20$/.test(line))).toBe(true);
  });

  test('reports the effect of deactivate, pin and unpin; a pin prevents collapsing (decisions D1, D4)', async () => {
    const kept = await agent.call('grep', { pattern: 'export', path: 'src' });
    expect((await agent.call('pin', { ids: [idIn(kept)] })).text).toMatch(
      /^pinned id=\S+ toolcall grep chars=\d+\nactive now: 1 objects/,
    );
    for (let i = 0; i < 6; i++) await agent.call('ls', { path: 'src' });
    const active = await listed('active');
    expect(active.filter((line) => line.includes('tool=ls'))).toHaveLength(5);
    expect(active.some((line) => line.includes('tool=grep') && line.endsWith('[pinned]'))).toBe(true);
    expect((await agent.call('unpin', { ids: [idIn(kept)] })).isError).toBe(false);
    await agent.call('ls');
    expect((await listed('active')).some((line) => line.includes('tool=grep'))).toBe(false);
    expect((await agent.call('activate', { ids: [idIn(kept)] })).text).toContain('src/a.ts:1: export const a = 1;');
    expect((await listed('active')).some((line) => line.includes('tool=grep'))).toBe(true);
    expect((await agent.call('deactivate', { ids: [idIn(kept)] })).text).toMatch(/^deactivated id=/);
  });

  test('takes several ids of one call as one step (decision D7)', async () => {
    await agent.call('ls', { path: 'src' });
    const both = await agent.call('activate', { ids: ['src/a.ts', 'src/b.ts'] });
    expect(both.text).toContain('export const a = 1;');
    expect(both.text).toContain('export const b = 2;');
    await (agent.transport as StreamableHTTPClientTransport).terminateSession();
    const client = await openClient(served.root);
    try {
      const { state } = await client.openSession({ id: String(both.meta.session) });
      expect(state.seq).toBe(2);
    } finally {
      await client.close();
    }
  });

  test('continues objects beyond one answer with read', async () => {
    await Promise.all(
      ['x', 'y', 'z'].map((name) => writeFile(join(served.root, `${name}.wide`), `${name.repeat(99)}\n`.repeat(250))),
    );
    await agent.call('find', { pattern: '*.wide' });
    const { text } = await agent.call('activate', { ids: ['x.wide', 'y.wide', 'z.wide'] });
    expect(text.length).toBeLessThanOrEqual(40_000);
    expect(text).toMatch(/\nactive now: 4 objects, \d+ characters\n/);
    expect(text).toContain(`${'x'.repeat(99)}\n`.repeat(250));
    const [, id, offset] = /\[More follows\. Continue: read id=(\S+) offset=(\d+)\]/.exec(text) ?? [];
    expect((await agent.call('read', { id, offset: Number(offset) })).text).toMatch(
      new RegExp(`lines=${offset}-250/250 chars=25000\\]\ny{99}\n`),
    );
    expect(text).toMatch(
      /path=\S+z\.wide chars=25000\]\n\[Not shown: no room left\. Continue: read id=[0-9a-f]{8,12}\]$/,
    );
  });

  test('indexes written and edited files from the disk without activating them [§5.6]', async () => {
    await agent.call('write', { path: 'new/note.md', content: '# Note\n' });
    expect((await listed('known')).some((line) => /new\/note\.md file_type=md char_count=7$/.test(line))).toBe(true);
    await agent.call('read', { path: 'new/note.md' });
    await agent.call('edit', { path: 'new/note.md', edits: [{ oldText: 'Note', newText: 'Longer note' }] });
    expect((await listed('active')).some((line) => /new\/note\.md file_type=md char_count=14$/.test(line))).toBe(true);
    const { text } = await agent.call('context', { full: true });
    expect(text).toMatch(/ACTIVE_CONTENT id=[0-9a-f]{8,12}\n# Longer note\n/);
  });

  test('reads an older version by the transaction that wrote it', async () => {
    await agent.call('write', { path: 'v.txt', content: 'first\n' });
    await agent.call('write', { path: 'v.txt', content: 'second\n' });
    const [version] = await transactionsOf('v.txt');
    const old = await agent.call('read', { path: 'v.txt', version });
    expect(old.text).toMatch(
      new RegExp(`^\\[file id=\\S+ path=\\S+v\\.txt version=${version} lines=1-1/1 chars=6\\]\\nfirst\\n$`),
    );
    expect((await agent.call('read', { path: 'v.txt' })).text).toContain('\nsecond\n');
  });

  test('reports a deleted file, which keeps its history (decision C3)', async () => {
    const written = await agent.call('write', { path: 'gone.txt', content: 'here\n' });
    const id = idIn(written);
    const [version] = await transactionsOf('gone.txt');
    await rm(join(served.root, 'gone.txt'));
    expect((await agent.call('activate', { ids: [id] })).text).toMatch(/is deleted; an older version/);
    expect((await listed('known')).some((line) => line.includes('gone.txt') && line.endsWith('[deleted]'))).toBe(true);
    expect((await agent.call('read', { id, version })).text).toContain('\nhere\n');
  });

  test('records the absence of a missing file on reading, and shows an unreachable one as it was [§5.9]', async () => {
    const written = await agent.call('write', { path: 'fleeting.txt', content: 'soon gone\n' });
    await rm(join(served.root, 'fleeting.txt'));
    expect((await agent.call('read', { path: 'fleeting.txt' })).text).toMatch(
      /^Error: "fleeting\.txt" does not exist\./,
    );
    expect((await listed('known')).some((line) => line.includes('fleeting.txt') && line.endsWith('[deleted]'))).toBe(
      true,
    );
    expect((await agent.call('read', { id: idIn(written) })).text).toMatch(
      /^Error: the file [0-9a-f]{8,64} is deleted/,
    );

    const looping = await agent.call('write', { path: 'folder/kept.txt', content: 'still here\n' });
    await rename(join(served.root, 'folder'), join(served.root, 'elsewhere'));
    await symlink('folder', join(served.root, 'folder'));
    const { text, isError } = await agent.call('read', { id: idIn(looping) });
    expect(isError).toBe(false);
    expect(text).toMatch(/chars=11\]\nstill here\n\[The file cannot be read now: this is its last stored version\.\]$/);
  });

  test('is shown page by page, and never contains itself', async () => {
    await agent.call('read', { path: 'src/a.ts' });
    const full = await agent.call('context', { full: true });
    expect(full.text).toMatch(
      /^\[context session=\S+ turn=1 known=2 active=2 pinned=0 active_chars=40 lines=1-\d+\/\d+ chars=\d+\]\nid=/,
    );
    const stored = await agent.call('read', { id: String(full.meta.call) });
    expect(stored.text.split('\n').slice(1)).toEqual([
      expect.stringMatching(
        new RegExp(`^assembled context: ${full.meta.chars} characters, sha256 ${full.meta.sha256}$`),
      ),
    ]);
    const rest = await agent.call('context', { full: true, offset: 3 });
    expect(rest.meta.sha256).toBe(full.meta.sha256);
    expect(full.text.endsWith(rest.text.split('\n').slice(1).join('\n'))).toBe(true);
  });

  test('remarks on an unknown argument at the end', async () => {
    const { text, isError } = await agent.call('grep', { pattern: 'a', contxt: 1, wait_for_previous: true });
    expect(isError).toBe(false);
    expect(text).toMatch(/\n\[unknown argument "contxt" was ignored; did you mean "context"\?\]$/);
  });
});
