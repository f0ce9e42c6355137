/**
 * Measures what the gateway adds to a model call: before the first byte, for each event, and in
 * memory while 50 sessions stream at once.
 *
 * Usage: npm run build && node bench/gateway.mjs [CALLS]
 *
 * With `steer`, it measures how long a request waits for its context once the session has 200
 * objects. The upstream takes ANSWER_MS for an answer, by default 300. During this time, the record
 * of the call is stored.
 *
 * npm run build && node bench/gateway.mjs steer [CALLS] [ANSWER_MS]
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processorTime } from './processor-time.mjs';

const [EVENTS, SESSIONS, MESSAGES] = [100, 50, 100];
const isSteering = process.argv[2] === 'steer';
const calls = Number(process.argv[isSteering ? 3 : 2] ?? 300);
const answerMs = Number(process.argv[4] ?? 300);
const OBJECTS = 200;
/** Model calls of a steered turn. The last one answers with words, the others with a tool call. */
const TURN = 6;
const BEFORE = (OBJECTS * TURN) / (TURN - 1);
/** `answer`: the response to a steered request. Before the measured calls, it ends at once. */
let [received, answer, isMeasured] = [0, undefined, false];

/** The upstream. Sends one event every two milliseconds, with the time at which it was written. */
const upstream = createServer({ keepAliveTimeout: 0 }, (incoming, response) => {
  received = 0;
  incoming.on('data', ({ length }) => (received += length));
  incoming.once('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (answer !== undefined) {
      response.write(answer);
      return setTimeout(() => response.end(), isMeasured ? answerMs : 0);
    }
    let sent = 0;
    const next = () => {
      const event = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x'.repeat(40) } };
      response.write(`event: content_block_delta\ndata: ${JSON.stringify({ ...event, at: performance.now() })}\n\n`);
      sent += 1;
      if (sent < EVENTS) setTimeout(next, 2);
      else response.end('event: message_stop\ndata: {"type":"message_stop"}\n\n');
    };
    next();
  });
});
await new Promise((resolve) => upstream.listen(0, '127.0.0.1', resolve));
const direct = `http://127.0.0.1:${upstream.address().port}`;

const folder = await mkdtemp(join(tmpdir(), 'gateway-bench-'));
const inFolder = (...args) => spawnSync(process.execPath, ['dist/cli.js', ...args, '--data', folder]);
// Starts the node first, because no call may wait for the build of a first start.
if (isSteering && inFolder('node', 'start').status !== 0) throw new Error(`no node started in ${folder}`);
const gateway = spawn(
  process.execPath,
  [
    ...['dist/cli.js', 'gateway', '--port', '0', '--data', folder, '--upstream', `anthropic=${direct}`],
    ...(isSteering ? ['--steer', '--steer-limit', '10000'] : []),
  ],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
const base = await new Promise((resolve, reject) => {
  let said = '';
  gateway.stdout.on('data', (bytes) => {
    said += bytes;
    const address = /listens on (\S+)/.exec(said)?.[1];
    if (address !== undefined) resolve(address);
  });
  gateway.once('exit', (code) => reject(new Error(`the gateway ended with ${code}: ${said}`)));
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.once(signal, () => {
    gateway.kill('SIGKILL');
    if (isSteering) inFolder('node', 'stop');
    rmSync(folder, { recursive: true, force: true });
    process.exit(1);
  });

const body = (session) =>
  JSON.stringify({
    model: 'claude-sonnet-4-5',
    stream: true,
    metadata: { user_id: `user_1_account__session_${session}` },
    messages: Array.from({ length: MESSAGES }, (_, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: `${index} ${'a line of text that an agent read. '.repeat(57)}`,
    })),
  });
const agent = new Agent({ keepAlive: true, maxSockets: 200 });
const session = (index) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;

/** Returns the milliseconds before the first byte, and the lag of each event. */
function call(address, text) {
  return new Promise((resolve, reject) => {
    const from = performance.now();
    const sent = request(`${address}/v1/messages`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', 'x-api-key': 'none' },
    });
    sent.once('error', reject);
    sent.once('response', (response) => {
      const [first, lags] = [performance.now() - from, []];
      response.on('data', (bytes) => {
        const now = performance.now();
        for (const [, at] of String(bytes).matchAll(/"at":([\d.]+)/g)) lags.push(now - Number(at));
      });
      response.once('end', () => resolve({ first, lags }));
    });
    sent.end(text);
  });
}

/** Ends the gateway with its database, and removes the folder. */
async function end() {
  gateway.kill();
  await once(gateway, 'close');
  upstream.close();
  agent.destroy();
  if (isSteering) inFolder('node', 'stop');
  await rm(folder, { recursive: true, force: true });
}

const quantile = (values, share) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)];
const row = (name, values) =>
  `| ${name} | ${[0.5, 0.95, 0.99].map((share) => quantile(values, share).toFixed(2)).join(' | ')} |`;

/** Waits until a process uses less than a twentieth of a processor. All records are stored then. */
async function rested(pid) {
  for (let before = 0, now = processorTime(pid); now - before > 50; [before, now] = [now, processorTime(pid)])
    await new Promise((resolve) => setTimeout(resolve, 1_000));
}

/** Steers one session until it has all its objects, then measures. Ends the process. */
async function measureSteering() {
  const messages = [];
  const [added, whole] = [[], { steered: 0, bytes: 0, sent: 0 }];
  const jvm = JSON.parse(readFileSync(join(folder, 'node.json'), 'utf8')).jvm.pid;
  const processors = () => [processorTime(gateway.pid), processorTime(jvm)];
  let begun = processors();
  const event = (data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  for (let index = 0; index < BEFORE + calls; index += 1) {
    const name = `toolu_${index}`;
    const isLast = index % TURN === TURN - 1;
    if (index % TURN === 0)
      messages.push({ role: 'user', content: [{ type: 'text', text: `go on with part ${index}` }] });
    const text = JSON.stringify({
      model: 'claude-opus-5-5',
      stream: true,
      metadata: { user_id: JSON.stringify({ session_id: session(1) }) },
      tools: [{ name: 'Bash', description: 'runs a command', input_schema: { type: 'object' } }],
      messages,
    });
    const said = { type: 'text', text: `part ${index} is done` };
    const block = isLast ? said : { type: 'tool_use', id: name, name: 'Bash', input: {} };
    answer = [
      { type: 'message_start', message: { id: `msg_${index}`, role: 'assistant', content: [], usage: {} } },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_stop' },
    ]
      .map(event)
      .join('');
    isMeasured = index >= BEFORE;
    if (index === BEFORE) {
      await rested(jvm);
      begun = processors();
    }
    const before = isMeasured ? (await call(direct, text)).first : 0;
    const { first } = await call(ways.gateway, text);
    if (isMeasured) {
      added.push(first - before);
      whole.sent += text.length;
      whole.bytes += received;
      if (received < text.length) whole.steered += 1;
    }
    const input = { command: `show part ${index}` };
    messages.push({ role: 'assistant', content: [isLast ? said : { ...block, input }] });
    if (isLast) continue;
    const content = `part ${index}\n${`a line ${index} of output that the command wrote\n`.repeat(30)}`;
    messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: name, content }] });
  }
  const [ours, database] = processors().map((ms, i) => ((ms - begun[i]) / calls).toFixed(0));
  console.log(`${calls} calls of a steered session behind ${OBJECTS} objects, ${whole.steered} of them shorter\n`);
  console.log('| milliseconds | p50 | p95 | p99 |\n|---|---|---|---|');
  console.log(row('first byte, added by steering', added));
  console.log(`\nProcessor time of a call: gateway and sidecar ${ours} ms, database ${database} ms`);
  console.log(`\n${((100 * whole.bytes) / whole.sent).toFixed(0)} % of the client's bytes went out`);
}

const text = body(session(0));
const figures = { direct: { first: [], lags: [] }, gateway: { first: [], lags: [] } };
const ways = { direct, gateway: `${base}/anthropic` };
if (isSteering) {
  await measureSteering();
  await end();
  process.exit();
}
for (let index = 0; index < 20 + calls; index += 1)
  for (const way of index % 2 === 0 ? ['direct', 'gateway'] : ['gateway', 'direct']) {
    const { first, lags } = await call(ways[way], text);
    if (index < 20) continue;
    figures[way].first.push(first);
    figures[way].lags.push(...lags);
  }
const added = (of) => figures.gateway[of].map((value, index) => value - figures.direct[of][index]);

await Promise.all(
  Array.from({ length: SESSIONS }, async (_, index) => {
    for (let round = 0; round < 10; round += 1) await call(ways.gateway, body(session(index)));
  }),
);
const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))?.[1];

console.log(`${calls} calls, ${(text.length / 1000).toFixed(0)} kB a request, ${EVENTS} events an answer\n`);
console.log('| milliseconds | p50 | p95 | p99 |\n|---|---|---|---|');
for (const way of Object.keys(ways)) console.log(row(`first byte, ${way}`, figures[way].first));
console.log(row('first byte, added to each call', added('first')));
for (const way of Object.keys(ways)) console.log(row(`an event, ${way}`, figures[way].lags));
console.log(`\nLargest memory with ${SESSIONS} sessions at once: ${(Number(peak) / 1024).toFixed(0)} MB`);
await end();
