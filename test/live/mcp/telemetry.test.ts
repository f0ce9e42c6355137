import { once } from 'node:events';
import { mkdir, mkdtemp, open, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import parsePrometheus from 'parse-prometheus-text-format';
import { inspectJournals } from '../../../src/journal/journals.js';
import { clientFolder } from '../../../src/process/data-folder.js';
import { httpAgent, startServe, stdioAgent } from '../../support/mcp-clients.js';
import { type OtlpReceiver, type ReceivedSpan, startReceiver } from '../../support/otlp-receiver.js';
import { until } from '../../support/until.js';
import { testNodeAddress } from '../../support/xtdb.js';

/** Relays TCP to the suite's node once `isOpen` returns true. Until then connections hang. */
function relayTo(socketPath: string, isOpen: () => boolean): Server {
  return createServer((client) => {
    client.on('error', () => undefined);
    if (!isOpen()) return void client.resume();
    const node = connect(socketPath);
    for (const [from, to] of [
      [client, node],
      [node, client],
    ] as const) {
      from.on('error', () => to.destroy());
      from.pipe(to);
    }
  });
}

const socketPath = (): string => {
  const address = testNodeAddress();
  if (address.kind !== 'unix') throw new Error('the suite has a node on a socket');
  return address.socketPath;
};

describe('telemetry of a server', () => {
  let receiver: OtlpReceiver;
  let folder: string;
  let root: string;
  const exporting = (): Record<string, string> => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-collector',
    OTEL_SERVICE_NAME: 'watched',
    OTEL_BSP_SCHEDULE_DELAY: '20',
    OTEL_METRIC_EXPORT_INTERVAL: '200',
  });

  beforeAll(async () => {
    receiver = await startReceiver();
    folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-telemetry-')));
    root = join(folder, 'hidden-directory-name');
    await mkdir(root);
    await writeFile(join(root, 'hidden-file-name.txt'), 'hidden text of a file\n');
  });
  afterAll(async () => {
    await receiver.close();
    await rm(folder, { recursive: true, force: true });
  });

  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
  const named = (name: string) => (spans: readonly ReceivedSpan[]) => spans.filter((span) => span.name === name);
  const spansOf = (trace: string): readonly ReceivedSpan[] => receiver.spans().filter((span) => span.traceId === trace);

  test('links the spans of a call to its transaction and log lines, and leaks no text or query', async () => {
    const data = join(folder, 'data');
    const log = await open(join(folder, 'log'), 'w');
    const env = { XTDB_URL: `unix:${socketPath()}`, ...exporting() };
    const agent = await stdioAgent(root, ['--data', data, '--log-level', 'debug', '--allow-bash'], env, {
      stderr: log.fd,
    });
    const read = await agent.call('read', { path: 'hidden-file-name.txt' }, { meta: { traceparent } });
    expect(read.text).toContain('hidden text of a file');
    await agent.call('grep', { pattern: 'hidden-pattern' });
    await agent.call('read', { path: 'hidden-missing-file' });
    const shell = await agent.call('bash', { command: 'echo hidden-command; env' });
    // The collector's secrets are hidden from agents' commands.
    expect(shell.text).not.toContain('of-the-collector');
    await agent.call('context', { full: true });
    const delivered = await until(
      () => named('deliver step')(spansOf(traceId)),
      (found) => found.length === 1,
    );
    await agent.close();
    await log.close();
    const spans = spansOf(traceId);
    const [call] = named('tools/call read')(spans);
    expect(call).toMatchObject({
      parentId: 'b7ad6b7169203331',
      kind: 2,
      isError: false,
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'read',
        'gen_ai.conversation.id': read.meta.session,
        'gen_ai.tool.call.id': read.meta.call,
      },
      resource: { 'service.name': 'watched' },
    });
    expect(delivered[0]).toMatchObject({
      parentId: call?.spanId,
      attributes: { 'gen_ai.tool.call.id': read.meta.call },
    });
    expect(delivered[0]?.attributes['palimpsest.transaction.id']).toEqual(expect.any(Number));
    expect(named('xtdb submit-tx')(spans).map(({ parentId }) => parentId)).toContain(delivered[0]?.spanId);
    const everyName = new Set(receiver.spans().map(({ name }) => name));
    for (const name of ['tools/call bash', 'assemble context', 'deliver heads']) expect([...everyName]).toContain(name);
    expect(
      receiver.spans().find(({ name, isError }) => name === 'tools/call read' && isError)?.attributes['error.type'],
    ).toBe('not-found');
    expect([...receiver.metricNames()]).toEqual(
      expect.arrayContaining([
        'palimpsest.call.duration',
        'palimpsest.steps.acknowledged',
        'palimpsest.failures',
        'palimpsest.delivery.waiting',
      ]),
    );
    expect(receiver.headers.every(({ authorization }) => authorization === 'Bearer of-the-collector')).toBe(true);

    const lines = (await readFile(join(folder, 'log'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const ofCall = lines.filter((line) => line.trace_id === traceId);
    expect(ofCall.map(({ msg }) => msg)).toEqual(expect.arrayContaining(['call', 'delivered']));
    expect(ofCall.find(({ msg }) => msg === 'call')).toMatchObject({
      tool: 'read',
      session: read.meta.session,
      call: read.meta.call,
    });
    expect(ofCall.find(({ write }) => write === 'step')).toMatchObject({
      tx: delivered[0]?.attributes['palimpsest.transaction.id'],
    });

    const sent = Buffer.concat([...receiver.bodies]).toString('latin1');
    expect(sent).toContain('tools/call read');
    for (const secret of ['hidden', folder, root, 'of-the-collector', socketPath()]) expect(sent).not.toContain(secret);
  });

  test('continues the trace of a call when another process delivers its step after a crash', async () => {
    let isOpen = false;
    const relay = relayTo(socketPath(), () => isOpen);
    await once(relay.listen(0, '127.0.0.1'), 'listening');
    const nodeUrl = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`;
    const data = join(folder, 'left');
    const trace = '1af7651916cd43dd8448eb211c80319d';
    const killed = await stdioAgent(root, ['--data', data, '--log-level', 'silent'], { XTDB_URL: nodeUrl });
    const answer = await killed.call('ls', {}, { meta: { traceparent: `00-${trace}-b7ad6b7169203331-01` } });
    expect(answer).toMatchObject({ isError: false });
    process.kill((killed.transport as StdioClientTransport).pid ?? 0, 'SIGKILL');
    await killed.close();
    expect((await inspectJournals(clientFolder(data, nodeUrl)))[0]?.pending).toBeGreaterThan(0);
    isOpen = true;
    const next = await stdioAgent(root, ['--data', data, '--log-level', 'silent'], {
      XTDB_URL: nodeUrl,
      ...exporting(),
    });
    await next.call('ls');
    const [delivered] = await until(
      () => named('deliver step')(spansOf(trace)),
      (found) => found.length > 0,
    );
    expect(delivered).toMatchObject({ isError: false, attributes: { 'gen_ai.tool.call.id': answer.meta.call } });
    await next.close();
    relay.close();
  });

  test('delays no exit for a missing collector, and ignores an invalid setting', async () => {
    const away = createServer().listen(0, '127.0.0.1');
    await once(away, 'listening');
    const { port } = away.address() as AddressInfo;
    await new Promise((resolve) => away.close(resolve));
    const serve = await startServe(['--data', join(folder, 'away')], root, {
      XTDB_URL: `unix:${socketPath()}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_METRIC_EXPORT_INTERVAL: '0',
      OTEL_METRIC_EXPORT_TIMEOUT: '60s',
    });
    const agent = await httpAgent(serve);
    expect((await agent.call('read', { path: 'hidden-file-name.txt' })).text).toContain('hidden text of a file');
    await agent.close();
    // It exits with 1 if something blocks it.
    expect(await serve.close()).toBe(0);
  });

  test('serves the same figures to Prometheus with its token; every alarm names an exported metric', async () => {
    const data = join(folder, 'served');
    const serve = await startServe(['--data', data], root, {
      XTDB_URL: `unix:${socketPath()}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: '',
      OTEL_SDK_DISABLED: '',
    });
    try {
      const agent = await httpAgent(serve);
      await agent.call('read', { path: 'hidden-file-name.txt' });
      await agent.call('read', { path: 'hidden-missing-file' });
      await agent.close();
      const url = new URL('/metrics', serve.url);
      const headers = { authorization: `Bearer ${serve.token}` };
      const asked = (path: string, init: RequestInit) => fetch(new URL(path, serve.url), init);
      await asked('/v1/sessions', {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: '{"id":"told"}',
      });
      const messages = [{ role: 'assistant', content: 'said', usage: { input: 7, output: 3, cache_read: 90 } }];
      await asked('/v1/sessions/told/messages', {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ messages }),
      });
      expect((await fetch(url)).status).toBe(401);
      const answer = await fetch(url, { headers });
      expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
      await answer.body?.cancel();
      // Acknowledged steps are delivered after the answers.
      const text = await until(
        async () => (await fetch(url, { headers })).text(),
        (said) => said.includes('palimpsest_steps_delivered_total'),
      );
      const families = parsePrometheus(text);
      const family = (name: string) => families.find((one) => one.name === name);
      expect(family('palimpsest_steps_acknowledged_total')).toMatchObject({ type: 'COUNTER' });
      expect(family('palimpsest_call_duration_seconds')).toMatchObject({ type: 'HISTOGRAM' });
      expect(family('palimpsest_failures_total')?.metrics).toContainEqual({
        value: '1',
        labels: { error_type: 'not-found' },
      });
      expect(family('palimpsest_sessions_open')?.metrics).toEqual([{ value: expect.stringMatching(/^[12]$/) }]);
      expect(text).toMatch(/^gen_ai_client_token_usage_sum\{[^}]*gen_ai_token_type="input"[^}]*\} 97$/m);
      expect(text).not.toContain('hidden');

      const node = await new Promise<string>((resolve, reject) => {
        const request = connect(socketPath(), () =>
          request.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'),
        );
        let said = '';
        request.on('data', (piece) => {
          said += String(piece);
        });
        request.on('end', () => resolve(said.slice(said.indexOf('\r\n\r\n') + 4)));
        request.on('error', reject);
      });
      const exported = new Set([...families, ...parsePrometheus(node)].map(({ name }) => name));
      expect([...exported].filter((name) => name.startsWith('xtdb_')).length).toBeGreaterThan(8);
      const pages = await readFile('docs/watching.md', 'utf8');
      const mentioned = new Set(
        [...pages.matchAll(/\b(?:palimpsest|xtdb_node|gen_ai_client|http_server|db_client)_\w+/g)].map(
          ([name]) => name,
        ),
      );
      const rare = [
        'palimpsest_node_start_duration_seconds',
        'palimpsest_context_tokens',
        'palimpsest_context_characters',
        'palimpsest_assembly_duration_seconds',
        'xtdb_node_log_reachable',
        // The suite's node has no data folder.
        'xtdb_node_disk_free_bytes',
        'xtdb_node_disk_size_bytes',
      ];
      const base = (name: string): string => name.replace(/_bucket$/, '');
      expect([...mentioned].map(base).filter((name) => !exported.has(name) && !rare.includes(name))).toEqual([]);
    } finally {
      expect(await serve.close()).toBe(0);
    }
  });
});
