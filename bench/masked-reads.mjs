/**
 * Measures the cost of masking. Two servers, one without masks, alternately read unseen files of
 * 100 kB. Prints the processor time and clock time of each server per read.
 *
 * Usage: node scripts/build.mjs && node bench/masked-reads.mjs [READS]
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { processorTime } from './processor-time.mjs';

const BYTES = 100_000;
const WARM_UP = 15;
const reads = Number(process.argv[2] ?? 100);
const folder = mkdtempSync(join(tmpdir(), 'masked-reads-'));
const cli = join(import.meta.dirname, '..', 'dist', 'cli.js');

/** Ordinary code: the source of this project. */
const code = readdirSync('src', { recursive: true })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(join('src', name), 'utf8'))
  .join('\n');
const textOf = (n) => `// ${n}\n${code.slice((n * 7_919) % (code.length - BYTES)).slice(0, BYTES)}`;

const run = (args) => execFileSync(process.execPath, [cli, ...args], { stdio: 'ignore' });
const servers = await Promise.all(
  ['off', 'known'].map(async (mask) => {
    const data = join(folder, mask);
    run(['node', 'start', '--data', data]);
    const args = [cli, 'mcp', '--root', folder, '--data', data, '--mask', mask, '--log-level', 'error'];
    const transport = new StdioClientTransport({ command: process.execPath, args, cwd: folder });
    const client = new Client({ name: 'bench', version: '1' });
    await client.connect(transport);
    return { mask, data, client, pid: transport.pid, ms: [] };
  }),
);
for (let n = 0; n < reads + WARM_UP; n += 1) {
  for (const server of n % 2 === 0 ? servers : servers.toReversed()) {
    const path = join(folder, `${server.mask}-${n}.ts`);
    writeFileSync(path, textOf(n));
    const at = performance.now();
    const { isError } = await server.client.callTool({ name: 'read', arguments: { path } });
    if (isError) throw new Error(`${path} was not read`);
    if (n >= WARM_UP) server.ms.push(performance.now() - at);
    if (n === WARM_UP - 1) server.before = processorTime(server.pid);
    // Waits until the step is delivered.
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
}
const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
const [off, known] = servers.map(({ pid, before, ms }) => ({
  cpu: (processorTime(pid) - before) / reads,
  clock: median(ms),
}));
for (const [what, one] of Object.entries({ off, known })) console.log(what, JSON.stringify(one));
console.log('ratio', { cpu: known.cpu / off.cpu, clock: known.clock / off.clock, load: loadavg()[0] });
for (const { client, data } of servers) {
  await client.close();
  run(['node', 'stop', '--data', data]);
}
rmSync(folder, { recursive: true });
