/** The checks of `npm run test:windows`, run by the Node.js of Windows beside the packages. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const cli = join(process.cwd(), 'node_modules', 'palimpsest', 'dist', 'cli.js');
const data = join(homedir(), 'AppData', 'Local', 'palimpsest');
const project = join(homedir(), 'my project');
mkdirSync(join(project, 'src'), { recursive: true });
writeFileSync(join(project, 'src', 'a.ts'), 'alpha\nbeta\n');

function start(args) {
  return spawn(process.execPath, [cli, ...args], { cwd: project, stdio: ['pipe', 'pipe', 'inherit'] });
}

/** Runs a command to its end and returns its output. */
async function palimpsest(...args) {
  const child = start(args);
  child.stdin.end();
  let output = '';
  for await (const piece of child.stdout.setEncoding('utf8')) output += piece;
  return output;
}

const child = start(['mcp', '--root', '.', '--allow-bash', '--log-level', 'error']);
const waiting = new Map();
createInterface({ input: child.stdout }).on('line', (line) => {
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message);
});
const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const ask = (method, params) =>
  new Promise((resolve) => {
    const id = waiting.size + 1;
    waiting.set(id, resolve);
    send({ id, method, params });
  });
async function call(name, args) {
  const { result } = await ask('tools/call', { name, arguments: args });
  return result.content.map(({ text }) => text).join('\n');
}
const idOf = (text) => /id=(\S+)/.exec(text)?.[1];

const CHECKS = {
  'the program starts': async () => assert.match(await palimpsest('--version'), /^\d+\.\d+\.\d+\s*$/),

  'calls are answered from the journal while the node starts': async () => {
    const clientInfo = { name: 'test', version: '1' };
    await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    send({ method: 'notifications/initialized' });
    assert.match(await call('read', { path: 'src\\a.ts' }), /path=("?)C:\/.*\/my project\/src\/a\.ts.*\nalpha\nbeta/);
    assert.match(await call('ls', { path: 'src\\' }), /\na\.ts/);
    assert.ok(readFileSync(join(data, 'filesystem-id'), 'utf8').length > 60);
  },

  'the node starts with RocksDB, on a port with a token': async () => {
    await palimpsest('node', 'start', '--ready-timeout', '600', '--json');
    const { address, profile } = JSON.parse(readFileSync(join(data, 'node.json'), 'utf8'));
    assert.equal(profile, 'rocksdb');
    // Not `fetch`, which keeps connections alive in a way that Wine does not know.
    const status = (headers) =>
      new Promise((resolve, reject) => {
        get(`${address.origin}/_xtdb/status`, { headers }, (answer) => resolve(answer.resume().statusCode)).on(
          'error',
          reject,
        );
      });
    assert.equal(await status({}), 401);
    assert.equal(await status({ authorization: 'Bearer wrong' }), 401);
    assert.equal(await status({ authorization: `Bearer ${address.token}` }), 200);
  },

  'every spelling of a path means the same file': async () => {
    const ids = [];
    for (const path of [
      'src/a.ts',
      'src\\a.ts',
      'SRC\\A.TS',
      join(project, 'src', 'a.ts'),
      `\\\\?\\${project}\\src\\a.ts`,
    ])
      ids.push(idOf(await call('read', { path })));
    assert.equal(new Set(ids).size, 1);
  },

  'files are found, written and edited': async () => {
    assert.match(await call('grep', { pattern: 'bet' }), /src\/a\.ts:2/);
    assert.match(await call('find', { pattern: '**/*.ts' }), /src\/a\.ts/);
    await call('write', { path: 'src\\new\\n.txt', content: 'hello\n' });
    await call('edit', { path: 'src/new/n.txt', edits: [{ oldText: 'hello', newText: 'bye' }] });
    assert.equal(readFileSync(join(project, 'src', 'new', 'n.txt'), 'utf8'), 'bye\n');
    writeFileSync(join(project, 'src', 'new', 'n.txt'), 'changed\n');
    assert.match(await call('read', { path: 'src/new/n.txt' }), /changed/);
  },

  'names that Windows reads as others, and paths outside the roots, are refused': async () => {
    assert.match(await call('read', { path: 'src/a.ts:stream' }), /^Error: .*no file name/);
    assert.match(await call('write', { path: 'nul.txt', content: 'x' }), /^Error: .*device/);
    assert.match(await call('read', { path: 'src/a.ts.' }), /^Error: .*drops the end/);
    assert.match(await call('read', { path: 'C:\\windows\\win.ini' }), /^Error: .*outside/);
  },

  'a command runs in the project': async () =>
    assert.match(await call('bash', { command: 'echo "a b" & cd' }), /"a b"\s+C:\\.*my project/),

  'the context comes from the database': async () => {
    const text = await call('context', { full: true });
    for (const part of ['alpha', 'changed', 'tool=edit', 'my project/src/a.ts']) assert.ok(text.includes(part), part);
    child.stdin.end();
    await new Promise((resolve) => child.once('exit', resolve));
    assert.equal(JSON.parse(await palimpsest('sessions', '--json')).sessions.length, 1);
  },

  'the node ends in order when it is asked to': async () => {
    assert.match(await palimpsest('node', 'stop', '--json'), /"stopped":true/);
    assert.match(
      readFileSync(join(data, 'logs', 'node.log'), 'utf8'),
      /Stopping: request[\s\S]*the node ended by itself\s*$/,
    );
  },
};

let failed = 0;
for (const [name, check] of Object.entries(CHECKS))
  await check().then(
    () => console.log(`ok      ${name}`),
    (error) => {
      failed += 1;
      console.log(`failed  ${name}\n${error.stack}`);
    },
  );
console.log(`${Object.keys(CHECKS).length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
