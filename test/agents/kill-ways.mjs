/**
 * Kills gateway, watcher, node and upstream in mid-stream while a client works as Claude Code does.
 * Then checks that the client saw the same as without kills, and that the record lacks and doubles
 * nothing.
 *
 * Usage: npm run build && node test/agents/kill-ways.mjs [KILLS] [SEED] [steer]
 *
 * With `steer`, the gateway steers the session and records it from its requests.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [EVENTS, CALLS_OF_TURN, END_MS] = [30, 5, 240_000];
const MODEL = 'claude-opus-5-5';

/** Names a request as the client made it: a hash, and the number of its messages. */
const nameOf = (body) =>
  `${createHash('sha256').update(body).digest('hex').slice(0, 20)}-${JSON.parse(body).messages.length}`;

/** The answer depends on the request alone, so a restarted upstream gives the same answer. */
function answerTo(named) {
  const [name, count] = named.split('-');
  const isEnd = Number(count) % (2 * CALLS_OF_TURN) === 2 * CALLS_OF_TURN - 1;
  const words = Array.from({ length: EVENTS }, (_, i) => `word ${i} of ${name}. `);
  const usage = { input_tokens: 7, cache_read_input_tokens: 100, cache_creation_input_tokens: 20, output_tokens: 9 };
  const content = [{ type: 'text', text: words.join('') }];
  if (!isEnd) content.push({ type: 'tool_use', id: `toolu_${name}`, name: 'Bash', input: { command: `echo ${name}` } });
  const stop = isEnd ? 'end_turn' : 'tool_use';
  const message = { id: `msg_${name}`, type: 'message', role: 'assistant', model: MODEL, content: [], usage };
  const events = [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...words.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    { type: 'content_block_stop', index: 0 },
    ...content.slice(1).flatMap(({ input, ...block }) => [
      { type: 'content_block_start', index: 1, content_block: { ...block, input: {} } },
      {
        type: 'content_block_delta',
        index: 1,
        delta: { type: 'input_json_delta', partial_json: JSON.stringify(input) },
      },
      { type: 'content_block_stop', index: 1 },
    ]),
    { type: 'message_delta', delta: { stop_reason: stop }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ];
  const pieces = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  return { pieces, text: pieces.join(''), message: { ...message, content, stop_reason: stop } };
}

/**
 * Runs as the upstream: one event every three milliseconds. A steered body is not the client's, so
 * a header has its name. `kept` is the file of the newest body.
 */
function serveUpstream(port, kept) {
  createServer(async (incoming, response) => {
    let body = '';
    for await (const piece of incoming) body += piece;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    writeFileSync(kept, body);
    for (const piece of answerTo(incoming.headers['x-named'] ?? nameOf(body)).pieces) {
      response.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    response.end();
  }).listen(port, '127.0.0.1', () => console.log('ready'));
}

if (process.argv[2] === 'upstream') serveUpstream(Number(process.argv[3]), process.argv[4]);
else await main(Number(process.argv[2] ?? 100), Number(process.argv[3] ?? 1), process.argv[4] === 'steer');

/** Returns pseudo-random numbers below a limit. */
function randomFrom(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function main(kills, seed, isSteered) {
  const random = randomFrom(seed);
  const root = await mkdtemp(join(tmpdir(), 'palimpsest-kill-ways-'));
  const [home, data, project] = ['home', 'data', 'project'].map((name) => join(root, name));
  for (const folder of [home, project]) await mkdir(folder);
  await mkdir(data, { mode: 0o700 });
  const session = randomUUID();
  const newest = join(root, 'newest-body');
  const transcripts = join(home, '.claude', 'projects', project.replace(/[^A-Za-z0-9]/g, '-'));
  await mkdir(transcripts, { recursive: true });
  const transcript = join(transcripts, `${session}.jsonl`);
  const env = { ...process.env, HOME: home, PALIMPSEST_DATA: data };
  const [gatewayPort, upstreamPort] = [await freePort(), await freePort()];
  const cli = (...args) => spawnSync(process.execPath, ['dist/cli.js', ...args], { env, encoding: 'utf8' });

  /** Starts a process and waits for a text of its output. */
  async function started(args, text) {
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    await new Promise((resolve, reject) => {
      const hear = (bytes) => {
        said += bytes;
        if (said.includes(text)) resolve();
      };
      child.stdout.on('data', hear);
      child.stderr.on('data', hear);
      child.once('exit', (code, signal) => reject(new Error(`${args.join(' ')} ended (${code ?? signal}): ${said}`)));
    });
    return child;
  }
  const processes = {};
  const start = {
    gateway: () =>
      started(
        [
          'dist/cli.js',
          'gateway',
          '--port',
          String(gatewayPort),
          '--upstream',
          `anthropic=http://127.0.0.1:${upstreamPort}`,
          ...(isSteered ? ['--steer', '--steer-limit', '5000'] : []),
        ],
        'listens on',
      ),
    watcher: () => started(['dist/cli.js', 'watch'], 'ollow'),
    upstream: () => started([fileURLToPath(import.meta.url), 'upstream', String(upstreamPort), newest], 'ready'),
  };
  const counts = { gateway: 0, watcher: 0, node: 0, upstream: 0 };

  /** Returns the id of the Java process whose arguments name our data folder. */
  function nodeProcess() {
    const { stdout } = spawnSync('pgrep', ['-f', `java .*${data}/`], { encoding: 'utf8' });
    const id = Number(stdout.split('\n', 1)[0]);
    return id > 0 ? id : undefined;
  }

  /** Kills a process of ours, waits until it is gone and starts the next one. */
  async function kill(name) {
    counts[name] += 1;
    if (name === 'node') {
      const java = nodeProcess();
      // The watcher starts the next node. Until then there is nothing to kill.
      if (java === undefined) counts.node -= 1;
      else process.kill(java, 'SIGKILL');
      return;
    }
    const gone = once(processes[name], 'close');
    processes[name].kill('SIGKILL');
    await gone;
    processes[name] = await start[name]();
  }

  /** Sends a body. Returns the bytes of the answer, and whether it came whole. */
  function post(body, atEvent) {
    return new Promise((resolve) => {
      let text = '';
      const end = (isWhole) => resolve({ text, isWhole });
      const headers = {
        'content-type': 'application/json',
        'x-claude-code-session-id': session,
        'x-api-key': 'sk-ant-secret-of-the-test',
        ...(isSteered ? { 'x-named': nameOf(body) } : {}),
      };
      const path = '/anthropic/v1/messages?beta=true';
      const sent = request({ host: '127.0.0.1', port: gatewayPort, path, method: 'POST', headers }, (response) => {
        if (response.statusCode !== 200) text = '';
        response.on('data', (bytes) => {
          if (response.statusCode !== 200) return;
          text += bytes;
          atEvent(text.split('\n\n').length - 1);
        });
        response.once('end', () => end(response.statusCode === 200 && response.complete));
        response.once('error', () => end(false));
      });
      sent.once('error', () => end(false));
      sent.end(body);
    });
  }

  const messages = [];
  const faults = [];
  const sentBodies = [];
  let parent = null;
  let broken = 0;
  function write(entry) {
    const uuid = randomUUID();
    const common = { sessionId: session, cwd: project, version: '2.1.332', isSidechain: false, userType: 'external' };
    const line = { parentUuid: parent, ...common, ...entry, uuid, timestamp: new Date().toISOString() };
    appendFileSync(transcript, `${JSON.stringify(line)}\n`);
    parent = uuid;
  }
  function say(content) {
    messages.push({ role: 'user', content });
    write({ type: 'user', message: { role: 'user', content } });
  }

  try {
    processes.upstream = await start.upstream();
    processes.gateway = await start.gateway();
    if (cli('node', 'start').status !== 0) throw new Error('the node did not start');
    processes.watcher = await start.watcher();
    const targets = Object.keys(counts);
    const began = performance.now();
    say('begin with part 0');
    const bodyNow = () =>
      JSON.stringify({
        model: MODEL,
        max_tokens: 100,
        stream: true,
        system: 'You are an agent.',
        tools: [{ name: 'Bash', description: 'runs a command', input_schema: { type: 'object' } }],
        messages,
      });
    for (let call = 0; counts.gateway + counts.watcher + counts.node + counts.upstream < kills; call += 1) {
      const body = bodyNow();
      const expected = answerTo(nameOf(body));
      const [target, at] = [targets[call % targets.length], 2 + random(EVENTS)];
      let killing;
      let answer;
      do {
        answer = await post(body, (event) => {
          if (event >= at) killing ??= kill(target);
        });
        if (!expected.text.startsWith(answer.text)) faults.push(`call ${call}: the client saw other bytes`);
        if (!answer.isWhole) {
          broken += 1;
          await killing;
        }
      } while (!answer.isWhole);
      if (answer.text !== expected.text) faults.push(`call ${call}: an answer that came whole differs`);
      await killing;
      sentBodies.push(body);
      const { message } = expected;
      messages.push({ role: 'assistant', content: message.content });
      write({ type: 'assistant', requestId: `req_${call}`, message });
      const { id } = message.content[1] ?? {};
      say(
        id === undefined
          ? `go on with part ${call + 1}`
          : [{ type: 'tool_result', tool_use_id: id, content: `output ${call}` }],
      );
    }
    // A steered session is recorded from its requests, so its last messages need another request.
    if (isSteered && !(await post(bodyNow(), () => undefined)).isWhole) faults.push('the last request failed');
    const ended = performance.now();

    const read = (...args) => {
      const { stdout, status } = cli(...args);
      return status === 0 || status === 1 ? JSON.parse(stdout || 'null') : null;
    };
    let found = null;
    while (performance.now() - ended < END_MS) {
      found = read('verify', session, '--json');
      const isThere = isSteered
        ? cli('context', session, '--raw').stdout === readFileSync(newest, 'utf8')
        : JSON.stringify(found).includes(`"gateway":${sentBodies.length}`);
      // Until every acknowledged write is in the database, `verify` does not say that all is well.
      if (isThere && found?.ok === true) break;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    console.log(
      JSON.stringify({ kills: counts, calls: sentBodies.length, broken, seconds: Math.round((ended - began) / 1_000) }),
    );
    console.log(JSON.stringify(found));
    // The transcript has one step for each message. The last message has no answer yet.
    const { turns } = read('log', session, '--json', '-n', '1000');
    const texts = turns.flatMap((turn) => turn.messages.map(({ role, text }) => `${role} ${text}`));
    const called = turns.flatMap((turn) => turn.calls.map(({ call_id, id }) => call_id ?? id));
    for (const [what, list] of [
      ['message', texts],
      ['call', called],
    ])
      if (new Set(list).size !== list.length) faults.push(`a ${what} is doubled`);
    const expectedTexts = messages.flatMap(({ role, content }) =>
      typeof content === 'string'
        ? [`${role} ${content}`]
        : content.flatMap(({ type, text }) => (type === 'text' ? [`${role} ${text}`] : [])),
    );
    const lost = expectedTexts.filter((text) => !texts.includes(text));
    if (lost.length > 0 || texts.length !== expectedTexts.length)
      faults.push(`${lost.length} messages are lost, ${texts.length} are recorded`);
    const results = messages
      .flatMap(({ content }) => (Array.isArray(content) ? content : []))
      .filter(({ type }) => type === 'tool_result');
    if (called.length !== results.length) faults.push(`${called.length} of ${results.length} calls are recorded`);
    const contexts = found?.sessions?.[0]?.contexts ?? {};
    if (found?.ok !== true) faults.push('a context is not proved');
    if (isSteered && cli('context', session, '--raw').stdout !== readFileSync(newest, 'utf8'))
      faults.push('the last context is not the last request');
    if (!isSteered && contexts.byDelivery?.gateway !== sentBodies.length)
      faults.push(`${contexts.byDelivery?.gateway} of ${sentBodies.length} requests are contexts`);
    for (const [i, body] of isSteered ? [] : sentBodies.entries()) {
      // Each call is behind the step of its question: message 2i + 1.
      if (i % Math.ceil(sentBodies.length / 10) !== 0) continue;
      const { stdout } = cli('context', `${session}@step:${2 * i + 1}`, '--raw');
      if (stdout !== body) faults.push(`the context at step ${2 * i + 1} is not request ${i}`);
    }
    console.log(faults.length === 0 ? 'nothing is lost or doubled' : faults.join('\n'));
    process.exitCode = faults.length === 0 ? 0 : 1;
  } finally {
    for (const child of Object.values(processes)) child.kill('SIGKILL');
    cli('node', 'stop');
    if (process.exitCode === 0) await rm(root, { recursive: true, force: true });
    else console.log(`kept ${root}`);
  }
}
