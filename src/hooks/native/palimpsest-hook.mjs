/**
 * The client of hooks for machines without the native client: `palimpsest-hook.mjs AGENT DATA
 * [MS]`. Node.js takes about 40 ms to start, so `setup` uses this client only if no native one is
 * available. Like the native client, it never fails, prints no errors, and gives up after its time
 * limit.
 */
import { spawn } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

const MOST_INPUT = 16 * 1024 * 1024;
const MOST_ANSWER = 256 * 1024;
const DEFAULT_MS = 200;
const LONGEST_MS = 10_000;
const START_AGAIN_MS = 20_000;

const [agent = '', dataDir = '', limit = ''] = process.argv.slice(2);
const ms = Number(limit) >= 1 && Number(limit) <= LONGEST_MS ? Number(limit) : DEFAULT_MS;
const hooks = join(dataDir, 'hooks');

/** Runs work and ignores its failure. */
function quietly(work) {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function giveUp(reason) {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW = 0 } = constants;
  quietly(() => {
    const mark = openSync(join(hooks, 'unreached'), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
    writeSync(mark, `${reason}\n`);
    closeSync(mark);
  });
  process.exit(0);
}

/** Returns whether this process has to start the watcher now. */
function isStarter() {
  const mark = join(hooks, 'starting');
  const make = () =>
    quietly(() => {
      closeSync(openSync(mark, 'wx', 0o600));
      return true;
    }) === true;
  if (make()) return true;
  const found = quietly(() => statSync(mark));
  if (found === undefined || Date.now() - found.mtimeMs < START_AGAIN_MS) return false;
  quietly(() => rmSync(mark));
  return make();
}

function startWatcher() {
  const [command, ...args] = (quietly(() => readFileSync(join(hooks, 'start'), 'utf8')) ?? '').trim().split('\n');
  if (command === undefined || command === '' || !isStarter()) return;
  const child = spawn(command, args, { detached: true, stdio: 'ignore', windowsHide: true });
  child.once('error', () => undefined);
  child.unref();
}

async function input() {
  const chunks = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    size += chunk.length;
    if (size <= MOST_INPUT) chunks.push(chunk);
  }
  return size > MOST_INPUT ? giveUp('the event is too large') : Buffer.concat(chunks);
}

setTimeout(giveUp, ms, 'late');
const socket = connect(join(dataDir, 'watch.sock'));
const connected = new Promise((resolve) => {
  socket.once('connect', () => resolve(true));
  socket.once('error', () => resolve(false));
});
const event = await input();
if (!(await connected)) {
  startWatcher();
  giveUp('nothing listens on watch.sock');
}
socket.on('error', () => giveUp('watch.sock broke off'));
socket.end(Buffer.concat([Buffer.from(`palimpsest-hook 1 ${agent}\n`), event]));
const answer = [];
for await (const chunk of socket) answer.push(chunk);
const text = Buffer.concat(answer);
if (text.length > MOST_ANSWER) giveUp('the answer is too large');
process.stdout.write(text, () => process.exit(0));
