import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { hashText } from '../../../src/objects/hashes.js';
import { mentions, openClient, wholeRead } from '../../support/context.js';

describe('the context of a session', () => {
  let root: string;
  let client: ContextClient;
  let session: ContextSession;

  const read = async (name: string, content: string) => {
    await writeFile(join(root, name), content);
    const args = { path: name };
    return session.recordCall({
      tool: 'read',
      args,
      status: 'ok',
      content,
      readings: [await wholeRead(client, name)],
      answer: (id) => id,
    });
  };

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-assembly-')));
    client = await openClient(root);
    session = await client.openSession();
  });

  afterEach(async () => {
    await client.close();
    await rm(root, { recursive: true, force: true });
  });

  test('has prompt, pool, chat and active content in this order [§4.1]', async () => {
    await session.setSystemPrompt('You are a coding agent.');
    await session.reportMessage({ role: 'user', text: 'read a.ts' });
    await session.reportMessage({ role: 'assistant', text: 'Reading it.' });
    await writeFile(join(root, 'b.ts'), 'unread');
    const { callId: listing } = await session.recordCall({
      tool: 'ls',
      args: {},
      status: 'ok',
      content: 'b.ts',
      mentions: await mentions(client, ['b.ts']),
      answer: (id) => id,
    });
    const { callId } = await read('a.ts', 'const x = 1;');
    const [b, , a] = session.state.sets.index;
    const { text, record } = await session.assemble();
    expect(text).toBe(
      [
        'You are a coding agent.',
        '',
        `id=${b} type=file path=${root}/b.ts file_type=ts [unread]`,
        `id=${listing} type=toolcall tool=ls status=ok`,
        `id=${a} type=file path=${root}/a.ts file_type=ts char_count=12`,
        `id=${callId} type=toolcall tool=read status=ok`,
        '',
        'user: read a.ts',
        'assistant: Reading it.',
        `toolcall_ref id=${listing} tool=ls status=ok`,
        `toolcall_ref id=${callId} tool=read status=ok`,
        '',
        `ACTIVE_CONTENT id=${listing}`,
        'b.ts',
        `ACTIVE_CONTENT id=${a}`,
        'const x = 1;',
        `ACTIVE_CONTENT id=${callId}`,
        `file_ref id=${a}`,
      ].join('\n'),
    );
    expect(record).toMatchObject({ session: session.id, turn: 1, step: 4, sha256: hashText(text) });
  });

  test('is rebuilt byte for byte from its basis by another client, after changes and without files [E7]', async () => {
    const assemblies = [];
    for (let i = 0; i < 12; i++) {
      await session.reportMessage({ role: 'user', text: `turn ${i}` });
      await read(`file-${i % 4}.ts`, `version ${i} of the file\n`.repeat(200 + i));
      assemblies.push(await session.assemble({ shortIds: i % 2 === 0, strict: i % 3 === 0 }));
    }
    await rm(root, { recursive: true, force: true });
    await mkdir(root);
    const reviewer = await openClient(root, { filesystemId: client.files.access.mounts.localFilesystemId });
    try {
      for (const { text, record } of assemblies) {
        const { options } = record;
        const again = await reviewer.contextAsOf(
          record.session,
          { validTime: record.basis?.validTime as Date, txId: record.basis?.txId as number },
          options,
        );
        expect(again?.text).toBe(text);
        expect(again?.record.sha256).toBe(record.sha256);
      }
    } finally {
      await reviewer.close();
    }
  });

  test('does not exist before its session', async () => {
    const before = await client.store.now();
    await read('a.ts', 'a');
    const basis = before.basis;
    const other = await client.openSession();
    expect(
      await client.contextAsOf(other.id, { validTime: basis.validTime, txId: basis.txId as number }),
    ).toBeUndefined();
  });

  test('shows another client’s changes of a file', async () => {
    await read('shared.ts', 'first');
    const other = await openClient(root, { filesystemId: client.files.access.mounts.localFilesystemId });
    try {
      const second = await other.openSession();
      await writeFile(join(root, 'shared.ts'), 'second version');
      const readings = [await wholeRead(other, 'shared.ts')];
      await second.recordCall({
        tool: 'read',
        args: { path: 'shared.ts' },
        status: 'ok',
        content: 'second version',
        readings,
        answer: (id) => id,
      });
      const { text } = await session.assemble();
      expect(text).toContain('char_count=14');
      expect(text).toContain('second version');
    } finally {
      await other.close();
    }
  });
});
