import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { until } from '../../support/until.js';

const compiler = ['cc', 'gcc', 'clang'].find((name) => {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
});

let tools = '';
let dataDir = '';
let server: Server | undefined;

beforeAll(async () => {
  tools = await realpath(await mkdtemp(join(tmpdir(), 'hook-client-')));
  if (compiler !== undefined)
    execFileSync(compiler, [
      ...['-O2', '-Wall', '-Wextra', '-Werror', '-std=c11', '-D_DEFAULT_SOURCE', '-D_DARWIN_C_SOURCE'],
      ...['-o', join(tools, 'native'), 'src/hooks/native/palimpsest-hook.c'],
    ]);
});
afterAll(() => rm(tools, { recursive: true }));
beforeEach(async () => {
  dataDir = await realpath(await mkdtemp(join(tmpdir(), 'hook-data-')));
  await mkdir(join(dataDir, 'hooks'));
});
afterEach(async () => {
  server?.close();
  server = undefined;
  await rm(dataDir, { recursive: true, force: true });
});

/** Serves clients by a function of everything that one sent. */
async function serve(answer: (sent: Buffer, socket: Socket) => void): Promise<void> {
  server = createServer({ allowHalfOpen: true }, (socket) => {
    const chunks: Buffer[] = [];
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('end', () => answer(Buffer.concat(chunks), socket));
  });
  await new Promise<void>((resolve) => server?.listen(join(dataDir, 'watch.sock'), resolve));
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const ALL = [
  { name: 'the native client', command: (): string[] => [join(tools, 'native')], here: compiler !== undefined },
  {
    name: 'the script',
    command: (): string[] => [process.execPath, 'src/hooks/native/palimpsest-hook.mjs'],
    here: true,
  },
];

const unreached = (): Promise<string> => readFile(join(dataDir, 'hooks', 'unreached'), 'utf8');

for (const { name, command, here } of ALL) {
  const run = (input: string | Buffer, ms = 5_000, agent = 'codex'): Promise<Ended> => {
    const [program = '', ...args] = command();
    const child = spawn(program, [...args, agent, dataDir, String(ms)]);
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
  };
  const SILENT = { code: 0, stdout: '', stderr: '' };

  (here ? describe : describe.skip)(name, () => {
    test('sends an event with its agent’s name, and prints the answer', async () => {
      let sent = '';
      await serve((all, socket) => {
        sent = all.toString();
        socket.end('{"answer":"ä"}');
      });
      expect(await run('{"event":1}\n')).toEqual({ code: 0, stdout: '{"answer":"ä"}', stderr: '' });
      expect(sent).toBe('palimpsest-hook 1 codex\n{"event":1}\n');
      expect(existsSync(join(dataDir, 'hooks', 'unreached'))).toBe(false);
    });

    test('sends events of some megabytes', async () => {
      await serve((all, socket) => socket.end(String(all.length)));
      const large = Buffer.alloc(12 * 1024 * 1024, 'x');
      expect((await run(large)).stdout).toBe(String(large.length + 'palimpsest-hook 1 codex\n'.length));
    });

    test('reads a larger event to its end, prints nothing, and stores the reason', async () => {
      await serve((_, socket) => socket.end('never'));
      expect(await run(Buffer.alloc(17 * 1024 * 1024, 'x'))).toEqual(SILENT);
      expect(await unreached()).toBe('the event is too large\n');
    });

    test('gives up on a server that takes too long', async () => {
      await serve((_, socket) => socket.write('half an ans'));
      expect(await run('{}', 150)).toEqual(SILENT);
      expect(await unreached()).toBe('late\n');
    });

    test('gives up on an agent that never ends its event', async () => {
      const [program = '', ...args] = command();
      const child = spawn(program, [...args, 'codex', dataDir, '150']);
      await serve(() => undefined);
      const code = await new Promise((resolve) => child.once('exit', resolve));
      expect(code).toBe(0);
      child.stdin.destroy();
    });

    test('is silent if nothing listens, and starts the watcher once', async () => {
      const started = join(dataDir, 'started');
      const program = join(dataDir, 'a watcher');
      await writeFile(program, `#!/bin/sh\necho "$$ $*" >> '${started}'\n`);
      await chmod(program, 0o700);
      await writeFile(join(dataDir, 'hooks', 'start'), `${program}\nwatch\n--data\n${dataDir}\n`);
      expect(await Promise.all([run('{}'), run('{}'), run('{}')])).toEqual([SILENT, SILENT, SILENT]);
      expect(await unreached()).toBe('nothing listens on watch.sock\n');
      const lines = async (): Promise<readonly string[]> =>
        (await readFile(started, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
      await until(async () => (await lines()).length > 0, Boolean);
      expect(await run('{}')).toEqual(SILENT);
      expect((await lines())[0]).toMatch(new RegExp(`^\\d+ watch --data ${dataDir}$`));
      expect(await lines()).toHaveLength(1);

      const before = new Date(Date.now() - 60_000);
      await utimes(join(dataDir, 'hooks', 'starting'), before, before);
      await run('{}');
      await until(async () => (await lines()).length === 2, Boolean);
    });

    test('does nothing for a data folder that was deleted', async () => {
      await rm(dataDir, { recursive: true });
      expect(await run('{}')).toEqual(SILENT);
      expect(existsSync(dataDir)).toBe(false);
    });

    test('does not write through a link in place of its mark', async () => {
      const other = join(dataDir, 'mine');
      await writeFile(other, 'as before');
      execFileSync('ln', ['-s', other, join(dataDir, 'hooks', 'unreached')]);
      expect(await run('{}')).toEqual(SILENT);
      expect(await readFile(other, 'utf8')).toBe('as before');
    });
  });
}
