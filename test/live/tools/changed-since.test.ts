import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { HarnessClient } from '../../../src/harness/harness-client.js';
import type { HarnessSession } from '../../../src/harness/harness-session.js';
import { createTools } from '../../../src/tools/create-tools.js';
import type { ToolAnswer } from '../../../src/tools/tool.js';
import { openClient } from '../../support/context.js';
import { temporaryRoot } from '../../support/mcp-clients.js';

const TEXT = `${Array.from({ length: 40 }, (_, i) => `line ${i} of it`).join('\n')}\n`;
const CHANGED = TEXT.replace('line 7 of it', 'another line');

describe('a file that changed since the agent saw it', () => {
  let root: string;
  let harness: HarnessClient;
  let session: HarnessSession;
  let remove: () => Promise<void>;
  let path: string;
  let files = 0;
  let run: (tool: string, args: object) => Promise<ToolAnswer>;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    harness = new HarnessClient(await openClient(root, { track: false }));
    session = await harness.openSession();
    const tools = new Map(createTools({}).map((tool) => [tool.name, tool]));
    run = async (tool, args) => {
      const { client } = harness;
      const answer = await tools
        .get(tool)
        ?.run(args, { client, session: session.session, signal: new AbortController().signal });
      if (answer === undefined) throw new Error(`there is no ${tool}`);
      return answer;
    };
  });
  afterAll(async () => {
    await harness.close();
    await remove();
  });
  beforeEach(async () => {
    files += 1;
    path = join(root, `${files}.txt`);
    await writeFile(path, TEXT);
  });

  const edits = (to: string) => ({ path, edits: [{ oldText: 'line 20 of it', newText: to }] });

  test('makes edit report the changed lines without an edit, and edit on the second call', async () => {
    await run('read', { path });
    await writeFile(path, CHANGED);
    const told = await run('edit', edits('mine'));
    expect(told.isError).toBe(true);
    expect(told.text).toMatch(
      /was changed on the disk since you last saw it.*\n@@ -7,3 \+7,3 @@\n line 6 of it\n-line 7 of it\n\+another line/,
    );
    expect(await readFile(path, 'utf8')).toBe(CHANGED);
    expect((await run('edit', edits('mine'))).isError).toBe(false);
    // Its own changes count as seen.
    expect((await run('edit', { path, edits: [{ oldText: 'mine', newText: 'mine again' }] })).isError).toBe(false);
    expect(await readFile(path, 'utf8')).toBe(CHANGED.replace('line 20 of it', 'mine again'));
  });

  test('makes write do the same; a difference that is too long must be read', async () => {
    await run('read', { path, offset: 3, limit: 2 });
    const other = TEXT.replaceAll('of it', 'of something else');
    await writeFile(path, other);
    const told = await run('write', { path, content: 'mine' });
    expect(told).toMatchObject({
      isError: true,
      text: expect.stringContaining('Nothing was done. Read it, then change it.'),
    });
    expect(await readFile(path, 'utf8')).toBe(other);
    expect((await run('write', { path, content: 'mine' })).isError).toBe(false);
  });

  test('counts as seen after a context; an unseen or missing file is left to the tool', async () => {
    expect((await run('edit', edits('mine'))).isError).toBe(false);
    const read = await readFile(path, 'utf8');
    await run('read', { path });
    await writeFile(path, CHANGED);
    await run('activate', { ids: [path] });
    await session.beginTurn({ layout: 'epoch' });
    expect((await run('edit', edits('mine'))).text).toContain('Edited');
    expect(read).toContain('mine');
  });

  test('is checked for a harness before calls of its own tools', async () => {
    const call = { tool: 'str_replace', args: { file_path: path, old_string: 'line 20 of it', new_string: 'mine' } };
    const read = { name: 'Read', args: { file_path: path }, content: TEXT };
    expect(await session.beforeChange(call)).toBeUndefined();
    await session.reportToolCall({ id: `${path}-1`, ...read });
    await writeFile(path, CHANGED);
    expect(await session.beforeChange({ ...call, tool: 'read_file' })).toBeUndefined();
    expect(await session.beforeChange(call)).toMatch(
      /was changed on the disk since you last saw it[\s\S]*-line 7 of it/,
    );
    expect(await session.beforeChange(call)).toBeUndefined();
    // The second change of a step comes before the first is reported.
    await writeFile(path, CHANGED.replace('line 20 of it', 'mine'));
    expect(await session.beforeChange(call)).toBeUndefined();
  });
});
