import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exportBundle } from '../../../src/bundle/export-bundle.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { createContextClient, stopNode } from '../../../src/index.js';
import { openClient, wholeRead } from '../../support/context.js';
import { foundIn } from '../../support/every-byte.js';
import { runCli } from '../../support/run-cli.js';

const SECRET = 'mother-in-law lives at 7 Plum Lane';

describe('an erased text', () => {
  let folder: string;
  let dataDir: string;
  let packed: string;
  const json = async (...args: readonly string[]) => {
    const { stdout } = await runCli([...args, '--data', dataDir, '--json']);
    return JSON.parse(stdout);
  };

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-erase-text-')));
    dataDir = join(folder, 'data');
    const opened = await createContextClient({ dataDir, roots: [folder], cwd: folder });
    const { client } = opened;
    for (const id of ['clean', 'one', 'two']) {
      const session = await client.openSession({ id });
      await session.reportMessage({ role: 'user', text: `Hello from ${id}` });
      await session.assemble({ deliver: 'library' });
      if (id === 'one') await session.reportMessage({ role: 'user', text: `My ${SECRET}, you know.` });
      if (id !== 'clean') {
        const content = `${'a line of a long file\n'.repeat(300)}${SECRET}\n`;
        await writeFile(join(folder, 'long.txt'), content);
        const call = { tool: 'read', args: { path: 'long.txt' }, status: 'ok' as const, content };
        const readings = [await wholeRead(client, 'long.txt')];
        await session.recordCall({ ...call, readings, answer: (call) => `[${call}]\n${content}` });
      }
      for (let i = 0; i < 12; i++) await session.reportMessage({ role: 'assistant', text: `step ${i} of ${id}` });
      await session.assemble({ deliver: 'library' });
      expect(await session.isDelivered(60_000)).toBe(true);
      await session.close();
    }
    await opened.close();
    await importSession();
  });

  /** Imports a session from another database. An import packs the lines of its file. */
  async function importSession(): Promise<void> {
    const other = await openClient(folder);
    const session = await other.openSession({ id: `packed-${randomUUID()}` });
    await session.reportMessage({ role: 'user', text: `Packed: ${SECRET}.` });
    for (let i = 0; i < 4; i++) await session.reportMessage({ role: 'assistant', text: `Answer ${i}` });
    const file = join(folder, 'packed.bundle');
    await exportBundle(await Timeline.open(await other.delivered()), { session: session.id, file, upto: undefined });
    await other.close();
    packed = session.id;
    expect(await json('import', file)).toMatchObject({ session: packed });
  }

  afterAll(async () => {
    await stopNode(dataDir);
    await rm(folder, { recursive: true, force: true });
  });

  test('is refused with nothing changed if the order is too wide, unknown, forged or beyond its plan', async () => {
    const codes: string[] = [];
    const refused = async (...args: readonly string[]): Promise<void> => {
      codes.push((await json('erase', ...args)).error.code);
    };
    await refused('--text', 'a b', '--plan');
    await refused('--text', 'step', '--plan');
    await refused('--text', '⟦masked:aws-key:0000⟧', '--plan');
    await refused('--text', '⟦erased on order⟧', '--plan');
    await refused('--object', 'nothing', '--plan');
    await refused('--session', 'nothing', '--plan');
    await refused('--before', '2999-01-01', '--plan');
    await refused('--text', SECRET, '--plan');
    await refused('--text', SECRET, '--shared', '--apply', '--reason', 'no plan yet');
    await refused('--session', 'clean', '--text', SECRET, '--plan');
    expect(codes).toEqual([
      'matches-all',
      'matches-all',
      'not-found',
      'not-found',
      'unknown-object',
      'unknown-session',
      'matches-all',
      'shared',
      'no-plan',
      'usage',
    ]);
    codes.length = 0;
    await json('erase', '--session', 'clean', '--plan');
    await refused('--session', 'clean', '--apply');
    const opened = await createContextClient({ dataDir, roots: [folder], cwd: folder });
    const session = await opened.client.openSession({ id: 'clean' });
    await refused('--session', 'clean', '--apply', '--reason', 'it grew');
    await session.reportMessage({ role: 'user', text: 'One more.' });
    expect(await session.isDelivered(60_000)).toBe(true);
    await opened.close();
    await refused('--session', 'clean', '--apply', '--reason', 'it grew');
    expect(codes).toEqual(['usage', expect.stringMatching(/beyond-plan|session-open/), 'beyond-plan']);
    const { digest } = await json('erase', '--session', 'clean', '--plan');
    const path = join(dataDir, 'erasures', (await planNames()).find((name) => name.startsWith('plan-')) ?? '');
    await writeFile(path, (await readFile(path, 'utf8')).replace(digest.slice(0, 8), '00000000'));
    codes.length = 0;
    await refused('--session', 'clean', '--apply', '--reason', 'forged');
    expect(codes).toEqual(['forged-plan']);
    expect(await json('verify', '--all')).toMatchObject({ ok: true });
  });

  const planNames = async (): Promise<readonly string[]> => {
    const { readdir } = await import('node:fs/promises');
    const names = await readdir(join(dataDir, 'erasures'));
    const written = await Promise.all(
      names.map(async (name) => ({ name, text: await readFile(join(dataDir, 'erasures', name), 'utf8') })),
    );
    return written.filter(({ text }) => text.includes('session:clean')).map(({ name }) => name);
  };

  test('leaves no byte; its sessions continue, and report which contexts lost their proof', async () => {
    const plan = await json('erase', '--text', SECRET, '--shared', '--plan');
    expect(plan.unproved).toMatchObject([
      { session: 'one', contexts: 1 },
      { session: 'two', contexts: 1 },
      { session: packed, contexts: 0 },
    ]);
    const done = await json('erase', '--text', SECRET, '--shared', '--apply', '--reason', 'she asked');
    expect(done).toMatchObject({ reason: 'she asked', what: 'a text' });
    const verified = await json('verify', 'clean', 'one', 'two');
    expect(verified).toMatchObject({ ok: true });
    const [clean, one] = verified.sessions;
    expect(clean.erased).toBeUndefined();
    expect(one).toMatchObject({ contexts: { total: 2 }, erased: { contexts: 1, orders: [{ reason: 'she asked' }] } });
    const log = await runCli(['log', 'one', '--data', dataDir]);
    expect(log.stdout).toContain('erased on order');
    const { error } = await json('context', 'one');
    expect(error).toMatchObject({ code: 'erased', message: expect.stringContaining('she asked') });
    // The agent's own file still has the text, and a resumed session reads its files again.
    await writeFile(join(folder, 'long.txt'), 'nothing\n');
    const opened = await createContextClient({ dataDir, roots: [folder], cwd: folder });
    const session = await opened.client.openSession({ id: 'one' });
    await session.reportMessage({ role: 'user', text: 'Go on.' });
    const { text } = await session.assemble({ deliver: 'library' });
    expect(text).toContain('⟦erased on order⟧');
    expect(await session.isDelivered(60_000)).toBe(true);
    await opened.close();
    expect(await json('verify', 'one')).toMatchObject({ ok: true });
    await stopNode(dataDir);
    expect(await foundIn(dataDir, [SECRET])).toEqual([]);
    await rm(join(dataDir, 'index'), { recursive: true });
    expect(await json('verify', '--all')).toMatchObject({ ok: true });
  });
});
