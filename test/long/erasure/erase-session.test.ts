import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createContextClient, stopNode } from '../../../src/index.js';
import { wholeRead } from '../../support/context.js';
import { foundIn } from '../../support/every-byte.js';
import { HarnessApi } from '../../support/harness-api.js';
import { startServe } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';

/** A line that fits into an index key, and a text that is stored as a separate document. */
const short = (what: string): string => `${what} quince marmalade 4711`;
const long = (what: string): string => `${short(what)} `.repeat(200);

describe('an erased session', () => {
  let folder: string;
  let dataDir: string;
  const cli = (...args: readonly string[]) => runCli([...args, '--data', dataDir]);
  const json = async (...args: readonly string[]) => {
    const { stdout, stderr } = await cli(...args, '--json');
    return { ...JSON.parse(stdout), stderr };
  };

  beforeEach(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-erase-')));
    dataDir = join(folder, 'data');
  });

  afterEach(async () => {
    await stopNode(dataDir);
    await rm(folder, { recursive: true, force: true });
  });

  type Opened = Awaited<ReturnType<typeof createContextClient>>;
  const open = (): Promise<Opened> => createContextClient({ dataDir, roots: [folder], cwd: folder });

  async function recordSession(id: string, file = `${id}.txt`, { client }: Opened): Promise<void> {
    const session = await client.openSession({ id });
    await session.setSystemPrompt(short(`prompt of ${id}`));
    await session.reportMessage({ role: 'user', text: short(`message of ${id}`) });
    await session.reportMessage({ role: 'assistant', text: long(`answer of ${id}`) });
    for (const name of [file, 'both.txt']) {
      const content = name === 'both.txt' ? long('both') : long(`file of ${file.slice(0, -4)}`);
      await writeFile(join(folder, name), content);
      const readings = [await wholeRead(client, name)];
      const call = { tool: 'read', args: { path: name, why: short(`argument of ${id}`) }, status: 'ok' as const };
      await session.recordCall({ ...call, content, readings, answer: (call) => `[${call}]\n${content}` });
    }
    await writeFile(join(folder, `${id}.env`), short(`short file of ${id}`));
    const readings = [await wholeRead(client, `${id}.env`)];
    const call = { tool: 'bash', args: { command: 'cat' }, status: 'ok' as const, content: short(`output of ${id}`) };
    await session.recordCall({ ...call, readings, answer: () => short(`output of ${id}`) });
    await session.assemble({ deliver: 'library' });
    expect(await session.isDelivered(60_000)).toBe(true);
    await session.close();
  }

  const textsOf = (id: string): readonly string[] =>
    ['prompt', 'message', 'answer', 'file', 'argument', 'short file', 'output'].map((what) =>
      short(`${what} of ${id}`),
    );

  test('leaves no byte while another session runs; reading it reports the erasure on order', async () => {
    const opened = await open();
    await recordSession('gone', 'gone.txt', opened);
    await recordSession('kept', 'kept.txt', opened);
    // This session's name begins with that of the erased session. It must not be returned in its
    // place.
    await recordSession('gone-on', 'gone-on.txt', opened);
    const serve = await startServe(['--data', dataDir, '--profile', 'rocksdb'], folder);
    const api = new HarnessApi(serve);
    const { id } = await api.call('openSession', undefined, { system_prompt: 'You go on.' });
    let turns = 0;
    const goOn = async (): Promise<void> => {
      await api.call('beginTurn', id, { messages: [{ role: 'user', content: `turn ${++turns}` }] });
    };
    await goOn();

    const plan = await json('erase', '--session', 'gone', '--plan');
    expect(plan.sessions).toEqual(['gone']);
    // A file that the other session read stays, with its text.
    expect(plan.kept.map(({ type }: { type: string }) => type).sort()).toEqual(['chunk', 'file']);
    const disk = await json('disk');
    const sizeOf = (name: string): number =>
      disk.sessions.find(({ session }: { session: string }) => session === name)?.bytes;
    expect(sizeOf('gone')).toBe(plan.bytes);
    expect(disk.content.bytes).toBe(
      disk.content.shared + ['gone', 'gone-on', 'kept', id].reduce((sum, one) => sum + sizeOf(one), 0),
    );
    expect(disk.places.map(({ name }: { name: string }) => name)).toContain('database');
    expect(disk.measures).toContainEqual(expect.objectContaining({ how: 'palimpsest erase --sweep' }));
    let isErasing = true;
    const erased = json('erase', '--session', 'gone', '--apply', '--reason', 'left the company').finally(() => {
      isErasing = false;
    });
    // The node is away for some seconds meanwhile; steps are acknowledged all the same.
    while (isErasing) await goOn();
    expect(await erased).toMatchObject({
      reason: 'left the company',
      sessions: ['gone'],
      documents: plan.documents.length,
    });
    await goOn();
    expect(turns).toBeGreaterThan(3);
    const verified = await json('verify', '--all');
    expect(verified).toMatchObject({ ok: true });
    expect(verified.sessions.map(({ session }: { session: string }) => session).sort()).toEqual(
      [id, 'gone-on', 'kept'].sort(),
    );

    for (const question of [
      ['verify', 'gone'],
      ['context', 'gone@turn:1'],
      ['log', 'gone'],
      ['show', 'chat:gone'],
      ['show', 'gone'],
    ]) {
      const { error } = await json(...question);
      const erased = { code: 'erased', message: expect.stringContaining('left the company') };
      expect({ question, error }).toMatchObject({ question, error: erased });
    }
    await expect(opened.client.openSession({ id: 'gone' })).rejects.toMatchObject({ code: 'erased' });
    await api.close();
    await serve.kill();
    await stopNode(dataDir);
    expect(await foundIn(dataDir, textsOf('gone'))).toEqual([]);
    expect(await foundIn(dataDir, textsOf('kept').slice(0, 1))).not.toEqual([]);

    // The same file is recorded again, so equal documents follow the eviction in the log. This
    // process stored them earlier, and must not assume that they still exist.
    await recordSession('again', 'gone.txt', opened);
    await opened.close();
    expect(await json('verify', '--all')).toMatchObject({ ok: true });
    await stopNode(dataDir);
    // The log without the erased documents still gives the same index.
    await rm(join(dataDir, 'index'), { recursive: true });
    const rebuilt = await json('verify', '--all');
    expect(rebuilt).toMatchObject({ ok: true });
    expect(rebuilt.sessions).toHaveLength(4);
  });
});
