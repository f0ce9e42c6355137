import { openSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { MaskSetting } from '../../src/host/environment.js';
import type { AgentMachine } from './agent-machine.js';
import { HarnessApi } from './harness-api.js';
import { type SeededText, seededTexts } from './made-secrets.js';
import { startServe, stdioAgent } from './mcp-clients.js';
import { observe } from './observed-gateway.js';
import type { OtlpReceiver } from './otlp-receiver.js';
import { RecordingLines } from './replays.js';
import { runCli } from './run-cli.js';

export const SEEDED = seededTexts();

/** Where and how sessions with secrets are recorded. */
export interface SeededSetting {
  readonly machine: AgentMachine;
  readonly dataDir: string;
  readonly mask: MaskSetting;
  readonly receiver: OtlpReceiver;
}

const fileOf = ({ text }: SeededText): string => `first line\n${text}\nlast line\n`;

/** Imports a recording whose prompts, texts, arguments, outputs and files hold every secret. */
async function replay({ machine, dataDir, mask }: SeededSetting): Promise<string> {
  const lines = new RecordingLines();
  for (const [i, one] of SEEDED.entries()) {
    if (i % 4 === 0) lines.user(one.text);
    else if (i % 4 === 1) lines.says(one.text);
    else if (i % 4 === 2) lines.reads(`toolu_${i}`, `/p/${i % 20}.txt`, fileOf(one));
    else lines.calls(`toolu_${i}`, 'Bash', { command: one.text }).answers(`toolu_${i}`, `done\n${one.text}`);
    // Each secret is also in an argument and in an output.
    if (i % 4 < 3)
      lines
        .calls(`toolu_more_${i}`, 'Bash', { command: 'env', nested: [{ deep: one.text }] })
        .answers(`toolu_more_${i}`, `exit code 1\n${one.text}`, { failed: i % 8 < 4 });
  }
  const path = await machine.write('seeded.jsonl', lines.text.replaceAll('"s-1"', '"replayed"'));
  const env = { ...machine.env, PALIMPSEST_MASK: mask };
  const opened = await runCli(['open', path, '--no-page', '--json', '--data', dataDir], env);
  return JSON.parse(opened.stdout).session;
}

/** Records calls of an agent over MCP, with a log of all events and an export of traces. */
async function useTools({ machine, dataDir, mask, receiver }: SeededSetting): Promise<void> {
  const root = join(machine.home, `project-${mask}`);
  await mkdir(root);
  const log = openSync(join(dataDir, 'tools.log'), 'a', 0o600);
  const flags = ['--data', dataDir, '--profile', 'rocksdb', '--mask', mask, '--allow-bash', '--session', 'tools'];
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  const agent = await stdioAgent(root, [...flags, '--log-level', 'debug'], env, { stderr: log });
  for (const [i, one] of SEEDED.entries()) {
    const path = `${i % 30}.env`;
    if (i % 5 === 0) await agent.call('bash', { command: `cat <<'END'\n${one.text}\nEND\nexit ${i % 3}` });
    else if (i % 5 === 1) await agent.call('write', { path, content: fileOf(one) });
    else {
      await writeFile(join(root, path), fileOf(one));
      await agent.call('read', { path });
      if (i % 5 === 3) await agent.call('edit', { path, edits: [{ oldText: one.text, newText: `${one.text}\nmore` }] });
      // Nothing fits, so the error names the text.
      if (i % 5 === 4) await agent.call('edit', { path, edits: [{ oldText: `${one.text}!`, newText: one.text }] });
    }
  }
  await agent.call('grep', { pattern: 'first', context: 1 });
  await agent.call('recall', { text: SEEDED[0]?.text ?? '' });
  await agent.call('context', { full: true });
  await agent.close();
}

/** Records messages, calls and notes of a harness over HTTP. */
async function useHarness({ machine, dataDir, mask }: SeededSetting): Promise<void> {
  const serve = await startServe(['--data', dataDir, '--profile', 'rocksdb', '--mask', mask], machine.home);
  const api = new HarnessApi(serve);
  const texts = SEEDED.map(({ text }) => text);
  const id = 'harness';
  await api.call('openSession', undefined, { id, system_prompt: texts.slice(0, 20).join('\n') });
  const messages = texts.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content }));
  await api.call('reportMessages', id, { messages });
  const calls = texts.slice(0, 100).map((text, i) => ({ id: `h${i}`, name: 'look', args: { text }, content: text }));
  await api.call('reportToolCalls', id, { calls });
  await api.call('beginTurn', id, { messages: [{ role: 'user', content: 'Go on.' }] });
  await api.call('beginTurn', id, { layout: 'epoch', messages: [{ role: 'user', content: texts[7] ?? '' }] });
  await api.call('closeSession', id);
  await api.close();
  await serve.close();
  for (const text of [texts[3] ?? '', texts[190] ?? ''])
    await runCli(['note', id, '--text', text, '--data', dataDir], { PALIMPSEST_MASK: mask });
}

/** Sends requests over a gateway, whose log is in the data folder. */
async function useGateway({ dataDir, mask }: SeededSetting): Promise<void> {
  const gateway = await observe(
    (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({ id: 'm', content: SEEDED.slice(0, 50).map(({ text }) => ({ type: 'text', text })) }),
      );
    },
    dataDir,
    mask,
  );
  const messages = SEEDED.map(({ text }, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content: text }));
  const body = Buffer.from(JSON.stringify({ model: 'm', system: SEEDED[3]?.text, messages }));
  await gateway.send('/anthropic/v1/messages', { headers: ['X-Claude-Code-Session-Id', 'wire'], body });
  await gateway.close();
}

/** Records every secret in each way into one data folder. Returns the sessions. */
export async function recordSeeded(setting: SeededSetting): Promise<readonly string[]> {
  const replayed = await replay(setting);
  await useTools(setting);
  await useHarness(setting);
  await useGateway(setting);
  return [replayed, 'tools', 'harness'];
}
