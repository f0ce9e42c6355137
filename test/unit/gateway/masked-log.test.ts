import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { gatewayFolder } from '../../../src/gateway/gateway-log.js';
import type { SentRequest } from '../../../src/gateway/read-log.js';
import { requestHistory } from '../../../src/gateway/request-history.js';
import { openMask } from '../../../src/host/open-mask.js';
import { hashText } from '../../../src/objects/hashes.js';
import { marksIn } from '../../../src/redaction/stored-marks.js';
import { seededTexts } from '../../support/made-secrets.js';
import { type ObservedGateway, observe } from '../../support/observed-gateway.js';
import { until } from '../../support/until.js';

const SEEDED = seededTexts();
const EACH = 50;
const PATH = '/anthropic/v1/messages';
const LONG = 'an ordinary line of a file\n'.repeat(120);

/** Returns messages with some secrets: in a message, a call's input, a result, and JSON in text. */
const messagesOf = (from: number) => [
  {
    role: 'user',
    content: [...SEEDED.slice(from, from + EACH)].map(({ text }, i) =>
      i % 2 === 0 ? { type: 'text', text } : { type: 'tool_result', tool_use_id: `c${i}`, content: `${LONG}${text}\n` },
    ),
  },
  {
    role: 'assistant',
    content: SEEDED.slice(from, from + EACH).map(({ text }, i) => ({
      type: 'tool_use',
      id: `c${i}`,
      name: 'bash',
      input: { command: text, nested: [{ deep: JSON.stringify({ text }) }] },
    })),
  },
];

const body = (count: number): string =>
  JSON.stringify({
    model: 'm',
    // The answer of a thread is kept, too.
    thread: { type: 'create' },
    tools: [{ name: 'bash', input_schema: {} }],
    metadata: { api_token: `s3cr3t${'9aB'.repeat(900)}` },
    messages: Array.from({ length: count }, (_, i) => messagesOf(i * EACH)).flat(),
  });

describe("the gateway's log with a mask", () => {
  let gateway: ObservedGateway;
  const said = SEEDED[7]?.text ?? '';
  beforeAll(async () => {
    gateway = await observe((response, { headers }) => {
      const isRefused = headers.includes('X-Refuse: 1');
      const answer = isRefused
        ? { type: 'error', error: { type: 'bad', message: `no: ${SEEDED[11]?.text}` } }
        : { id: 'msg_1', content: [{ type: 'text', text: said }], applied_edits: [SEEDED[12]?.text] };
      response.writeHead(isRefused ? 400 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
  });
  afterAll(() => gateway.close());
  const headers = ['X-Claude-Code-Session-Id', 's-1', 'User-Agent', `client ${SEEDED[3]?.secret}`];

  test('has none of 200 secrets in any byte, while the wire has all of them', async () => {
    const sizes: number[] = [];
    const log = async (): Promise<Buffer> => {
      const folder = gatewayFolder(gateway.dataDir);
      return Buffer.concat(await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name)))));
    };
    for (const count of [1, 2, 3, 4, 4]) {
      const got = await gateway.send(PATH, { headers, body: Buffer.from(body(count)) });
      expect(got.body.toString()).toContain(JSON.stringify(said).slice(1, -1));
      sizes.push((await log()).length);
    }
    await gateway.send(PATH, { headers: [...headers, 'X-Refuse', '1'], body: Buffer.from(body(1)) });
    await gateway.send(PATH, { headers, body: Buffer.from([0xff, 0xfe, ...Buffer.from(said)]) });
    expect(gateway.upstream.received.slice(0, 5).map((one) => one.body.toString())).toEqual([1, 2, 3, 4, 4].map(body));

    expect(gateway.troubles).toEqual([]);
    // An answer reaches the client before its end is logged.
    const logged: SentRequest[] = [];
    await until(
      async () => logged.push(...(await gateway.logged())),
      (length) => length >= 7,
    );
    const bytes = await log();
    expect(bytes.includes('⟦masked:')).toBe(true);
    const left = SEEDED.filter(({ secret }) => secret.split('\n').some((line) => bytes.includes(line)));
    expect(left.map(({ kind }) => kind)).toEqual([]);
    expect(bytes.includes('9aB9aB')).toBe(false);
    // A body that is sent again is masked and written once.
    expect((sizes[4] ?? 0) - (sizes[3] ?? 0)).toBeLessThan(8_000);

    // Readers still find its session, its messages and its answer.
    const mask = await openMask(gateway.dataDir);
    expect(logged).toHaveLength(7);
    for (const [i, count] of [1, 2, 3, 4, 4].entries()) {
      const request = logged[i];
      expect(request?.session).toMatchObject({ native: 's-1', from: 'header' });
      expect(request && requestHistory(request)?.messages).toHaveLength(count * 2);
      expect(request?.answer?.texts).toEqual([hashText(mask?.text(said) ?? '')]);
    }
    expect(marksIn(logged[5]?.answer?.error?.message ?? '')).toHaveLength(1);
    expect(logged[6]?.spans).toEqual([Buffer.alloc(0)]);
  });
});
