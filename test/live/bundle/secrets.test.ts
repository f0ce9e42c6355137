import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { checkBundle } from '../../../src/bundle/check-bundle.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { StoredMask } from '../../../src/redaction/stored-mask.js';
import { askHere } from '../../support/ask-here.js';
import { openClient } from '../../support/context.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';

const SECRET = 'abcDEF123456ghiJKL';
const mask = new StoredMask({ key: Buffer.alloc(32, 7), level: 'known' });
const other = new StoredMask({ key: Buffer.alloc(32, 8), level: 'known' });

describe('a bundle with secrets', () => {
  const name = `sec${randomUUID().slice(0, 8)}`;
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;
  const clients: ContextClient[] = [];
  const run = (...args: string[]) => askHere([...args, '--data', suiteData(), '--json']);
  const path = (file: string): string => join(folder.root, file);

  /** Records the places of a secret in a bundle: a short text, a large one, arguments, a record. */
  async function record(id: string, given: object): Promise<void> {
    const client = await openClient(folder.root, given);
    clients.push(client);
    const session = await client.openSession({ id });
    await session.reportMessage({ role: 'user', text: `API_KEY=${SECRET}` });
    const content = `${'ordinary words\n'.repeat(5_000)}API_KEY=${SECRET}\n`;
    const args = { env: { API_KEY: SECRET } };
    await session.recordCall({ tool: 'bash', args, status: 'ok', content, answer: () => content });
    await session.assemble({ deliver: 'library' });
    expect(await session.isDelivered(60_000)).toBe(true);
  }

  beforeAll(async () => {
    folder = await temporaryRoot();
    await Promise.all([record(`${name}-open`, {}), record(`${name}-masked`, { mask })]);
    for (const args of [
      [`${name}-open`, path('open')],
      [`${name}-masked`, path('masked')],
    ] as const)
      expect(await run('export', ...args)).toMatchObject({ code: 0 });
    expect(await run('export', `${name}-open`, path('redacted'), '--redact')).toMatchObject({ code: 0 });
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await folder.remove();
  });

  test('is refused with the kinds of its secrets, unless this data folder masks nothing', async () => {
    const { code, stdout } = await run('import', path('open'));
    expect([code === 0, JSON.parse(stdout)]).toEqual([
      false,
      {
        error: {
          code: 'secrets',
          message: expect.stringMatching(/^the bundle has 1 secrets \(secret\), .*--mask off/),
        },
      },
    ]);
    expect(JSON.parse((await run('import', path('open'), '--mask', 'off')).stdout)).toMatchObject({ imported: false });
  });

  test('is imported once its secrets are masked, with the marks of any data folder', async () => {
    await expect(checkBundle(path('open'), {}, other)).rejects.toMatchObject({ code: 'secrets' });
    for (const file of ['masked', 'redacted'])
      expect(await checkBundle(path(file), {}, other)).toMatchObject({ header: { transactions: expect.any(Number) } });
  });
});
