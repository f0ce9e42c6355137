import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { OpencodeInput, OpencodeMessage, OpencodePart } from '../../../src/extensions/opencode/opencode1-api.js';
import type { Opencode2Command, Opencode2Message } from '../../../src/extensions/opencode/opencode2-api.js';
import type { PiContext, PiExtensionApi, PiMessage } from '../../../src/extensions/pi/pi-api.js';
import { cliPath, suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { HostMessage, type OpencodePlugin, opencode2Double } from '../../support/opencode2-double.js';

/** A harness with the built extension, in a turn that has read a file. */
interface Host {
  /** Returns the texts of the next model call. */
  call(): Promise<string>;
  /** Returns the system prompt of the last model call. */
  prompt(): string;
  command(words: string): Promise<void>;
  readonly notices: string[];
  /** The status line of a harness that has one. */
  status?(): string | undefined;
  end(): Promise<void>;
}

const TEXT = 'the only line of a.txt\n';
const built = (name: string): Promise<Readonly<Record<string, unknown>>> => import(join(dirname(cliPath), name));

async function piHost(cwd: string, isShown = true): Promise<Host> {
  const statuses: (string | undefined)[] = [];
  const session = randomUUID();
  const notices: string[] = [];
  const handlers = new Map<string, (event: unknown, context: PiContext) => unknown>();
  let command: Parameters<PiExtensionApi['registerCommand']>[1] | undefined;
  const context: PiContext = {
    cwd,
    hasUI: isShown,
    ui: { setStatus: (_key, text) => statuses.push(text), notify: (text) => notices.push(text) },
    sessionManager: { getSessionId: () => session, getHeader: () => null },
  };
  const { default: extension } = await built('pi.js');
  (extension as (pi: PiExtensionApi) => void)({
    on: (event, handler) => handlers.set(event, handler as never),
    registerTool: () => undefined,
    registerCommand: (_name, made) => {
      command = made;
    },
  });
  const fire = async (event: string, what: object) => handlers.get(event)?.(what, context);
  const messages: readonly PiMessage[] = [
    { role: 'user', content: 'look', timestamp: 1 },
    {
      role: 'assistant',
      content: [{ type: 'toolCall', id: 'call_1', name: 'read', arguments: { path: 'a.txt' } }],
      timestamp: 2,
    },
    {
      role: 'toolResult',
      toolCallId: 'call_1',
      toolName: 'read',
      content: [{ type: 'text', text: TEXT }],
      timestamp: 3,
    },
  ];
  await fire('session_start', {});
  const prompted = (await fire('before_agent_start', { systemPrompt: 'be good' })) as { readonly systemPrompt: string };
  return {
    prompt: () => prompted.systemPrompt,
    call: async () => {
      const answer = (await fire('context', { messages })) as { readonly messages: readonly PiMessage[] } | undefined;
      const blocks = (answer?.messages ?? []).flatMap(({ content }) => (Array.isArray(content) ? content : []));
      return blocks.flatMap(({ text }: { readonly text?: string }) => text ?? []).join('\n');
    },
    command: async (words) => command?.handler(words, context),
    notices,
    status: () => statuses.at(-1),
    end: async () => void (await fire('session_shutdown', {})),
  };
}

async function opencodeHost(cwd: string): Promise<Host> {
  const sessionID = `ses_${randomUUID()}`;
  const notices: string[] = [];
  const part = (messageID: string, more: Partial<OpencodePart> & Pick<OpencodePart, 'type'>): OpencodePart => ({
    id: `prt_${messageID}`,
    sessionID,
    messageID,
    ...more,
  });
  const state = { status: 'completed' as const, input: { filePath: 'a.txt' }, output: TEXT };
  const messages: readonly OpencodeMessage[] = [
    { info: { id: 'msg_1', sessionID, role: 'user' }, parts: [part('msg_1', { type: 'text', text: 'look' })] },
    {
      info: { id: 'msg_2', sessionID, role: 'assistant' },
      parts: [part('msg_2', { type: 'tool', tool: 'read', callID: 'call_1', state })],
    },
  ];
  const input: OpencodeInput = {
    directory: cwd,
    worktree: cwd,
    client: {
      tui: { showToast: async ({ body }) => void notices.push(body.message) },
      session: { messages: async () => ({ data: messages }) },
    },
  };
  const { default: plugin } = await built('opencode.js');
  const hooks = await (plugin as OpencodePlugin).server(input);
  let system: string[] = [];
  return {
    prompt: () => system.join('\n'),
    call: async () => {
      const list = [...messages];
      await hooks['experimental.chat.messages.transform']({}, { messages: list });
      system = ['be good'];
      await hooks['experimental.chat.system.transform']({ sessionID }, { system });
      return list.flatMap(({ parts }) => parts.flatMap(({ text }) => text ?? [])).join('\n');
    },
    command: (words) => hooks['command.execute.before']({ command: 'palimpsest', sessionID, arguments: words }),
    notices,
    end: () => hooks.dispose(),
  };
}

async function opencode2Host(cwd: string): Promise<Host> {
  const sessionID = `ses_${randomUUID()}`;
  const notices: string[] = [];
  const onWarning = ({ name, message }: Error): void => {
    if (name === 'PalimpsestWarning') notices.push(message);
  };
  process.on('warning', onWarning);
  const host = opencode2Double(cwd);
  const { default: plugin } = await built('opencode.js');
  const cleanup = await (plugin as OpencodePlugin).setup(host.context);
  let prompt = '';
  return {
    prompt: () => prompt,
    call: async () => {
      const draft = {
        sessionID,
        model: { providerID: 'scripted', id: 'scripted' },
        system: [{ type: 'text' as const, text: 'be good' }],
        messages: [
          new HostMessage({ id: 'msg_1', role: 'user', content: [{ type: 'text', text: 'look' }] }),
          new HostMessage({
            id: 'msg_2',
            role: 'assistant',
            content: [{ type: 'tool-call', id: 'call_1', name: 'read', input: { path: 'a.txt' } }],
          }),
          new HostMessage({
            role: 'tool',
            content: [{ type: 'tool-result', id: 'call_1', name: 'read', result: { type: 'text', value: TEXT } }],
          }),
        ] as Opencode2Message[],
      };
      await host.fire('session.context', draft);
      prompt = draft.system.map(({ text }) => text).join('\n\n');
      return draft.messages.flatMap(({ content }) => content.flatMap(({ text }) => text ?? [])).join('\n');
    },
    command: async (words) => {
      const { execute } = host.commands[0] as Opencode2Command;
      await execute({ sessionID, prompt: { text: words } }).catch((error: Error) => notices.push(error.message));
    },
    notices,
    end: async () => {
      process.off('warning', onWarning);
      await cleanup();
    },
  };
}

const NAMED = /^ACTIVE_CONTENT id=[0-9a-f]{8,12}\ntoolcall_ref id=/m;
const REPEATED = /^ACTIVE_CONTENT id=[0-9a-f]{64}\nthe only line of a\.txt/m;
const SHORT = /^ACTIVE_CONTENT id=[0-9a-f]{8,12}\n/m;

describe.each([
  ['pi', piHost],
  ['OpenCode 1', opencodeHost],
  ['OpenCode 2', opencode2Host],
])('/palimpsest and the variables of the loop in %s', (_name, open) => {
  const env = { ...process.env };
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;
  let host: Host | undefined;

  beforeEach(async () => {
    folder = await temporaryRoot();
    await writeFile(join(folder.root, 'a.txt'), TEXT);
    Object.assign(process.env, {
      PALIMPSEST_DATA: suiteData(),
      PALIMPSEST_PROFILE: 'memory',
      PALIMPSEST_LOOP_LIMIT_MS: '60000',
      PALIMPSEST_LOOP_LAYOUT: 'ssot',
    });
  });
  afterEach(async () => {
    await host?.end();
    host = undefined;
    for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
    await folder.remove();
  });

  test('render a session with short ids or literally from its next model call on, and undo that', async () => {
    host = await open(folder.root);
    expect(await host.call()).toMatch(NAMED);
    await host.command('strict on');
    expect(await host.call()).toMatch(REPEATED);
    await host.command('short-ids on');
    expect(await host.call()).toMatch(SHORT);
    await host.command('short-ids off');
    expect(await host.call()).toMatch(REPEATED);
    await host.command('strict off');
    expect(await host.call()).toMatch(NAMED);
    host.notices.splice(0);
    await host.command('strictly');
    expect(host.notices).toEqual([
      '/palimpsest has no subcommand "strictly". Use one of: on, off, tidy, strict on, strict off, short-ids on, ' +
        'short-ids off',
    ]);
    await host.command('off');
    expect(await host.call()).not.toContain('ACTIVE_CONTENT');
  });

  test('keep the prompt in a call with the harness’s own list, and send that list in the next one', async () => {
    process.env.PALIMPSEST_LOOP_LIMIT_MS = '1';
    host = await open(folder.root);
    for (const _ of [1, 2]) {
      expect(await host.call()).not.toContain('ACTIVE_CONTENT');
      expect(host.prompt()).toMatch(/^be good\n\nPalimpsest keeps your working context/);
    }
    expect(host.notices).toEqual([expect.stringMatching(/^Palimpsest: not recording: \S.*see palimpsest doctor$/)]);
    if (host.status !== undefined) expect(host.status()).toMatch(/^palimpsest: not recording: \S/);
  });

  test('follow the environment at start; an invalid value is reported', async () => {
    Object.assign(process.env, { PALIMPSEST_LOOP_STRICT: '1', PALIMPSEST_LOOP_SHORT_IDS: 'yes' });
    host = await open(folder.root);
    expect(host.notices).toEqual(['Palimpsest: PALIMPSEST_LOOP_SHORT_IDS is "yes"; set it to 1 or 0']);
    expect(await host.call()).toMatch(REPEATED);
  });
});

test('pi -p says on standard error that it does not record, because it shows no notices', async () => {
  const folder = await temporaryRoot();
  const lines: unknown[] = [];
  const said = jest.spyOn(console, 'error').mockImplementation((line) => void lines.push(line));
  const env = { ...process.env };
  Object.assign(process.env, { PALIMPSEST_DATA: suiteData(), PALIMPSEST_LOOP_LIMIT_MS: '1' });
  const host = await piHost(folder.root, false);
  try {
    await host.call();
    expect(lines).toEqual([expect.stringMatching(/^Palimpsest: not recording: \S/)]);
    expect(host.notices).toEqual([]);
  } finally {
    said.mockRestore();
    await host.end();
    for (const name of ['PALIMPSEST_DATA', 'PALIMPSEST_LOOP_LIMIT_MS'])
      if (env[name] === undefined) delete process.env[name];
      else process.env[name] = env[name];
    await folder.remove();
  }
});
