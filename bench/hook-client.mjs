/**
 * Measures the client of hooks as the agent sees it: from its start to its end, including its
 * answer.
 *
 * Usage: node bench/hook-client.mjs [RUNS]
 */
import { execFileSync, fork, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

if (process.argv[2] === 'serve') {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.resume();
    socket.once('end', () => socket.end('{"hookSpecificOutput":{"hookEventName":"PreToolUse"}}'));
    socket.on('error', () => socket.destroy());
  });
  server.listen(process.argv[3], () => process.send('ready'));
} else {
  const runs = Number(process.argv[2] ?? 500);
  const folder = await mkdtemp(join(tmpdir(), 'hook-bench-'));
  const [silent, served] = [join(folder, 'silent'), join(folder, 'served')];
  for (const dir of [silent, served]) await mkdir(join(dir, 'hooks'), { recursive: true });
  const [native, script] = [join(folder, 'native'), 'src/hooks/native/palimpsest-hook.mjs'];
  execFileSync('cc', ['-O2', '-std=c11', '-D_DEFAULT_SOURCE', '-o', native, 'src/hooks/native/palimpsest-hook.c']);
  await writeFile(join(folder, 'empty.mjs'), '');
  const server = fork(fileURLToPath(import.meta.url), ['serve', join(served, 'watch.sock')]);
  await new Promise((resolve) => server.once('message', resolve));

  const event = (size) => JSON.stringify({ hook_event_name: 'PostToolUse', tool_response: 'x'.repeat(size) });
  const timed = (command, args, input) =>
    new Promise((resolve) => {
      const from = performance.now();
      const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] });
      child.stdin.on('error', () => undefined);
      child.stdin.end(input);
      child.stdout.resume();
      child.once('close', () => resolve(performance.now() - from));
    });
  const node = process.execPath;
  const small = event(2_000);
  const cases = [
    ['an empty program (`true`)', 'true', [], ''],
    ['native, 2 kB', native, ['codex', served], small],
    ['native through `sh -c`, 2 kB', 'sh', ['-c', `${native} codex ${served}`], small],
    ['native, 1 MB', native, ['codex', served], event(1_000_000)],
    ['native, nothing listens', native, ['codex', silent], small],
    ['an empty script of Node.js', node, [join(folder, 'empty.mjs')], ''],
    ['the script, 2 kB', node, [script, 'codex', served], small],
  ];
  const times = new Map(cases.map(([name]) => [name, []]));
  for (let run = 0; run < runs; run += 1)
    for (const [name, command, args, input] of cases) times.get(name).push(await timed(command, args, input));
  console.log('| client | p50 ms | p95 ms | p99 ms |\n|---|---|---|---|');
  for (const [name, all] of times) {
    all.sort((a, b) => a - b);
    const at = (share) => all[Math.min(all.length - 1, Math.floor(share * all.length))].toFixed(1);
    console.log(`| ${name} | ${at(0.5)} | ${at(0.95)} | ${at(0.99)} |`);
  }
  server.kill();
  await rm(folder, { recursive: true });
}
