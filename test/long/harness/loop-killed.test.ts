import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { LayoutName } from '../../../src/assembly/assembly-record.js';
import type { CallName, Calls } from '../../../src/extensions/sidecar/protocol.js';
import { linesOf } from '../../../src/extensions/sidecar/protocol.js';
import type { ReportedMessage } from '../../../src/harness/message-schema.js';
import { createContextClient, stopNode } from '../../../src/index.js';
import { cliPath } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';

/** The program beside a harness, spoken to as an extension does, so that it can be killed. */
class Beside {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #answers: AsyncGenerator<string>;
  #ids = 0;

  constructor(root: string, dataDir: string, layout: LayoutName) {
    const env = { ...process.env, NODE_OPTIONS: '', PALIMPSEST_DATA: dataDir };
    this.#child = spawn(process.execPath, [join(dirname(cliPath), 'sidecar.js')], { env });
    this.#child.stderr.resume();
    this.#answers = linesOf(this.#child.stdout);
    this.#child.stdin.write(`${JSON.stringify({ what: 'pi', cwd: root, roots: [root], layout })}\n`);
  }

  async call<N extends CallName>(call: N, params: Calls[N]['params']): Promise<Calls[N]['result']> {
    this.#ids += 1;
    this.#child.stdin.write(`${JSON.stringify({ id: this.#ids, call, params })}\n`);
    const { value } = await this.#answers.next();
    const answer = JSON.parse(String(value));
    if (answer.error !== undefined) throw new Error(answer.error.message);
    return answer.result;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

describe('a model’s context in a harness’s loop', () => {
  let root: string;
  let dataDir: string;
  let beside: Beside | undefined;

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-killed-')));
    dataDir = join(root, '.data');
    for (const n of [1, 2, 3, 4, 5, 6]) await writeFile(join(root, `f${n}.txt`), `file ${n}\n`.repeat(30));
  });

  afterEach(async () => {
    await beside?.kill();
    await stopNode(dataDir);
    await rm(root, { recursive: true, force: true });
  });

  test.each(['ssot', 'epoch'] as const)(
    'is rebuilt byte for byte, layout %s, after kill -9 of database, then program, and a restart',
    async (layout) => {
      const session = 'killed-in-the-loop';
      beside = new Beside(root, dataDir, layout);
      const own = beside;
      await own.call('ready', {});
      const messages: ReportedMessage[] = [{ role: 'user', content: 'read everything', id: 'u1' }];
      let number = 0;
      const step = async (n: number): Promise<void> => {
        number += 1;
        const before = {
          session,
          parent: undefined as never,
          after: 0,
          number,
          prefix: 0,
          messages,
          system: layout === 'ssot' ? `be brief, ${n}` : 'be brief',
        };
        const { parent: _none, ...list } = before;
        const context = await own.call('context', list);
        if (context === null) throw new Error('no context');
        expect(await own.call('handed', { session, sha256: 'a'.repeat(64) as never, chars: n, messages: n })).toEqual({
          kept: true,
          at: { turn: 1, step: expect.any(Number) },
        });
        messages.push(
          {
            role: 'assistant',
            content: '',
            id: `a${n}`,
            tool_calls: [{ id: `call_${n}`, name: 'read', arguments: { path: `f${n}.txt` } }],
          },
          { role: 'toolResult', tool_call_id: `call_${n}`, content: `file ${n}\n`.repeat(30) },
        );
        if (n > 1) await appendFile(join(root, 'f1.txt'), `changed at ${n}\n`);
      };
      for (const n of [1, 2, 3]) await step(n);
      const { jvm } = JSON.parse(await readFile(join(dataDir, 'node.json'), 'utf8'));
      process.kill(jvm.pid, 'SIGKILL');
      for (const n of [4, 5, 6]) await step(n);
      await own.kill();
      await stopNode(dataDir);

      const next = await createContextClient({ dataDir, roots: [root], cwd: root });
      await next.client.backpressure(0, 60_000);
      expect(await next.close()).toEqual({ unflushed: 0 });
      const verified = await runCli(['verify', session, '--data', dataDir, '--json']);
      expect({ code: verified.code, stderr: verified.stderr }).toEqual({ code: 0, stderr: '' });
      const contexts = { total: 6, equal: 6, handedLists: 6, unequal: [] };
      expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, sessions: [{ session, contexts }] });
    },
  );
});
