import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { HarnessClient } from '../../../src/harness/harness-client.js';
import type { HarnessSession } from '../../../src/harness/harness-session.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { openClient, testAddress } from '../../support/context.js';

/** So many bytes that documents with them would exceed `MOST_STORED`. */
const BYTES = 300_000;
/** Maximum size of the documents of a few short steps. */
const MOST_STORED = 30_000;

let root: string;
let xtdb: XtdbClient;
let harness: HarnessClient;
let session: HarnessSession;
const id = `binary-${randomUUID()}`;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-binary-')));
  xtdb = new XtdbClient(testAddress());
  harness = new HarnessClient(await openClient(root), { mineShell: false, strict: false });
  session = await harness.openSession({ id });
});
afterEach(async () => {
  await harness.close();
  await xtdb.close();
  await rm(root, { recursive: true, force: true });
});

test('images and binary results are recorded as one line or as hashes, and none of their bytes', async () => {
  const from = (await xtdb.latestCompletedTx())?.txId ?? -1;
  const pixels = randomBytes(BYTES);
  const data = pixels.toString('base64');
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
  const url = { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } };
  await session.reportMessages([{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] }]);
  const shot = await session.reportToolCall({ name: 'screenshot', args: {}, content: [url] });
  await writeFile(join(root, 'a.png'), pixels);
  const read = await session.reportToolCall({ name: 'read', args: { path: 'a.png' }, content: [image] });
  await Promise.all([shot.applied, read.applied]);
  const context = await session.beginTurn({ messages: [{ role: 'user', content: [image] }] });
  await harness.client.delivered();

  expect((await session.session.load(shot.callId))?.version.content).toBe(`[image image/png ${BYTES} bytes]`);
  expect(JSON.stringify(context)).toContain(`What is this?\\n[image image/png ${BYTES} bytes]`);
  const logged = await xtdb.log.documentsAfter(from, { maxBytes: 64 * 1_048_576 });
  const stored = logged.flatMap(({ puts }) => puts.map(({ document }) => JSON.stringify(document)));
  const own = stored.filter((document) => document.includes(id) || document.includes(root));
  expect(own.length).toBeGreaterThan(5);
  expect(own.join('').length).toBeLessThan(MOST_STORED);
  // Other suites write beside this one.
  const all = stored.join('\n');
  for (const at of [0, 100_000, 200_000]) expect(all).not.toContain(data.slice(at, at + 60));
});
