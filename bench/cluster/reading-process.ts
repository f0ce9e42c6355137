/**
 * A client process that reads from a node as fast as it can. Each read is like that of a context:
 * the newest transaction, and twenty documents at that transaction.
 *
 * Arguments: the node's socket, milliseconds, and a file with document ids. Prints `ready` once its
 * connections are open. Begins when it reads a line on standard input. Prints its results as JSON.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { XtdbClient } from '../../src/xtdb/xtdb-client.js';

const DOCUMENTS = 20;
const [socketPath = '', limit = '0', file = ''] = process.argv.slice(2);
const ids = JSON.parse(await readFile(file, 'utf8')) as readonly string[];
const xtdb = new XtdbClient({ kind: 'unix', socketPath });

let at = process.pid * 7;

async function read(): Promise<void> {
  at += 101;
  const wanted = Array.from({ length: DOCUMENTS }, (_, i) => ids[(at + i * 37) % ids.length] ?? '');
  const found = await (await xtdb.db()).entities(wanted);
  if (found.size !== new Set(wanted).size) throw new Error(`the node has ${found.size} of ${DOCUMENTS} documents`);
}

for (let i = 0; i < 20; i++) await read();
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const before = process.cpuUsage();
const end = performance.now() + Number(limit);
const ms: number[] = [];
for (let began = performance.now(); began < end; began = performance.now()) {
  await read();
  ms.push(performance.now() - began);
}
const { user, system } = process.cpuUsage(before);
process.stdout.write(`${JSON.stringify({ ms, processorMs: (user + system) / 1_000 })}\n`);
await xtdb.close();
process.stdin.destroy();
