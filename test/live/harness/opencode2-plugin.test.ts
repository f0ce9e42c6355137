import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Cleanup, Opencode2Message, RequestDraft } from '../../../src/extensions/opencode/opencode2-api.js';
import { cliPath, suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import {
  HostMessage,
  type Opencode2Double,
  type OpencodePlugin,
  opencode2Double,
} from '../../support/opencode2-double.js';
import { runCli } from '../../support/run-cli.js';
import { until } from '../../support/until.js';

const dist = dirname(cliPath);
const load = async (): Promise<Readonly<Record<string, unknown>>> => import(join(dist, 'opencode.js'));

describe('the built plugin for OpenCode', () => {
  test('has one export, whose members both versions of OpenCode accept', async () => {
    const module = await load();
    expect(Object.keys(module)).toEqual(['default']);
    expect(module.default).toEqual({ id: 'palimpsest', server: expect.any(Function), setup: expect.any(Function) });
  });

  test('imports no package and waits for nothing while it loads', async () => {
    for (const name of ['opencode.js', 'opencode-plugin.js']) {
      const text = await readFile(join(dist, name), 'utf8');
      const imported = [...text.matchAll(/(?:^|[;\s])(?:import|export)\s[^;]*?\sfrom\s*["']([^"']+)["']/g)];
      const sources = [...imported, ...text.matchAll(/(?:^|[;\s])import\s*["']([^"']+)["']/g)].map(([, from]) => from);
      expect(sources.filter((from) => !/^(?:node:|\.\/)/.test(from ?? ''))).toEqual([]);
      expect(text).not.toMatch(/^(?:\w.*)?\bawait import/m);
    }
  });
});

describe('the plugin in a double of OpenCode 2', () => {
  const env = { ...process.env };
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;
  let host: Opencode2Double;
  let cleanup: Cleanup | undefined;
  let sessionID = '';

  beforeEach(async () => {
    folder = await temporaryRoot();
    await writeFile(join(folder.root, 'a.txt'), 'the only line of a.txt\n');
    Object.assign(process.env, {
      PALIMPSEST_DATA: suiteData(),
      PALIMPSEST_PROFILE: 'memory',
      PALIMPSEST_LOOP_LIMIT_MS: '60000',
      PALIMPSEST_LOOP_LAYOUT: 'ssot',
    });
    sessionID = `ses_${randomUUID()}`;
    host = opencode2Double(folder.root);
    const { default: plugin } = await load();
    cleanup = await (plugin as OpencodePlugin).setup(host.context);
  });
  afterEach(async () => {
    await cleanup?.();
    cleanup = undefined;
    for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
    Object.assign(process.env, env);
    await folder.remove();
  });

  const asked = { id: 'msg_1', role: 'user', content: [{ type: 'text', text: 'look' }] };
  const looked = {
    id: 'msg_2',
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'hidden', providerMetadata: { anthropic: { signature: 's' } } },
      { type: 'tool-call', id: 'call_1', name: 'read', input: { path: 'a.txt' } },
    ],
  };
  const answered = {
    role: 'tool',
    content: [
      { type: 'tool-result', id: 'call_1', name: 'read', result: { type: 'text', value: 'the only line of a.txt\n' } },
    ],
  };
  const draft = (...messages: readonly object[]): RequestDraft => ({
    sessionID,
    model: { providerID: 'scripted', id: 'scripted' },
    system: [{ type: 'text', text: 'be good' }],
    messages: messages.map((message) => new HostMessage(message as Opencode2Message)) as unknown as Opencode2Message[],
  });
  const cli = (...args: readonly string[]) => runCli(args, { PALIMPSEST_DATA: suiteData(), XTDB_URL: undefined });

  test('registers its tools, its command and its hooks, and stops listening when it is unloaded', async () => {
    expect(host.tools.map(({ name }) => name)).toEqual(['activate', 'deactivate', 'pin', 'unpin']);
    expect(host.commands.map(({ name }) => name)).toEqual(['palimpsest']);
    expect([...host.hooks.keys()].sort()).toEqual([
      'permission.evaluate',
      'session.compaction',
      'session.context',
      'session.generate',
      'tool.execute.after',
      'tool.execute.before',
    ]);
    await cleanup?.();
    cleanup = undefined;
    await host.unsubscribed;
  });

  test('supplies the context of a model call, records it, and leaves other requests alone', async () => {
    const request = draft(asked, looked, answered);
    const own = [...request.messages];
    await host.fire('session.context', request);
    expect(JSON.stringify(request.messages)).toContain('ACTIVE_CONTENT');
    expect(request.messages).toContain(own[1]);
    expect(request.system.at(-1)?.text).toContain('Palimpsest keeps your working context');
    const { stdout } = await cli('context', sessionID);
    expect(stdout).toContain('the handed-out context (opencode), byte for byte');
    expect(stdout).toContain('toolcall_ref id=call_1');

    for (const [hook, kind] of [
      ['session.compaction', undefined],
      ['session.generate', undefined],
      ['session.context', 'compaction'],
    ] as const) {
      const other = { ...draft(asked, looked, answered), ...(kind === undefined ? {} : { kind }) };
      await host.fire(hook, other);
      expect(JSON.stringify(other.messages)).not.toMatch(/ACTIVE_CONTENT|hidden/);
      expect(other.system).toHaveLength(1);
    }
  });

  test('reports the answer after the last model call, with its token counts', async () => {
    await host.fire('session.context', draft(asked, looked, answered));
    host.stored.set(sessionID, [
      { id: 'msg_1', type: 'user' },
      { id: 'msg_2', type: 'assistant', content: [] },
      { id: 'msg_3', type: 'assistant', content: [{ type: 'text', text: 'It has one line.' }] },
      { id: 'idle_1', type: 'idle' },
    ]);
    const tokens = { input: 7, output: 5, cache: { read: 11, write: 0 } };
    host.send({ type: 'session.step.ended', data: { sessionID, assistantMessageID: 'msg_3', tokens } });
    host.send({ type: 'session.execution.succeeded', data: { sessionID: 'ses_of_another_folder' } });
    host.send({ type: 'session.execution.succeeded', data: { sessionID } });
    const { stdout } = await until(
      () => cli('log', sessionID, '--json'),
      ({ stdout: log }) => log.includes('It has one line.'),
    );
    expect(stdout).toContain('"cache_read":11');
  });

  test('refuses once to change a file that differs from what the model saw, then allows it', async () => {
    await host.fire('session.context', draft(asked, looked, answered));
    await writeFile(join(folder.root, 'a.txt'), 'another line\n');
    const call = { tool: 'write', sessionID, id: 'call_2', input: { path: 'a.txt', content: 'mine\n' } };
    const asks = async (id: string) => {
      const question = { sessionID, source: { type: 'tool', id }, effect: 'allow', message: undefined };
      await host.fire('tool.execute.before', { ...call, id });
      await host.fire('permission.evaluate', question);
      await host.fire('tool.execute.after', { ...call, id, status: 'error' });
      return question;
    };
    expect(await asks('call_2')).toMatchObject({
      effect: 'deny',
      message: expect.stringContaining('was changed on the disk'),
    });
    expect(await asks('call_3')).toMatchObject({ effect: 'allow', message: undefined });
  });

  test('returns the error of a failed verb instead of ending the turn', async () => {
    await host.fire('session.context', draft(asked));
    const [activate] = host.tools;
    const { content } = await (activate?.execute({ ids: ['no-such-id'] }, { sessionID, id: 'call_9' }) ??
      Promise.reject(new Error('no tool')));
    expect(content).toMatch(/^Error: /);
  });
});
