import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { fileFindings } from '../../../src/contracts/cortexfs/check-file.js';
import { exportSession, packInto } from '../../../src/contracts/cortexfs/export-session.js';
import { readProjection } from '../../../src/contracts/projection/read-projection.js';
import { askedMoment } from '../../../src/history/rebuild/moment.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { sessionId } from '../../../src/objects/ids.js';
import { askHere } from '../../support/ask-here.js';
import { suiteData } from '../../support/mcp-clients.js';
import { HOSTILE, type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';

describe('a session as a CortexFS directory', () => {
  const name = `cortexfs-${randomUUID()}`;
  const session = sessionId(`${name}-first`);
  let sessions: ReviewedSessions;
  let timeline: Timeline;
  let root = '';

  const at = (moment?: string) => ({ session, when: askedMoment({ at: moment }) });
  const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8');

  beforeAll(async () => {
    sessions = await reviewedSessions(name);
    const store = await sessions.client.delivered();
    const owned = { owner: { session }, basis: null } as const;
    await store.putRecords([
      { ...owned, kind: 'note', turn: 1, seq: 1, at: 1, body: { name: 'port', note: 'fact', text: 'It is 8080.' } },
      { ...owned, kind: 'note', turn: 3, seq: 8, at: 2, body: { name: 'end', note: 'decision', text: 'Stop here.' } },
      {
        ...owned,
        kind: 'approval',
        turn: 2,
        seq: 7,
        at: 3,
        body: { approval: 'ap', state: 'pending', text: 'rm b.ts', tool: 'bash' },
      },
      {
        ...owned,
        kind: 'approval',
        turn: 2,
        seq: 7,
        at: 4,
        body: { approval: 'ap', state: 'denied', text: 'rm b.ts', reason: 'no' },
      },
    ]);
    timeline = await Timeline.open(store);
    root = await mkdtemp(join(tmpdir(), 'palimpsest-cortexfs-'));
  });
  afterAll(async () => {
    await rm(root, { recursive: true, force: true });
    await sessions?.close();
  });

  test('extends the files of an earlier turn', async () => {
    const folder = join(root, 'grown');
    const earlier = await exportSession(timeline, folder, at('turn:1'));
    const [messages, events] = [await read('grown/messages.jsonl'), await read('grown/events.jsonl')];
    expect(messages.split('\n')).toHaveLength(earlier.appended + 1);
    expect(await read('grown/context/decisions.jsonl')).toBe('');
    // Recorded at step 1, after everything else.
    expect(await read('grown/context/facts.jsonl')).toContain('It is 8080.');
    const later = await exportSession(timeline, folder, at());
    expect(later.appended).toBeGreaterThan(0);
    expect((await read('grown/messages.jsonl')).startsWith(messages)).toBe(true);
    expect((await read('grown/events.jsonl')).startsWith(events)).toBe(true);
    expect(await read('grown/context/decisions.jsonl')).toContain('Stop here.');
    expect(later.projection.digest).toBe((await readProjection(timeline, session)).digest);
    // An earlier state is not an extension.
    await expect(exportSession(timeline, folder, at('turn:1'))).rejects.toMatchObject({ code: 'not-a-prefix' });
    expect(await exportSession(timeline, folder, at())).toMatchObject({ appended: 0, written: [] });
  });

  test('follows CortexFS document 000; outputs are whole, pinned and approved entries are in place', async () => {
    const folder = join(root, 'whole');
    await exportSession(timeline, folder, at());
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
    for (const path of files) expect(fileFindings(path, await read(join('whole', path)))).toEqual([]);
    const lines = (await read('whole/messages.jsonl')).split('\n').slice(0, -1);
    const outputs = lines.flatMap((line) => {
      const { role, content } = JSON.parse(line) as {
        readonly role: string;
        readonly content: readonly { readonly content: string }[];
      };
      return role === 'tool' ? content.map((part) => part.content) : [];
    });
    expect(outputs).toContain(HOSTILE);
    const pinned = files.filter((path) => path.startsWith('context/pinned/f-'));
    expect(await read(join('whole', pinned[0] ?? ''))).toBe('three\nshared\n');
    expect(await read('whole/context/pinned/system.md')).toBe('You are careful.');
    const types = (await read('whole/events.jsonl'))
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { readonly type: string }).type]));
    expect(types.filter((type) => type.startsWith('approval'))).toEqual(['approval_request', 'approval_result']);
    expect(types.filter((type) => type === 'start')).toHaveLength(3);
  });

  test('keeps a pack within its budget, in any folder, and refuses an impossible budget', async () => {
    await exportSession(timeline, join(root, 'packed'), at());
    const budget = 260;
    const { pack, paths } = await packInto(timeline, join(root, 'packed'), { ...at(), budget });
    expect(paths).toEqual(['packed/context/pack.json', 'packed/context/pack.md'].map((path) => join(root, path)));
    const text = await read('packed/context/pack.md');
    expect((await readProjection(timeline, session)).counter.count(text)).toBeLessThanOrEqual(budget);
    expect(text).toContain('Now drop it.');
    expect(JSON.parse(await read('packed/context/pack.json'))).toMatchObject({
      budget_tokens: budget,
      tokens: pack.tokens,
      counter: expect.any(String),
    });
    await expect(packInto(timeline, join(root, 'none'), { ...at(), budget: 3 })).rejects.toMatchObject({
      code: 'budget-too-small',
    });
    expect(await readdir(root)).not.toContain('none');
    expect((await packInto(timeline, join(root, 'bare'), { ...at(), budget })).paths).toHaveLength(2);
    expect((await packInto(timeline, join(root, 'bare'), { ...at(), budget: 300 })).paths).toHaveLength(2);
    await writeFile(join(root, 'packed/context/budget'), '300\n');
    const again = await exportSession(timeline, join(root, 'packed'), at());
    expect(again.pack.tokens).toBeLessThanOrEqual(300);
    expect(await read('packed/context/budget')).toBe('300\n');
    await writeFile(join(root, 'packed/context/budget'), ' 300\n');
    await expect(exportSession(timeline, join(root, 'packed'), at())).rejects.toMatchObject({ code: 'invalid-budget' });
  });

  test('is written by export and pack on the command line, which report their files and failures', async () => {
    const ask = async (...args: string[]) => {
      const { code, stdout, stderr } = await askHere([...args, '--json', '--data', suiteData()]);
      expect(stderr).toBe('');
      return { code, ...(JSON.parse(stdout) as object) };
    };
    const folder = join(root, 'asked');
    expect(await ask('export', `${session}@turn:2`, folder, '--format', 'cortexfs')).toMatchObject({
      code: 0,
      session,
      turn: 2,
      removed: [],
    });
    expect(await ask('pack', session, '--budget', '300', '--out', folder)).toMatchObject({
      code: 0,
      paths: [join(folder, 'context/pack.json'), join(folder, 'context/pack.md')],
      budget: 300,
    });
    expect(await ask('pack', session, '--budget', '2', '--out', folder)).toMatchObject({
      code: 64,
      error: { code: 'budget-too-small' },
    });
    expect(await ask('export', `${name}-second`, folder, '--format', 'cortexfs')).toMatchObject({
      code: 1,
      error: { code: 'foreign-session' },
    });
    expect(await ask('export', 'no-such-session', folder, '--format', 'cortexfs')).toMatchObject({
      error: { code: 'unknown-session' },
    });
  });
});
