import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { makeFiles, makeFolders } from '../fixtures.js';
import { interleave } from '../interleave.js';
import { quantile } from '../quantile.js';
import type { CaseResult } from '../results.js';
import { residentMiB } from '../stdio-server.js';
import { projectFolder, type Workshop } from '../workshop.js';

/** A running `palimpsest serve`. */
interface Served {
  readonly url: string;
  readonly pid: number;
  close(): Promise<void>;
}

/** A running `palimpsest review`. */
interface Reviewed {
  /** Requests a path as the page does, and returns the body. */
  get(path: string): Promise<string>;
  close(): Promise<void>;
}

async function announced(stream: ChildProcess['stdout'], said: RegExp): Promise<string> {
  let text = '';
  for await (const chunk of stream ?? []) {
    text += String(chunk);
    const url = said.exec(text)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`the server ended before it listened: ${text}`);
}

const closing = (child: ChildProcess) => {
  const ended = once(child, 'exit');
  return async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
};

/** Starts `palimpsest review` over a data folder and enters its page. */
export async function startReviewed(dataDir: string): Promise<Reviewed> {
  const cli = join(projectFolder, 'dist', 'cli.js');
  const args = [cli, 'review', '--no-open', '--port', '0', '--data', dataDir];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const close = closing(child);
  const address = await announced(child.stdout, /page is at (\S+)\n/);
  child.stdout.resume();
  const token = new URLSearchParams(new URL(address).hash.slice(1)).get('token');
  const asked = async (path: string, init: RequestInit): Promise<string> => {
    const answer = await fetch(new URL(path, address), init);
    const body = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${body.slice(0, 300)}`);
    return body;
  };
  const headers = { 'content-type': 'application/json' };
  const entered = await asked('/review/enter', { method: 'POST', headers, body: JSON.stringify({ token }) });
  const authorization = `Bearer ${(JSON.parse(entered) as { readonly secret: string }).secret}`;
  return { get: (path) => asked(path, { headers: { authorization } }), close };
}

/** Starts `palimpsest serve` over a data folder. */
async function startServed(dataDir: string, root: string): Promise<Served> {
  const cli = join(projectFolder, 'dist', 'cli.js');
  const args = ['serve', '--port', '0', '--no-token', '--root', root, '--data', dataDir, '--profile', 'rocksdb'];
  const child = spawn(process.execPath, [cli, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  const close = closing(child);
  const url = await announced(child.stderr, /listens on (\S+)\n/);
  child.stderr.resume();
  return { url, pid: child.pid ?? -1, close };
}

/** The calls that a session repeats in this order. */
const MIX = ['read', 'ls', 'read', 'grep', 'read', 'write', 'read', 'context'] as const;

/** Measures concurrent sessions that call one server over HTTP. */
export async function measureHttp(workshop: Workshop): Promise<CaseResult> {
  const { sessions, calls } = workshop.sizes.load;
  workshop.tell(`${sessions} sessions of ${calls} calls over HTTP`);
  const dataDir = workshop.dataDir('http-data');
  const read = await makeFiles(join(workshop.files, 'http-read'), 'read', 50, { bytes: 4_000, lineLength: 80 });
  const [folder = ''] = await makeFolders(workshop.files, 'http-listed', 1, 200);
  const served = await startServed(dataDir, workshop.files);
  const times = new Map<string, number[]>();
  const argsOf = (name: (typeof MIX)[number], session: number, n: number): Record<string, unknown> => {
    if (name === 'read') return { path: read[(session + n) % read.length] };
    if (name === 'ls') return { path: folder };
    if (name === 'grep') return { pattern: 'fox', path: join(workshop.files, 'http-read'), limit: 20 };
    return name === 'write' ? { path: join(workshop.files, `http-${session}.txt`), content: `call ${n}` } : {};
  };
  const began = performance.now();
  await Promise.all(
    Array.from({ length: sessions }, async (_, session) => {
      const client = new Client({ name: 'bench', version: '1' });
      await client.connect(new StreamableHTTPClientTransport(new URL(served.url)) as Parameters<Client['connect']>[0]);
      for (let n = 0; n < calls; n += 1) {
        const name = MIX[n % MIX.length] ?? 'read';
        const at = performance.now();
        const answer = await client.callTool({ name, arguments: argsOf(name, session, n) }, undefined, {
          timeout: 240_000,
        });
        if (answer.isError === true) throw new Error(`${name}: ${JSON.stringify(answer.content).slice(0, 300)}`);
        times.set(name, [...(times.get(name) ?? []), performance.now() - at]);
      }
      await client.close();
    }),
  );
  const seconds = (performance.now() - began) / 1_000;
  const memory = residentMiB(served.pid) ?? Number.NaN;
  await served.close();
  const all = [...times.values()].flat();
  return {
    cases: [
      {
        kind: 'timed',
        title: `${sessions} sessions of ${calls} calls over HTTP, at the same time`,
        samples: [...times].map(([name, ms]) => ({ name: `a call of ${name}`, ms })),
        yardsticks: [],
      },
      {
        kind: 'counted',
        title: 'The server of these sessions',
        rows: [
          { name: 'calls a second', value: all.length / seconds, unit: '/s' },
          { name: 'memory at the end', value: memory, unit: 'MiB' },
        ],
      },
    ],
    goals: [{ what: 'a call over HTTP, p95', measured: quantile(all, 0.95), bar: 1_000, unit: 'ms' }],
  };
}

/** Measures calls in a folder with very many files. */
export async function measureFolder(workshop: Workshop): Promise<CaseResult> {
  const { files } = workshop.sizes.load;
  workshop.tell(`a folder of ${files} files`);
  const dataDir = workshop.dataDir('folder-data');
  const [folder = ''] = await makeFolders(workshop.files, 'very-many', 1, files);
  const server = workshop.ours(dataDir, 'bench-folder');
  await server.initialize();
  const call = (name: string, args: Readonly<Record<string, unknown>>) => ({
    name: `${name} ${JSON.stringify(args).replace(folder, 'FOLDER')}`,
    prepare: async () => async () => ({ bytes: (await server.call(name, args)).bytes }),
  });
  const samples = await interleave(
    [
      call('ls', { path: folder }),
      call('ls', { path: folder, limit: 10_000 }),
      call('find', { path: folder, pattern: '*7.ts' }),
      call('grep', { path: folder, pattern: 'no such text', limit: 10 }),
    ],
    { warmUp: 1, measured: workshop.sizes.large.rounds, limitMs: workshop.sizes.limitMs * 6 },
  );
  await server.close();
  return {
    cases: [{ kind: 'timed', title: `A folder of ${files} files`, samples, yardsticks: [] }],
    goals: [],
  };
}
