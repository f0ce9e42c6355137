import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContextClient } from '../../src/client/session/context-client.js';
import type { ObjectId } from '../../src/objects/ids.js';
import { mentions, openClient, wholeRead } from '../support/context.js';
import { temporaryRoot } from '../support/mcp-clients.js';

/** Texts that might run, load, style, reverse or hide something on a page that shows them. */
const HOSTILE_TEXT = [
  '<script>alert("ran")</script>',
  '<img src="https://evil.example.com/a.png" onerror="alert(1)">',
  '<style>body{display:none}</style><link rel="stylesheet" href="https://evil.example.com/a.css">',
  '</pre></div></body><iframe src="javascript:alert(2)"></iframe>',
  'javascript:alert(3) {{constructor.constructor("alert(4)")()}}',
  '\u202egnirts desrever\u202c \u200bhidden\u200b \u001b[31mred\u001b[0m \u0000 \ufeff',
].join('\n');

/** A message with structure, with links that must lead nowhere and a picture that must not load. */
const MARKDOWN_TEXT = [
  '## All **done**',
  '- a [link](javascript:alert(7)) and `code`',
  '- ![a picture](https://evil.example.com/b.png)',
  '',
  '<b onclick="alert(8)">not bold</b> <https://evil.example.com/c>',
  '',
  '| file | state |',
  '|---|---|',
  '| a.ts | read |',
].join('\n');

/** A session to look at, its folder, and its contents. */
export interface RecordedSession {
  readonly session: string;
  readonly root: string;
  readonly file: ObjectId;
  readonly long: ObjectId;
  readonly contexts: number;
  close(): Promise<void>;
}

async function makeSession(client: ContextClient, root: string, id: string): Promise<Omit<RecordedSession, 'close'>> {
  const write = async (path: string, text: string, second: number): Promise<void> => {
    await mkdir(join(root, 'src'), { recursive: true });
    await writeFile(join(root, path), text);
    const time = Math.floor(Date.now() / 1_000) - 3_600 + second;
    await utimes(join(root, path), time, time);
  };
  const session = await client.openSession({ id });
  const call = async (tool: string, args: Record<string, string>, content: string, more: object = {}) => {
    const recorded = await session.recordCall({ tool, args, status: 'ok', content, answer: () => content, ...more });
    await recorded.applied;
  };
  const read = async (path: string, content: string) =>
    call('read', { path }, content, { readings: [await wholeRead(client, path)] });
  let contexts = 0;
  const turn = async (text: string, work: () => Promise<void>): Promise<void> => {
    await session.reportMessage({ role: 'user', text });
    await session.assemble({ deliver: 'library' });
    await work();
    await session.assemble({ deliver: 'library' });
    contexts += 2;
    const usage = { input: 100 * contexts, output: 10, model: 'claude-sonnet-4-5' };
    await session.reportMessage({ role: 'assistant', text: `Done: ${text}` }, undefined, usage);
  };
  await session.setSystemPrompt(`You are careful.\n${HOSTILE_TEXT}`);
  await write('src/a.ts', 'const one = 1;\nshared\n', 0);
  await write('src/<img src=x onerror=alert(6)>.ts', HOSTILE_TEXT, 0);
  await write(
    'src/long.txt',
    `${'long line '.repeat(100_000)}\n${Array.from({ length: 100_000 }, (_, i) => `line ${i}`).join('\n')}\n`,
    0,
  );
  await turn('Look at a.ts', () => read('src/a.ts', 'const one = 1;\nshared\n'));
  await turn('Look at the strange one', () => read('src/<img src=x onerror=alert(6)>.ts', HOSTILE_TEXT));
  await turn('What is there?', async () =>
    call('ls', { path: 'src' }, 'a.ts\nlong.txt', { mentions: await mentions(client, ['src/long.txt']) }),
  );
  await write('src/a.ts', 'const two = 2;\nshared\n', 10);
  await turn('It changed: read it again', () => read('src/a.ts', 'const two = 2;\nshared\n'));
  const { id: file } = await client.files.locate('src/a.ts');
  await turn('Pin it', async () =>
    call('pin', { ids: 'src/a.ts' }, 'pinned', { plan: await session.planVerb('pin', [file]) }),
  );
  await turn('Run something', () => call('bash', { command: HOSTILE_TEXT }, HOSTILE_TEXT));
  await read('src/long.txt', 'long');
  const { id: long } = await client.files.locate('src/long.txt');
  await turn('Now drop it.', async () =>
    call('deactivate', { ids: 'src/a.ts' }, 'done', { plan: await session.planVerb('deactivate', [file]) }),
  );
  await session.reportMessage({ role: 'assistant', text: MARKDOWN_TEXT });
  await client.closeSession(session);
  return { session: id, root, file, long, contexts };
}

/**
 * Records a session through the real client: reads, a listing, verbs, a changed file, hostile texts
 * and names. One file has a line of a megabyte and 100,000 others.
 */
export async function recordedSession(id: string): Promise<RecordedSession> {
  const { root, remove } = await temporaryRoot();
  const client = await openClient(root);
  const made = await makeSession(client, root, id);
  return {
    ...made,
    close: async () => {
      await client.close();
      await remove();
    },
  };
}
