import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { watchSocket } from '../../../src/agents/hooks/hook-folder.js';
import { serveHooks } from '../../../src/hooks/serve-hooks.js';
import { sessionId } from '../../../src/objects/ids.js';
import { chooseSession } from '../../../src/own-sessions/choose-session.js';
import { importSession } from '../../../src/own-sessions/import-session.js';
import type { Companion } from '../../../src/watch/followed.js';
import { gatewayCompanionWith } from '../../../src/watch/gateway-contexts.js';
import { askHere } from '../../support/ask-here.js';
import { suiteData } from '../../support/mcp-clients.js';
import { type ObservedGateway, observe } from '../../support/observed-gateway.js';
import { RecordingLines, suiteDatabase } from '../../support/replays.js';
import { until } from '../../support/until.js';
import { WatchedMachine } from '../../support/watched.js';

/** The ways over which a session is recorded. */
interface Ways {
  readonly transcript: 'watched' | 'imported' | 'none';
  readonly hooks?: true;
  readonly gateway?: true;
}

const BEFORE = 'one\ntwo\n';
const AFTER = 'one\nTWO\n';

let watched: WatchedMachine;
let gateway: ObservedGateway;
let answer: object;
beforeEach(async () => {
  watched = await WatchedMachine.create();
  await mkdir(watched.dataDir, { mode: 0o700, recursive: true });
  gateway = await observe((response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer));
  }, watched.dataDir);
});
afterEach(async () => {
  await gateway.close();
  await watched.remove();
});

const at = (): string => `.claude/projects/-project/${watched.prefix}.jsonl`;

/** Sends an event as Claude Code's hook does. Resolves once the agent may continue. */
function ring(event: object): Promise<void> {
  const common = { session_id: watched.prefix, transcript_path: watched.path(at()), cwd: watched.path('project') };
  return new Promise((resolve, reject) => {
    const socket = connect(watchSocket(watched.dataDir));
    socket.resume();
    socket.once('close', () => resolve());
    socket.once('error', reject);
    socket.end(`palimpsest-hook 1 claude-code\n${JSON.stringify({ ...common, ...event })}`);
  });
}

const hookedHere: Companion = (followed, host) => serveHooks(watchSocket(host.dataDir), followed, host);

interface Line {
  readonly type: 'user' | 'assistant';
  readonly message: { readonly content: string | readonly Record<string, unknown>[] };
}

/** Returns a line of the transcript with the session's name. Answers get the provider's id. */
function lineOf(text: string, i: number): Line {
  const line = JSON.parse(text) as Line;
  const own = { sessionId: watched.prefix, cwd: watched.path('project'), timestamp: new Date().toISOString() };
  const message = line.type === 'assistant' ? { ...line.message, id: `msg_${watched.prefix}_${i}` } : line.message;
  return { ...line, ...own, message };
}

const scriptOf = (file: string): readonly string[] =>
  new RecordingLines()
    .user('look at the file')
    .reads('toolu_read', file, BEFORE)
    .says('It has two lines.')
    .user('change the second one')
    .edits('toolu_edit', file, BEFORE, 'two', 'TWO')
    .says('It is changed.')
    .user('what is left?')
    .says('Nothing.').lines;

/** Sends a request and lets the upstream answer. Returns its body. */
async function asks(messages: readonly object[], content: unknown, i: number): Promise<string> {
  answer = {
    ...{ id: `msg_${watched.prefix}_${i}`, type: 'message', role: 'assistant', model: 'a-model', content },
    usage: { input_tokens: 9 },
  };
  const tools = [{ name: 'Read' }, { name: 'Edit' }];
  const body = JSON.stringify({ model: 'a-model', max_tokens: 100, system: 'You are an agent.', tools, messages });
  const headers = ['content-type', 'application/json', 'x-claude-code-session-id', watched.prefix];
  expect((await gateway.send('/anthropic/v1/messages', { headers, body })).start).toBe('200 OK');
  return body;
}

/** Works as Claude Code does: a read, an edit, a question. Returns the bodies of its requests. */
async function work({ transcript, hooks, gateway: isBehind }: Ways): Promise<readonly string[]> {
  const file = watched.path('project/a.ts');
  await watched.write('project/a.ts', BEFORE);
  const messages: object[] = [];
  const bodies: string[] = [];
  let call: Record<string, unknown> = {};
  for (const [i, text] of scriptOf(file).entries()) {
    const line = lineOf(text, i);
    const { content } = line.message;
    const isAnswer = line.type === 'assistant';
    const blocks = typeof content === 'string' ? [] : content;
    if (isAnswer && isBehind) bodies.push(await asks(messages, content, i));
    const result = blocks.find(({ type }) => type === 'tool_result');
    const hooked = { tool_name: call.name, tool_input: call.input, tool_use_id: call.id };
    if (result !== undefined && hooks) await ring({ hook_event_name: 'PreToolUse', ...hooked });
    // The file stays as it was until the read is recorded with the file on disk.
    if (call.name === 'Edit' && transcript === 'watched') await watched.reached(watched.prefix, 5);
    if (call.name === 'Edit') await writeFile(file, AFTER);
    if (result !== undefined && hooks)
      await ring({ hook_event_name: 'PostToolUse', ...hooked, tool_response: { ok: true } });
    if (typeof content === 'string' && hooks) await ring({ hook_event_name: 'UserPromptSubmit', prompt: content });
    // The agent forgets its history before the third turn, which only its request shows.
    if (content === 'what is left?' && transcript !== 'none') messages.length = 0;
    call = blocks.find(({ type }) => type === 'tool_use') ?? {};
    messages.push({ role: line.type, content });
    if (transcript !== 'none') await watched.append(at(), `${JSON.stringify(line)}\n`);
  }
  return bodies;
}

/** Records a session over some ways. Returns the bodies of its requests. */
async function record(ways: Ways): Promise<readonly string[]> {
  const { transcript } = ways;
  const isLive = transcript === 'watched';
  const companions = [
    ...(ways.hooks ? [hookedHere] : []),
    gatewayCompanionWith({ againMs: 50, giveUpMs: isLive ? 600_000 : 0 }),
  ];
  if (isLive) await watched.start({}, companions);
  const bodies = await work(ways);
  if (transcript === 'none') await watched.start({}, companions);
  if (transcript === 'imported') {
    const chosen = await chooseSession(watched.path(at()), { sessions: [], mask: async () => undefined });
    await importSession(chosen, { database: { ...suiteDatabase(), dataDir: watched.dataDir }, store: watched.store });
  }
  await watched.reached(watched.prefix, transcript === 'none' ? 9 : 10);
  await until(
    async () => (await watched.store.latest()).assemblies(sessionId(watched.prefix)).catch(() => []),
    (found) => {
      return found.filter(({ sent }) => sent !== undefined).length >= bodies.length;
    },
  );
  await watched.stop();
  return bodies;
}

const ask = (...args: readonly string[]) => askHere([...args, '--data', suiteData()]);

/** Runs a command about the session and returns its JSON. */
async function asked(...args: readonly string[]) {
  const { code, stdout, stderr } = await ask(...args, '--json');
  expect({ code, stderr, stdout: code === 0 ? '' : stdout }).toEqual({ code: 0, stderr: '', stdout: '' });
  return JSON.parse(stdout);
}

/** Returns the turns in which an object was sent, shown by the transcript, or not seen. */
async function sighted(name: string) {
  const { sessions } = await asked('who', name, '--session', watched.prefix);
  const [found] = sessions.filter(({ session }: { session: string }) => session === watched.prefix);
  return { sent: found.sent, transcript: found.transcript, unseen: found.unseen };
}

const ALL = [1, 2, 3];
const TOLD = { sent: [], transcript: ALL, unseen: [] };
const UNTIL_FORGOTTEN = { sent: [1, 2], transcript: [], unseen: [] };

describe.each<{
  readonly ways: Ways;
  readonly read: object;
  readonly edit: object;
  readonly kind: string;
  readonly last: readonly string[];
}>([
  {
    ways: { transcript: 'imported' },
    read: TOLD,
    edit: { ...TOLD, transcript: [2, 3] },
    kind: 'transcript',
    last: ['Nothing.'],
  },
  {
    ways: { transcript: 'watched', hooks: true },
    read: TOLD,
    edit: { ...TOLD, transcript: [2, 3] },
    kind: 'transcript',
    last: ['Nothing.'],
  },
  {
    ways: { transcript: 'none', gateway: true },
    read: { ...TOLD, sent: ALL, transcript: [] },
    edit: { ...TOLD, sent: [2, 3], transcript: [] },
    kind: 'sent',
    last: [],
  },
  {
    ways: { transcript: 'watched', hooks: true, gateway: true },
    read: UNTIL_FORGOTTEN,
    edit: { ...UNTIL_FORGOTTEN, sent: [2] },
    kind: 'sent',
    last: ['Nothing.'],
  },
])('a session of Claude Code over $ways', ({ ways, read, edit, kind, last }) => {
  test('has the right answer, or “not seen”, in each cell', async () => {
    const bodies = await record(ways);
    const id = watched.prefix;
    const { turns } = await asked('log', id);
    const said = turns.toReversed().map((turn: Turn) => ({
      texts: turn.messages.flatMap(({ text }) => (text === '' ? [] : [text])),
      calls: turn.calls.map((one) => [one.tool.toLowerCase(), one.status]),
    }));
    expect(said).toEqual([
      { texts: ['look at the file', 'It has two lines.'], calls: [['read', 'ok']] },
      { texts: ['change the second one', 'It is changed.'], calls: [['edit', 'ok']] },
      { texts: ['what is left?', ...last], calls: [] },
    ]);

    const [readCall = '', editCall = ''] = turns.toReversed().flatMap(({ calls }: Turn) => calls.map((one) => one.id));
    expect(await sighted(readCall)).toEqual(read);
    expect(await sighted(editCall)).toEqual(edit);

    const text = async (...args: readonly string[]): Promise<string> => (await ask(...args)).stdout;
    const isSent = kind === 'sent';
    const listed = (await text('report', 'list', id)).split('\n').filter((line) => /^ +\d/.test(line));
    expect(listed.map((line) => line.replace(/.* \d+ {2}/, ''))).toEqual(
      Array.from({ length: 5 }, () => (isSent ? 'sent' : 'from the transcript')),
    );
    expect(await text('report', 'detail', `${id}@turn:2`)).toMatch(/ (edit|Edit) /);
    expect(await text('context', `${id}@turn:2`)).toContain(
      isSent ? 'the handed-out context (gateway), byte for byte' : 'from the transcript, which does not have',
    );
    if (isSent) expect((await ask('context', `${id}@turn:2`, '--raw')).stdout).toBe(bodies[3]);
    expect(await text('diff', id, '--prefix')).toMatch(
      isSent ? /begins with all/ : /, transcript\n {2}begins with all/,
    );
    expect(await text('diff', id, '1..2')).toMatch(/\+(edit|Edit) /);
    const { versions } = await asked('log', '--object', 'a.ts', '--session', id);
    // Without a transcript the file has a name and no text.
    expect(versions).toHaveLength(ways.transcript === 'none' ? 1 : 2);
    expect((await watched.state())?.notices ?? []).toEqual([]);
  });
});

test('a transcript that appears after its session was made from requests adds and repeats nothing', async () => {
  await record({ transcript: 'none', gateway: true });
  const before = await watched.steps(watched.prefix);
  await watched.start({}, [gatewayCompanionWith({ againMs: 50 })]);
  const lines = scriptOf(watched.path('project/a.ts')).map(lineOf);
  await watched.append(at(), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await until(watched.state, (state) => state?.failed[0]?.reason.includes('continues that way') === true);
  expect(await watched.steps(watched.prefix)).toEqual(before);

  // The session continues at once, from its requests.
  const said = lines.map(({ type, message: { content } }) => ({ role: type, content }));
  const next = [...said, { role: 'user', content: 'go on' }];
  const body = await asks(next, [{ type: 'text', text: 'As you like.' }], lines.length);
  await until(
    async () => (await ask('context', watched.prefix, '--raw')).stdout,
    (sent) => sent === body,
  );
  await watched.stop();
  const steps = await watched.steps(watched.prefix);
  expect(steps.length).toBe(before.length + 2);
  const calls = steps.flatMap(({ call }) => call?.id ?? []);
  expect(calls.map((call) => call.replace(/@.*/, ''))).toEqual(['toolu_read', 'toolu_edit']);
  const texts = steps.flatMap(({ message }) => (message === undefined || message.text === '' ? [] : [message.text]));
  expect(new Set(texts).size).toBe(texts.length);
  expect(texts.slice(-2)).toEqual(['Nothing.', 'go on']);
  expect(await watched.steps(`${watched.prefix}+2`)).toEqual([]);
});

interface Turn {
  readonly messages: readonly { readonly text: string }[];
  readonly calls: readonly { readonly id: string; readonly tool: string; readonly status: string }[];
}
