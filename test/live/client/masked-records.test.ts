import { readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { collectSession } from '../../../src/bundle/collect-session.js';
import { bundleOf } from '../../../src/bundle/export-bundle.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { openMask } from '../../../src/host/open-mask.js';
import type { ContextRecord } from '../../../src/objects/context-record.js';
import { hashText } from '../../../src/objects/hashes.js';
import { sessionId } from '../../../src/objects/ids.js';
import { pageAnswers } from '../../../src/page/server/page-answers.js';
import { marksIn } from '../../../src/redaction/stored-marks.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { openClient, wholeRead } from '../../support/context.js';
import { hiddenTexts } from '../../support/contracts.js';
import { seededTexts } from '../../support/made-secrets.js';
import { type Agent, stdioAgent, suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';

const SEEDED = seededTexts();
const NOTE: ContextRecord<'event'> = {
  kind: 'event',
  owner: { session: sessionId('masked') },
  turn: 0,
  seq: 0,
  at: Date.UTC(2026, 0, 1),
  basis: null,
  body: { type: 'noted', data: null },
};

/** Returns the bytes of all files below a folder. */
function bytesBelow(folder: string): Buffer {
  const files = readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => statSync(path).isFile());
  return Buffer.concat(files.map((path) => readFileSync(path)));
}

describe('a session whose secrets are masked', () => {
  let node: OwnNode;
  let root: string;
  let remove: () => Promise<void>;
  let clientDir: string;
  let client: ContextClient;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    clientDir = await mkdtemp(join(tmpdir(), 'palimpsest-masked-'));
    node = await ownNode('rocksdb');
    const mask = await openMask(clientDir);
    client = await openClient(root, { address: node.address, dataDir: clientDir, ...(mask && { mask }) });
  });
  afterAll(async () => {
    await client?.close();
    await node?.stop();
    await Promise.all([remove(), rm(clientDir, { recursive: true, force: true })]);
  });

  test('leaves none of 200 secrets of 40 kinds in any byte of the database and the journal', async () => {
    const session = await client.openSession({ id: 'masked' });
    await session.setSystemPrompt(
      SEEDED.slice(0, 20)
        .map(({ text }) => text)
        .join('\n'),
    );
    for (const { text } of SEEDED.slice(20, 60)) await session.reportMessage({ role: 'user', text });
    for (const [i, { text }] of SEEDED.slice(60).entries()) {
      const path = `${i % 30}.txt`;
      await writeFile(join(root, path), `first\n${text}\nlast\n`);
      const reading = await wholeRead(client, path);
      const content = i % 2 === 0 ? `first\n${text}\nlast\n` : text;
      const recorded = await session.recordCall({
        tool: 'bash',
        args: { command: `cat ${path}`, nested: [{ deep: text }] },
        status: 'ok',
        content,
        readings: i % 3 === 0 ? [reading] : [],
        answer: (id) => `[call ${id}]\n${content}`,
      });
      // The agent's own answer has the true text.
      expect(recorded.answer).toContain(text);
    }
    await session.assemble({ deliver: 'library' });
    expect(await session.isDelivered(60_000)).toBe(true);
    const texts = SEEDED.slice(0, 40).map(({ text }) => text);
    const notes = SEEDED.slice(40, 80).map(({ text }, i) => ({
      ...NOTE,
      seq: i,
      body: { type: 'noted', data: { text } },
    }));
    await session.keepRecords(
      [...notes, { ...NOTE, texts: texts.map(hashText), body: { type: 'noted', data: texts.map(hashText) } }],
      texts,
    );
    const timeline = await Timeline.open(await client.delivered());
    expect(await client.searchIndex?.of(timeline)).toBeDefined();
    // Everything that a bundle and a page file hold.
    const bundle: string[] = [];
    for await (const line of await bundleOf(timeline, session.id, { hiddenTexts })) bundle.push(line);
    const collected = await collectSession(
      { present: timeline.present, steps: await timeline.steps(session.id) },
      session.id,
    );
    const page: string[] = [];
    const { answers } = await pageAnswers({ timeline, collected, upto: undefined });
    for await (const answer of answers()) page.push(JSON.stringify(answer));
    expect(Math.min(bundle.length, page.length)).toBeGreaterThan(100);
    const bytes = Buffer.concat([
      bytesBelow(node.dataDir),
      bytesBelow(clientDir),
      Buffer.from([...bundle, ...page].join('\n')),
    ]);
    expect(bytes.length).toBeGreaterThan(100_000);
    expect(bytes.includes('⟦masked:')).toBe(true);
    const left = SEEDED.filter(({ secret }) => secret.split('\n').some((line) => bytes.includes(line)));
    expect(left.map(({ kind }) => kind)).toEqual([]);
    expect(await verifySession(await client.delivered(), session.id)).toMatchObject({
      ok: true,
      contexts: { total: 1, equal: 1 },
    });
  });

  test('gives a masked file one version, however often it is read', async () => {
    const session = await client.openSession({ id: 'masked-again' });
    await writeFile(join(root, 'env'), 'API_KEY=abcDEF123456ghi\n');
    const read = async (): Promise<void> => {
      const readings = [await wholeRead(client, 'env')];
      await (
        await session.recordCall({ tool: 'read', args: {}, status: 'ok', content: '', readings, answer: () => 'read' })
      ).applied;
    };
    await read();
    await read();
    const { id } = await client.files.locate('env');
    expect(await (await client.store.latest()).versions(id)).toHaveLength(1);
    await writeFile(join(root, 'env'), 'API_KEY=abcDEF123456xyz\n');
    await read();
    expect(await (await client.store.latest()).versions(id)).toHaveLength(2);
  });
});

describe('an agent that sees a mark', () => {
  const secret = 'abcDEF123456ghiJKL';
  let root: string;
  let remove: () => Promise<void>;
  let agent: Agent;
  let mark: string;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    await writeFile(join(root, '.env'), `HOST=a\nAPI_KEY=${secret}\n`);
    agent = await stdioAgent(root);
    const mask = await openMask(suiteData());
    mark = marksIn(mask?.text(`API_KEY=${secret}`) ?? '')[0] ?? '';
  });
  afterAll(async () => {
    await agent.close();
    await remove();
  });
  const file = (): string => readFileSync(join(root, '.env'), 'utf8');

  test('reads the true text, and later finds the mark in the record', async () => {
    expect((await agent.call('read', { path: '.env' })).text).toContain(secret);
    expect((await agent.call('context', { full: true })).text).toContain(`API_KEY=${mark}`);
  });

  test('gets the mark in the answer of its tool if the setting says so, and still edits the true bytes', async () => {
    const masked = await stdioAgent(root, ['--mask-answers']);
    const read = await masked.call('read', { path: '.env' });
    expect(read.text).toContain(`API_KEY=${mark}`);
    expect(read.text).not.toContain(secret);
    expect((await masked.call('grep', { pattern: 'API_KEY' })).text).not.toContain(secret);
    const edits = [{ oldText: `API_KEY=${mark}`, newText: `API_KEY=${mark}\nPORT=1` }];
    expect((await masked.call('edit', { path: '.env', edits })).text).not.toContain(secret);
    expect(file()).toBe(`HOST=a\nAPI_KEY=${secret}\nPORT=1\n`);
    await writeFile(join(root, '.env'), `HOST=a\nAPI_KEY=${secret}\n`);
    await masked.close();
  });

  test('edits and writes the true bytes where the mark stands', async () => {
    const edits = [{ oldText: `HOST=a\nAPI_KEY=${mark}`, newText: `HOST=b\nAPI_KEY=${mark}` }];
    expect((await agent.call('edit', { path: '.env', edits })).isError).toBe(false);
    expect(file()).toBe(`HOST=b\nAPI_KEY=${secret}\n`);
    expect((await agent.call('write', { path: '.env', content: `# new\nAPI_KEY=${mark}\n` })).isError).toBe(false);
    expect(file()).toBe(`# new\nAPI_KEY=${secret}\n`);
  });

  test.each([
    ['write', { path: 'other', content: '' }],
    ['edit', { path: '.env', edits: [{ oldText: '# new', newText: '' }] }],
  ])('writes nothing with a mark that the file has no secret for: %s', async (tool, args) => {
    const forged = mark.replace(/[0-9a-f]{12}/, '000000000000');
    const given = JSON.parse(JSON.stringify(args).replace('""', JSON.stringify(`KEY=${forged}`)));
    const before = file();
    const refused = await agent.call(tool, given);
    expect([refused.isError, refused.text]).toEqual([true, expect.stringContaining(forged)]);
    expect(file()).toBe(before);
  });
});
