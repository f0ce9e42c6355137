import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, realpath, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type HookAgent,
  hookFolder,
  hookState,
  makeHookFolder,
  watchSocket,
} from '../../../src/agents/hooks/hook-folder.js';
import { HarnessClient } from '../../../src/harness/harness-client.js';
import type { HarnessSession } from '../../../src/harness/harness-session.js';
import { serveHooks } from '../../../src/hooks/serve-hooks.js';
import { openClient } from '../../support/context.js';
import { historyOf } from '../../support/object-history.js';
import { until } from '../../support/until.js';

const TEXT = `${Array.from({ length: 60 }, (_, i) => `const line${i + 1} = ${i + 1};`).join('\n')}\n`;
const CHANGED = TEXT.replace('line42 = 42', 'line42 = 24');

let root: string;
let dataDir: string;
let harness: HarnessClient;
let session: HarnessSession;
let served: { close(): Promise<void> };
let native: string;
/** Calls of the transcript that are not recorded yet. */
let written: (() => Promise<unknown>)[];
let notices: string[];
let caughtUp: number;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-hooks-')));
  dataDir = join(root, 'data');
  harness = new HarnessClient(await openClient(root, { track: false }));
  native = randomUUID();
  session = await harness.openSession({ id: native });
  [written, notices, caughtUp] = [[], [], 0];
  const followed = {
    session: async (agent: string, id: string) => ({
      agent,
      native: id,
      session: session.session,
      client: harness.client,
      catchUp: async () => {
        for (const step of written.splice(0)) await step();
        caughtUp += 1;
      },
    }),
  };
  const host = { dataDir, onNotice: (line: string) => notices.push(line), stayAwake: () => undefined };
  await mkdir(dataDir, { mode: 0o700 });
  served = await serveHooks(watchSocket(dataDir), followed, host);
});

afterEach(async () => {
  await served.close();
  await harness.close();
  await rm(root, { recursive: true, force: true });
});

/** Sends a text as a client does, and returns the answer. */
function send(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(watchSocket(dataDir));
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk.toString();
    });
    socket.once('close', () => resolve(answer));
    socket.once('error', reject);
    socket.end(text);
  });
}

async function ring(agent: HookAgent, event: object): Promise<unknown> {
  const base = { session_id: native, transcript_path: join(root, 't.jsonl'), cwd: root };
  const answer = await send(`palimpsest-hook 1 ${agent}\n${JSON.stringify({ ...base, ...event })}`);
  return answer === '' ? undefined : JSON.parse(answer);
}

/** The texts of a file's versions, oldest first. */
async function fileVersions(path: string): Promise<readonly (string | null | undefined)[]> {
  const { id } = await harness.client.files.locate(path, { mustExist: false });
  return (await historyOf(await harness.client.store.latest(), id)).map(({ version }) => version?.content);
}

interface Output {
  readonly additionalContext?: string;
  readonly permissionDecision?: string;
  readonly permissionDecisionReason?: string;
}
const outputOf = (answer: unknown): Output =>
  (answer as { readonly hookSpecificOutput?: Output } | undefined)?.hookSpecificOutput ?? {};
const noteIn = (answer: unknown): string => outputOf(answer).additionalContext ?? '';
/** The reason for which a call is refused. */
const refusal = (answer: unknown): string => {
  const { permissionDecision, permissionDecisionReason = '' } = outputOf(answer);
  return permissionDecision === 'deny' ? permissionDecisionReason : '';
};

/** A call of the agent: the transcript has it, and the hooks before and after report it. */
async function call(tool: string, args: object, work: () => Promise<unknown> = async () => undefined) {
  const id = `toolu_${randomUUID().slice(0, 8)}`;
  const event = { tool_name: tool, tool_input: args, tool_use_id: id };
  const before = await ring('claude-code', { hook_event_name: 'PreToolUse', ...event });
  await work();
  written.push(() => session.reportToolCall({ id, name: tool, args: { ...args }, content: 'done' }));
  const after = await ring('claude-code', { hook_event_name: 'PostToolUse', ...event, tool_response: { ok: 1 } });
  return { before, after };
}

describe('hooks', () => {
  test('refuse an edit of a file that changed since it was read, once', async () => {
    const path = join(root, 'cart.ts');
    await writeFile(path, TEXT);
    await call('Bash', { command: 'git status' });
    await call('Read', { file_path: path });
    await until(() => caughtUp >= 2, Boolean);
    await writeFile(path, CHANGED);

    const edit = { file_path: path, old_string: 'line7 = 7', new_string: 'line7 = 8' };
    const first = await call('Edit', edit);
    expect(refusal(first.before)).toContain('cart.ts changed since you read it in call 2 (line 42).');
    expect(refusal(first.before)).toContain('-const line42 = 42;\n+const line42 = 24;');
    expect((await call('Edit', edit)).before).toBeUndefined();
    expect(notices).toEqual([]);
  });

  test('refuse the edit in the form of Gemini CLI, which names no calls', async () => {
    const path = join(root, 'cart.ts');
    await writeFile(path, TEXT);
    await ring('gemini-cli', {
      hook_event_name: 'AfterTool',
      tool_name: 'read_file',
      tool_input: { file_path: 'cart.ts' },
      tool_response: { llmContent: TEXT },
    });
    await writeFile(path, CHANGED);
    const replace = { tool_name: 'replace', tool_input: { file_path: path, old_string: 'a', new_string: 'b' } };
    expect(await ring('gemini-cli', { hook_event_name: 'BeforeTool', ...replace })).toEqual({
      decision: 'deny',
      reason: expect.stringContaining('changed since you read it (line 42).'),
    });
    expect(await ring('gemini-cli', { hook_event_name: 'BeforeTool', ...replace })).toBeUndefined();
  });

  test('know the files that a command shows, and refuse a patch in a command', async () => {
    const path = join(root, 'cart.ts');
    await writeFile(path, TEXT);
    const part = TEXT.split('\n').slice(4, 9).join('\n');
    const bash = (command: string) => ({ tool_name: 'Bash', tool_input: { command } });
    const patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: cart.ts\n@@\n-a\n+b\n*** End Patch\nEOF";
    const starts = (command: string) => ring('codex', { hook_event_name: 'PreToolUse', ...bash(command) });
    const ends = (command: string, response: string) =>
      ring('codex', { hook_event_name: 'PostToolUse', ...bash(command), tool_response: response });

    await ends('wc -l cart.ts', '60 cart.ts\n');
    await writeFile(path, CHANGED);
    expect(await starts(patch)).toBeUndefined();
    await ends('sed -n 5,9p cart.ts', part);
    await writeFile(path, TEXT);
    expect(refusal(await starts(patch))).toContain('cart.ts changed since you saw it in a command (line 42).');
    // Codex does not report the end of a patch in a command, so the next event has no note about
    // this patch.
    expect(await starts(patch)).toBeUndefined();
    await writeFile(path, CHANGED);
    expect(await starts(patch)).toBeUndefined();
    await ends('cat cart.ts', CHANGED);
    await writeFile(path, TEXT);
    const direct = { tool_name: 'apply_patch', tool_input: { command: patch } };
    expect(refusal(await ring('codex', { hook_event_name: 'PreToolUse', ...direct }))).toContain('cart.ts changed');
  });

  test('know from the transcript what the agent saw before this process began', async () => {
    const path = join(root, 'cart.ts');
    await writeFile(path, TEXT);
    written.push(() =>
      session.reportToolCall({ id: 'before', name: 'Read', args: { file_path: path }, content: TEXT }),
    );
    const edit = { hook_event_name: 'PreToolUse', tool_name: 'Edit', tool_input: { file_path: path } };
    expect(await ring('claude-code', { ...edit, agent_id: 'one' })).toBeUndefined();
    await writeFile(path, CHANGED);
    expect(refusal(await ring('claude-code', { ...edit, agent_id: 'two' }))).toContain(
      'cart.ts changed since you read it in call 1 (line 42).',
    );
    expect(await ring('claude-code', { ...edit, agent_id: 'two' })).toBeUndefined();
  });

  test('repeat a note that did not reach its hook', async () => {
    const path = join(root, 'cart.ts');
    await writeFile(path, TEXT);
    await call('Read', { file_path: path });
    await writeFile(path, CHANGED);
    const edit = { hook_event_name: 'PreToolUse', tool_name: 'Edit', tool_input: { file_path: path } };
    const event = { session_id: native, cwd: root, ...edit };
    await new Promise<void>((resolve) => {
      const socket = connect(watchSocket(dataDir));
      socket.end(`palimpsest-hook 1 claude-code\n${JSON.stringify(event)}`, () => {
        socket.destroy();
        resolve();
      });
    });
    expect(refusal(await ring('claude-code', edit))).toContain('cart.ts changed since you read it');
    expect(await ring('claude-code', edit)).toBeUndefined();
  });

  test('ignore failed reads, reads of other agents, and the model’s own edits', async () => {
    const path = join(root, 'cart.ts');
    await writeFile(path, TEXT);
    const edit = { hook_event_name: 'PreToolUse', tool_name: 'Edit', tool_input: { file_path: path } };
    const read = { tool_name: 'Read', tool_input: { file_path: path } };
    await ring('claude-code', { hook_event_name: 'PostToolUseFailure', ...read, error: 'no' });
    await ring('claude-code', { hook_event_name: 'PostToolUse', ...read, agent_id: 'sub' });
    await writeFile(path, CHANGED);
    expect(await ring('claude-code', edit)).toBeUndefined();
    expect(await ring('claude-code', { ...edit, agent_id: 'sub' })).toBeDefined();

    await call('Write', { file_path: path, content: TEXT }, () => writeFile(path, TEXT));
    expect(await ring('claude-code', edit)).toBeUndefined();
  });

  test('index the files of a command before and after it runs', async () => {
    const path = join(root, 'list.txt');
    await writeFile(path, 'one\n');
    await call('Bash', { command: `sed -i s/one/two/ list.txt && cat ${path} > copy.txt` }, async () => {
      await writeFile(path, 'two\n');
      await writeFile(join(root, 'copy.txt'), 'two\n');
    });
    await until(async () => (await fileVersions(path)).length === 2, Boolean);
    expect(await fileVersions(path)).toEqual(['one\n', 'two\n']);
    expect(await fileVersions(join(root, 'copy.txt'))).toEqual(['two\n']);
    expect(session.session.pool()).toHaveLength(1);
    expect(notices).toEqual([]);
  });

  test('index a file before a call removes it', async () => {
    const path = join(root, 'gone.txt');
    await writeFile(path, 'here\n');
    await call('Bash', { command: 'rm gone.txt' }, () => unlink(path));
    await until(async () => (await fileVersions(path)).length === 1, Boolean);
    expect(await fileVersions(path)).toEqual(['here\n']);
  });

  test('bring pinned objects back after a compaction', async () => {
    const compacted = { hook_event_name: 'SessionStart', source: 'compact' };
    expect(await ring('codex', compacted)).toBeUndefined();
    const [rules, large] = [join(root, 'RULES.md'), join(root, 'large.txt')];
    await writeFile(rules, 'Never round a price.\n');
    await writeFile(large, `${'x'.repeat(20_000)}\n`);
    for (const path of [rules, large])
      await session.reportToolCall({ id: path, name: 'Read', args: { file_path: path }, content: 'shown' });
    await session.verb('pin', [rules, large]);

    const note = noteIn(await ring('codex', compacted));
    expect(note).toContain('The compaction took 2 pinned objects out of your context.');
    expect(note).toMatch(/type=file path=\S+RULES\.md [^\n]+\nNever round a price\./);
    expect(note).toMatch(/type=file path=\S+large\.txt [^\n]+char_count=20001\n/);
    expect(note).not.toContain('xxxx');
    expect(note).toContain('The text of 1 of them is too long for this note.');
    expect(note.length).toBeLessThanOrEqual(8_000);
  });

  test('return nothing at other moments, and make the watcher read the transcript', async () => {
    expect(await ring('claude-code', { hook_event_name: 'SessionStart', source: 'startup' })).toBeUndefined();
    const before = caughtUp;
    expect(await ring('claude-code', { hook_event_name: 'UserPromptSubmit', prompt: 'go on' })).toBeUndefined();
    expect(await ring('claude-code', { hook_event_name: 'Stop' })).toBeUndefined();
    await until(() => caughtUp >= before + 2, Boolean);
  });

  test('mark that they reached the watcher, and remove the mark of a failure', async () => {
    await makeHookFolder(dataDir);
    await writeFile(join(hookFolder(dataDir), 'unreached'), 'late\n');
    expect(await hookState(dataDir, 'codex')).toMatchObject({ reached: undefined, unreached: { reason: 'late' } });
    await ring('codex', { hook_event_name: 'Stop' });
    await until(async () => (await hookState(dataDir, 'codex')).unreached === undefined, Boolean);
    expect((await hookState(dataDir, 'codex')).reached).toBeInstanceOf(Date);
    expect((await hookState(dataDir, 'gemini-cli')).reached).toBeUndefined();
  });

  test('send no answer to other senders, and continue', async () => {
    for (const text of ['', 'GET / HTTP/1.1\r\n\r\n', 'palimpsest-hook 2 codex\n{}', 'palimpsest-hook 1 codex\n{'])
      expect(await send(text)).toBe('');
    expect(await ring('codex', { hook_event_name: 'Stop' })).toBeUndefined();
    expect(notices).toEqual([]);
  });

  test('are served on a socket of this user alone, by one process', async () => {
    expect((await stat(watchSocket(dataDir))).mode & 0o777).toBe(0o600);
    const host = { dataDir, onNotice: () => undefined, stayAwake: () => undefined };
    const followed = { session: () => Promise.reject(new Error('never')) };
    await expect(serveHooks(watchSocket(dataDir), followed, host)).rejects.toThrow(/Another process listens on/);
    await served.close();
    served = await serveHooks(watchSocket(dataDir), followed, host);
  });

  test('report a session that cannot be followed, and answer nothing', async () => {
    await served.close();
    const followed = { session: () => Promise.reject(new Error('no transcript')) };
    const host = { dataDir, onNotice: (line: string) => notices.push(line), stayAwake: () => undefined };
    served = await serveHooks(watchSocket(dataDir), followed, host);
    expect(await ring('codex', { hook_event_name: 'Stop' })).toBeUndefined();
    await until(
      () => notices,
      (lines) => lines.length > 0,
    );
    expect(notices).toEqual([`The hook Stop of codex session ${native} failed: no transcript`]);
    // An agent without a transcript does not wait before each of its calls.
    const before = { hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input: { command: 'ls' } };
    for (let times = 0; times < 3; times += 1) expect(await ring('codex', before)).toBeUndefined();
    expect(notices).toHaveLength(2);
  });
});
