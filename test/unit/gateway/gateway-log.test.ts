import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, readdir, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { bodySpans } from '../../../src/gateway/body-spans.js';
import { GatewayLog, gatewayFolder, type NewRequest } from '../../../src/gateway/gateway-log.js';
import { gatewayTroubles } from '../../../src/gateway/gateway-report.js';
import { GatewayLogReader, readGatewayLog, type SentRequest } from '../../../src/gateway/read-log.js';
import { canMount, mountSmall, unmount } from '../../support/disk-tricks.js';
import { observe } from '../../support/observed-gateway.js';
import { anthropicStream, stream } from '../../support/scripted-streams.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const silent = { failed: (reason: string) => void expect(reason).toBe('no trouble') };

const request = (body: string): NewRequest => ({
  at: 1_000,
  wire: 'anthropic',
  upstream: 'anthropic',
  path: '/v1/messages',
  headers: { 'x-claude-code-session-id': 's-1' },
  body: Buffer.from(body),
});

const textOf = ({ spans }: SentRequest): string => Buffer.concat(spans).toString('utf8');

async function all(requests: AsyncIterable<SentRequest>): Promise<readonly SentRequest[]> {
  const found: SentRequest[] = [];
  for await (const one of requests) found.push(one);
  return found;
}

async function filesOf(dataDir: string): Promise<readonly string[]> {
  const names = (await readdir(gatewayFolder(dataDir))).filter((name) => name.endsWith('.log'));
  return names.sort().map((name) => join(gatewayFolder(dataDir), name));
}

/** A conversation of some messages. The last one carries the cache mark, as in Claude Code. */
function conversation(count: number): string {
  const messages = Array.from({ length: count }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: [
      {
        type: 'text',
        text: `message ${i} ${'lorem ipsum '.repeat(400)}`,
        ...(i === count - 1 ? { cache_control: { type: 'ephemeral' } } : {}),
      },
    ],
  }));
  return JSON.stringify({ model: 'm', system: [{ type: 'text', text: 'be brief '.repeat(900) }], messages });
}

describe('the spans of a body', () => {
  test('together equal the body, and are the same for messages that are sent again', () => {
    const [first, second] = [conversation(40), conversation(42)].map((text) => Buffer.from(text));
    const [before, after] = [bodySpans(first as Buffer), bodySpans(second as Buffer)];
    expect(Buffer.concat(after).equals(second as Buffer)).toBe(true);
    const known = new Set(before.map((span) => span.toString()));
    const fresh = after.filter((span) => !known.has(span.toString()));
    expect(fresh.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(11_000);
  });

  test.each(['', 'no json', '"', '"\\', '{"a":"\\\\"}', '[[[[', ']]]]', '"'.repeat(9_000), `"${'\\"'.repeat(3_000)}"`])(
    'are the body together for %.20j',
    (text) => {
      expect(Buffer.concat(bodySpans(Buffer.from(text))).toString()).toBe(text);
    },
  );
});

describe("the gateway's log", () => {
  test('returns what was written, and writes a message that is sent again once', () =>
    withTemporaryFolder(async (dataDir) => {
      const log = new GatewayLog(dataDir, silent);
      const sizes: number[] = [];
      for (const count of [1, 21, 41, 61, 63]) {
        const open = await log.begin(request(conversation(count)));
        await open?.end({ status: 200, id: `msg_${count}` });
        sizes.push((await stat((await filesOf(dataDir))[0] ?? '')).size);
      }
      await log.close();
      const [file = ''] = await filesOf(dataDir);
      const found = await all(readGatewayLog(file));
      expect(found.map(textOf)).toEqual([1, 21, 41, 61, 63].map(conversation));
      expect(found.map(({ answer }) => answer?.id)).toEqual(['msg_1', 'msg_21', 'msg_41', 'msg_61', 'msg_63']);
      expect(found[0]?.session).toEqual({ agent: 'claude-code', native: 's-1', from: 'header' });
      // Two new messages of 4.8 kB, not 63.
      expect((sizes[4] ?? 0) - (sizes[3] ?? 0)).toBeLessThan(13_000);
    }));

  test('logs a body that was prepared like any other', () =>
    withTemporaryFolder(async (dataDir) => {
      const log = new GatewayLog(dataDir, silent);
      for (const count of [1, 21, 41]) {
        const made = request(conversation(count));
        if (count !== 21) log.prepare(made.body);
        await (await log.begin(made))?.end({ status: 200 });
      }
      await log.close();
      const found = await all(readGatewayLog((await filesOf(dataDir))[0] ?? ''));
      expect(found.map(textOf)).toEqual([1, 21, 41].map(conversation));
    }));

  test('has a request before the upstream sees it', async () => {
    const found: string[] = [];
    const gateway = await observe(async (response) => {
      const [file = ''] = await filesOf(gateway.dataDir);
      found.push(...(await all(readGatewayLog(file))).map(textOf));
      await stream(response, anthropicStream('msg_1'));
    });
    await gateway.send('/anthropic/v1/messages', { body: conversation(3) });
    expect(found).toEqual([conversation(3)]);
    await gateway.close();
  });

  test('loses only the entry that was cut off, wherever the file ends', () =>
    withTemporaryFolder(async (dataDir) => {
      const log = new GatewayLog(dataDir, silent);
      const bodies = ['{"messages":[1]}', '{"messages":[1,2]}', '{"messages":[1,2,3]}'];
      for (const body of bodies) await (await log.begin(request(body)))?.end({ status: 200 });
      await log.close();
      const [file = ''] = await filesOf(dataDir);
      const whole = await readFile(file);
      for (let size = whole.length; size >= 0; size -= 1) {
        await truncate(file, size);
        const found = (await all(readGatewayLog(file))).map(textOf);
        expect(found).toEqual(bodies.slice(0, found.length));
      }
      expect(await all(readGatewayLog(file))).toEqual([]);
    }));

  test('never returns a changed body from a damaged file', () =>
    withTemporaryFolder(async (dataDir) => {
      const log = new GatewayLog(dataDir, silent);
      const bodies = ['{"messages":["one"]}', '{"messages":["one","two"]}'];
      for (const body of bodies) await (await log.begin(request(body)))?.end({ status: 200 });
      await log.close();
      const [file = ''] = await filesOf(dataDir);
      const whole = await readFile(file);
      for (let at = 0; at < whole.length; at += 1) {
        const damaged = Buffer.from(whole);
        damaged.writeUInt8(255 - (damaged[at] ?? 0), at);
        await writeFile(file, damaged);
        for (const body of (await all(readGatewayLog(file))).map(textOf)) expect(bodies).toContain(body);
      }
    }));

  test('is read while it grows, each request once', () =>
    withTemporaryFolder(async (dataDir) => {
      const log = new GatewayLog(dataDir, silent);
      const reader = new GatewayLogReader(gatewayFolder(dataDir));
      expect(await all(reader.more())).toEqual([]);
      const first = await log.begin(request('{"messages":["first"]}'));
      expect(await all(reader.more())).toEqual([]);
      const second = await log.begin(request(conversation(5)));
      await second?.end({ status: 200 });
      expect((await all(reader.more())).map(textOf)).toEqual([conversation(5)]);
      await first?.end(undefined);
      expect((await all(reader.more())).map(textOf)).toEqual(['{"messages":["first"]}']);
      expect(await all(reader.more())).toEqual([]);
      await log.close();
    }));

  test('waits for the rest of an entry that is being written', () =>
    withTemporaryFolder(async (dataDir) => {
      const log = new GatewayLog(dataDir, silent);
      await (await log.begin(request(conversation(2))))?.end({ status: 200 });
      await log.close();
      const [file = ''] = await filesOf(dataDir);
      const whole = await readFile(file);
      await withTemporaryFolder(async (folder) => {
        // The name is a part of the checksums.
        const growing = join(folder, basename(file));
        await writeFile(growing, '');
        const reader = new GatewayLogReader(folder);
        const found: string[] = [];
        for (let at = 0; at < whole.length; at += 501) {
          await appendFile(growing, whole.subarray(at, at + 501));
          found.push(...(await all(reader.more())).map(textOf));
        }
        expect(found).toEqual([conversation(2)]);
      });
    }));

  test('is read beside a folder, a link and a pipe that are named like logs', () =>
    withTemporaryFolder(async (dataDir) => {
      const log = new GatewayLog(dataDir, silent);
      await (await log.begin(request('{"messages":[1]}')))?.end({ status: 200 });
      await log.close();
      const foreign = join(gatewayFolder(dataDir), '0-');
      await mkdir(`${foreign}folder.log`);
      await symlink('0-loop.log', `${foreign}loop.log`);
      execFileSync('mkfifo', [`${foreign}pipe.log`]);
      const found = await all(new GatewayLogReader(gatewayFolder(dataDir)).more());
      expect(found.map(textOf)).toEqual(['{"messages":[1]}']);
    }));

  test('begins a new file above a size; the new file repeats the spans that it needs', () =>
    withTemporaryFolder(async (dataDir) => {
      const log = new GatewayLog(dataDir, silent, { largestFile: 20_000 });
      const open = await log.begin(request(conversation(1)));
      for (const count of [2, 3, 4, 5]) await (await log.begin(request(conversation(count))))?.end({ status: 200 });
      await open?.end({ status: 200 });
      await log.close();
      const files = await filesOf(dataDir);
      expect(files.length).toBeGreaterThan(1);
      const found = await all(new GatewayLogReader(gatewayFolder(dataDir)).more());
      expect(new Set(found.map(textOf))).toEqual(new Set([1, 2, 3, 4, 5].map(conversation)));
    }));

  (canMount() ? test : test.skip)(
    'never stops the agent on a full disk, says it once, and logs again when there is room',
    () =>
      withTemporaryFolder(async (dataDir) => {
        mountSmall(dataDir, '256k');
        const gateway = await observe((response) => stream(response, anthropicStream('msg_1')), dataDir);
        try {
          const large = conversation(60);
          const pass = async (body: string): Promise<void> => {
            const answer = await gateway.send('/anthropic/v1/messages', { body });
            expect(answer.body.toString('utf8')).toBe(anthropicStream('msg_1'));
            expect(gateway.upstream.received.at(-1)?.body.toString('utf8')).toBe(body);
          };
          await pass(conversation(2));
          await pass(large);
          await pass(large);
          expect(gateway.troubles).toHaveLength(1);
          expect(gateway.troubles[0]).toMatch(/a model call is not logged: .*The agent continues/);
          expect(await gatewayTroubles(dataDir)).toMatchObject([{ pid: process.pid, missed: 2, isRunning: true }]);
          await pass(conversation(4));
          expect((await gateway.logged()).map(textOf)).toEqual([conversation(2), conversation(4)]);
        } finally {
          await gateway.close();
          unmount(dataDir);
        }
      }),
  );
});
