import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * A session beside an attack. It runs in a separate process, so that it measures the server and not
 * the attacker: `second-session.mjs URL FOLDER PAUSE`, with the server's token in
 * PALIMPSEST_TEST_TOKEN. It reads small files of FOLDER repeatedly until its input ends. Then it
 * requests the log of its sessions and prints one line of JSON:
 *
 * - `reads`: the start of each read and its milliseconds
 * - `wrong`: reads with a wrong answer
 * - `lost`: acknowledged calls that the log lacks
 */
const [url, folder, pauseMs] = process.argv.slice(2);
const authorization = `Bearer ${process.env.PALIMPSEST_TEST_TOKEN}`;
const FILES = 20;
/** Prevents that the length of a session affects the measurement. */
const READS_OF_A_SESSION = 400;
const DELIVERY_LIMIT_MS = 120_000;
/** Reads before the attack begins, to exclude the first session on a new server. */
const WARM_UP = 20;

const reads = [];
const wrong = [];
const acknowledged = new Map();
let isOver = false;
process.stdin.resume().once('end', () => {
  isOver = true;
});

let mcpSession;
async function ask(message) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(mcpSession === undefined ? {} : { 'mcp-session-id': mcpSession }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
  mcpSession ??= response.headers.get('mcp-session-id') ?? undefined;
  const text = await response.text();
  const data = /^data: (.+)$/m.exec(text)?.[1];
  return { status: response.status, message: data === undefined ? undefined : JSON.parse(data), text };
}

const textOf = (number) => `the content of file ${number}\n`;

async function read(number) {
  const session = `beside-${started}-${process.pid}-${Math.floor(number / READS_OF_A_SESSION)}`;
  const path = join(folder, `${number % FILES}.txt`);
  const at = Date.now();
  const from = performance.now();
  const answer = await ask({
    id: number + 2,
    method: 'tools/call',
    params: { name: 'read', arguments: { path, session } },
  }).catch((error) => ({ text: `${error.message}: ${error.cause?.message}` }));
  reads.push([at, Math.round((performance.now() - from) * 10) / 10]);
  const { content, _meta } = answer.message?.result ?? {};
  const call = _meta?.palimpsest?.call;
  if (content?.[0]?.text.endsWith(textOf(number % FILES)) !== true || typeof call !== 'string')
    wrong.push(answer.text.slice(0, 300));
  else acknowledged.set(session, [...(acknowledged.get(session) ?? []), call]);
}

/**
 * Returns the calls of a session that its log lacks. Polls until it has them or delivery takes too
 * long for any machine.
 */
async function lostOf(session, calls) {
  const deadline = Date.now() + DELIVERY_LIMIT_MS;
  for (;;) {
    const response = await fetch(new URL(`/v1/log?session=${session}&limit=1000`, url), { headers: { authorization } });
    const { turns = [] } = await response.json();
    const known = new Set(turns.flatMap((turn) => turn.calls.map(({ id }) => id)));
    const lost = calls.filter((id) => !known.has(id));
    if (lost.length === 0 || Date.now() > deadline) return lost;
    await pause(100);
  }
}

const started = Date.now().toString(36);
await mkdir(folder, { recursive: true });
for (let number = 0; number < FILES; number++) await writeFile(join(folder, `${number}.txt`), textOf(number));
const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'beside', version: '1' } };
await ask({ id: 1, method: 'initialize', params });
await ask({ method: 'notifications/initialized' });
for (let number = 0; number < WARM_UP; number++) await read(number);
reads.length = 0;
process.stdout.write('ready\n');
for (let number = WARM_UP; !isOver; number++) {
  await read(number);
  await pause(Number(pauseMs));
}
const lost = [];
for (const [session, calls] of acknowledged) lost.push(...(await lostOf(session, calls)));
process.stdout.write(`${JSON.stringify({ reads, wrong, lost })}\n`, () => process.exit(0));
