import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { createTools } from '../../../src/tools/create-tools.js';
import type { ToolAnswer } from '../../../src/tools/tool.js';
import { openClient } from '../../support/context.js';
import { temporaryRoot } from '../../support/mcp-clients.js';
import { historyOf } from '../../support/object-history.js';

const LINES = Array.from({ length: 12 }, (_, i) => `line ${i} of it`);
const TEXT = `${LINES.join('\n')}\n`;

describe('concurrent changes of one file (decision F12)', () => {
  let root: string;
  let client: ContextClient;
  let remove: () => Promise<void>;
  const tools = new Map(createTools({}).map((tool) => [tool.name, tool]));

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    client = await openClient(root, { track: false });
  });
  afterAll(async () => {
    await client.close();
    await remove();
  });

  const run = async (session: ContextSession, tool: string, args: object): Promise<ToolAnswer> => {
    const answer = await tools.get(tool)?.run(args, { client, session, signal: new AbortController().signal });
    if (answer === undefined) throw new Error(`there is no ${tool}`);
    return answer;
  };
  const edit = (session: ContextSession, path: string, i: number): Promise<ToolAnswer> =>
    run(session, 'edit', { path, edits: [{ oldText: `line ${i} of it`, newText: `changed ${i}` }] });
  const changedIn = async (path: string): Promise<readonly number[]> => {
    const text = await readFile(path, 'utf8');
    return LINES.flatMap((_, i) => (text.includes(`changed ${i}\n`) ? [i] : []));
  };
  const doneOf = (answers: readonly ToolAnswer[]): readonly number[] =>
    answers.flatMap(({ isError }, i) => (isError ? [] : [i]));

  test.each([false, true])('keep twelve edits of different lines; read before: %s', async (isRead) => {
    const path = join(root, `twelve-${isRead}.txt`);
    await writeFile(path, TEXT);
    const session = await client.openSession();
    if (isRead) await run(session, 'read', { path });
    const answers = await Promise.all(LINES.map((_, i) => edit(session, path, i)));
    expect(answers.map(({ text, isError }) => (isError ? text : 'Edited'))).toEqual(LINES.map(() => 'Edited'));
    expect(await changedIn(path)).toEqual(LINES.map((_, i) => i));
    expect(
      (await run(session, 'edit', { path, edits: [{ oldText: 'changed 3', newText: 'once more' }] })).isError,
    ).toBe(false);
    await session.close();
  });

  test('record each edit with the file version that it made', async () => {
    const path = join(root, 'versions.txt');
    await writeFile(path, TEXT);
    const session = await client.openSession();
    const answers = await Promise.all(LINES.map((_, i) => edit(session, path, i)));
    const hashes = answers.map(({ meta }) => meta.file_hash);
    expect(new Set(hashes).size).toBe(LINES.length);
    const history = await historyOf(await (await client.delivered()).now(), String(answers[0]?.meta.id));
    expect(history.map(({ version }) => version?.file_hash).toSorted()).toEqual(hashes.toSorted());
    await session.close();
  });

  test('do one edit of a line; the others report that the text is missing', async () => {
    const path = join(root, 'one-line.txt');
    await writeFile(path, TEXT);
    const session = await client.openSession();
    const answers = await Promise.all(
      LINES.map((_, i) =>
        run(session, 'edit', { path, edits: [{ oldText: 'line 5 of it', newText: `changed ${i}` }] }),
      ),
    );
    expect(doneOf(answers)).toEqual(await changedIn(path));
    expect(doneOf(answers)).toHaveLength(1);
    expect(answers.filter(({ failure }) => failure === 'no-match')).toHaveLength(LINES.length - 1);
    await session.close();
  });

  test('keep every change reported as done by two sessions', async () => {
    const path = join(root, 'two-sessions.txt');
    await writeFile(path, TEXT);
    const sessions = [await client.openSession(), await client.openSession()] as const;
    for (const session of sessions) await run(session, 'read', { path });
    const answers = await Promise.all(LINES.map((_, i) => edit(sessions[i % 2 === 0 ? 0 : 1], path, i)));
    expect(await changedIn(path)).toEqual(doneOf(answers));
    expect(doneOf(answers).length).toBeGreaterThan(0);
    for (const { isError, failure } of answers) if (isError) expect(failure).toBe('changed-since');
    for (const session of sessions) await session.close();
  });

  test.each(['new', 'old'])('do one write of a file that is %s; the others report the change', async (age) => {
    const path = join(root, `writes-${age}.txt`);
    if (age === 'old') await writeFile(path, TEXT);
    const session = await client.openSession();
    const answers = await Promise.all(LINES.map((_, i) => run(session, 'write', { path, content: `changed ${i}\n` })));
    expect(doneOf(answers)).toEqual(await changedIn(path));
    expect(doneOf(answers)).toHaveLength(1);
    for (const { isError, text } of answers)
      if (isError) expect(text).toMatch(/Nothing was done. Look at it first: read path=/);
    await session.close();
  });

  test('keep an edit and a write that are both reported as done', async () => {
    const path = join(root, 'edit-and-write.txt');
    await writeFile(path, TEXT);
    const session = await client.openSession();
    const answers = await Promise.all([
      edit(session, path, 3),
      run(session, 'write', { path, content: `${TEXT}changed 4\n` }),
      edit(session, path, 5),
    ]);
    const expected = [3, 4, 5].filter((_, i) => answers[i]?.isError === false);
    expect(await changedIn(path)).toEqual(expected);
    await session.close();
  });
});
