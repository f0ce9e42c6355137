import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CallReport } from '../../src/client/session/call-report.js';
import type { ContextClient } from '../../src/client/session/context-client.js';
import { changeByPerson } from '../../src/client/session/person-steps.js';
import { filesystemId, type ObjectId } from '../../src/objects/ids.js';
import { mentions, openClient, wholeRead } from '../support/context.js';

/**
 * An agent in a sandbox sees the folder under this path, so pictures show no path of this machine.
 */
export const DEMO_MOUNT = '/project';
export const DEMO_FILESYSTEM = 'fs-demo';

const code = (name: string, lines: number): string =>
  Array.from(
    { length: lines },
    (_, i) => `export const ${name}${i} = (items: readonly Item[]): number => items.length + ${i};`,
  ).join('\n');

/** Its files, in the order in which the agent reads them. */
const FILES: Readonly<Record<string, string>> = {
  'src/cart.ts': `import type { Item } from './item.js';

/** What a cart costs, in cents. */
export function total(items: readonly Item[]): number {
  return items.reduce((sum, item) => sum + item.price, 0);
}

${code('cart', 30)}
`,
  'src/item.ts': `export interface Item {
  readonly price: number;
  readonly count: number;
}

${code('item', 12)}
`,
  'test/cart.test.ts': `import { total } from '../src/cart.js';

test('an item counts as often as it was chosen', () => {
  expect(total([{ price: 250, count: 3 }])).toBe(750);
});

${code('check', 18)}
`,
  'src/discount.ts': `${code('discount', 24)}\n`,
};

/**
 * Records a demonstration: an agent repairs a cart, deactivates a file and reads it again, and a
 * person helps. Returns the session's id and the changed file.
 */
export async function demoSession(
  root: string,
  id: string,
): Promise<{ readonly session: string; readonly file: ObjectId; readonly client: ContextClient }> {
  const client = await openClient(root, {
    filesystemId: filesystemId(DEMO_FILESYSTEM),
    mounts: [{ agentPrefix: DEMO_MOUNT, canonicalPrefix: root }],
    cwd: DEMO_MOUNT,
  });
  let second = 0;
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(join(root, path, '..'), { recursive: true });
    await writeFile(join(root, path), text);
    second += 10;
    const time = Math.floor(Date.now() / 1_000) - 3_600 + second;
    await utimes(join(root, path), time, time);
  };
  for (const [path, text] of Object.entries(FILES)) await write(path, text);
  const session = await client.openSession({ id });
  const call = async (
    tool: string,
    args: CallReport['args'],
    content: string,
    more: Partial<CallReport> = {},
  ): Promise<void> => {
    await session.assemble({ deliver: 'library' });
    const recorded = await session.recordCall({ tool, args, status: 'ok', content, answer: () => content, ...more });
    await recorded.applied;
  };
  const read = async (path: string): Promise<void> =>
    call('read', { path }, FILES[path] ?? '', { readings: [await wholeRead(client, path)] });
  const turn = async (text: string, work: () => Promise<void>, answer: string): Promise<void> => {
    await session.reportMessage({ role: 'user', text });
    await work();
    await session.assemble({ deliver: 'library' });
    await session.reportMessage({ role: 'assistant', text: answer }, undefined, {
      input: 900,
      cacheRead: 4_000 + 600 * session.state.seq,
      output: 120,
    });
  };
  await session.setSystemPrompt('You are a careful engineer. Read before you change, and run the tests.');
  await turn(
    'The cart counts each item once, however often it was chosen. Mend it.',
    async () => {
      await call('ls', { path: 'src' }, Object.keys(FILES).join('\n'), {
        mentions: await mentions(client, Object.keys(FILES)),
      });
      for (const path of ['src/cart.ts', 'src/item.ts', 'test/cart.test.ts']) await read(path);
    },
    'total() leaves the count out. I mend it and run the test.',
  );
  const mended = (FILES['src/cart.ts'] ?? '').replace('sum + item.price', 'sum + item.price * item.count');
  await turn(
    'Go on.',
    async () => {
      await write('src/cart.ts', mended);
      await call('edit', { path: 'src/cart.ts' }, 'edited', { readings: [await wholeRead(client, 'src/cart.ts')] });
      for (let i = 1; i <= 6; i += 1)
        await call('bash', { command: `npm test -- part ${i}` }, `PASS test/cart.test.ts (${i})\n`.repeat(12));
    },
    'The test passes.',
  );
  const { id: file } = await client.files.locate('src/cart.ts');
  const { id: item } = await client.files.locate('src/item.ts');
  await turn(
    'Discounts look wrong, too.',
    async () => {
      await read('src/discount.ts');
      const plan = await session.planVerb('deactivate', [item]);
      await call('deactivate', { ids: ['src/item.ts'] }, 'deactivated', { plan });
      await write('src/cart.ts', `${mended}\n/** Changed by a colleague. */\n`);
      await call('grep', { pattern: 'discount' }, 'src/discount.ts: 24 lines');
    },
    'They are right: they are taken off the total.',
  );
  await changeByPerson(session, { verb: 'pin', references: [file] });
  await changeByPerson(session, { verb: 'activate', references: [item] });
  await turn(
    'Say what you changed.',
    async () => read('src/cart.ts'),
    'One line in src/cart.ts: the price times the count.',
  );
  await session.assemble({ deliver: 'library' });
  await client.closeSession(session);
  return { session: id, file, client };
}

/** Forks a demonstration and continues it differently. Returns the id of the fork. */
export async function demoFork({
  session,
  client,
}: {
  readonly session: string;
  readonly client: ContextClient;
}): Promise<string> {
  const fork = await client.forkSession(session, { id: `${session}-again`, at: 12 });
  for (const text of ['Try it without the discounts.', 'And once more.']) {
    await fork.reportMessage({ role: 'user', text });
    await fork.assemble({ deliver: 'library' });
    await fork.reportMessage({ role: 'assistant', text: 'It is the count.' });
  }
  await client.closeSession(fork);
  return fork.id;
}
