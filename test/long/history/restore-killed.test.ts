import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { openClient, wholeRead } from '../../support/context.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';

const NAMES = ['a', 'b', 'c', 'd'];
const KILL_AT = new URL('../../support/kill-at.mjs', import.meta.url).href;

test('files restored in place are as before after an undo, wherever the process was killed', async () => {
  const { root, remove } = await temporaryRoot();
  const client = await openClient(root);
  const write = (word: string) => Promise.all(NAMES.map((name) => writeFile(join(root, name), `${word} ${name}`)));
  const words = async () =>
    (await Promise.all(NAMES.map((name) => readFile(join(root, name), 'utf8')))).map((text) => text.split(' ')[0]);
  const session = await client.openSession({ id: `killed-${randomUUID()}` });
  const read = async (word: string) => {
    await write(word);
    await session.reportMessage({ role: 'user', text: word });
    const readings = await Promise.all(NAMES.map((name) => wholeRead(client, name)));
    const { applied } = await session.recordCall({
      tool: 'read',
      args: {},
      status: 'ok',
      content: word,
      answer: () => word,
      readings,
    });
    await applied;
  };
  await read('then');
  await read('now');
  await client.close();
  const restore = (args: readonly string[], env = {}) =>
    runCli(['restore', ...args, '--data', suiteData(), '--json'], env);
  const inPlace = [`${session.id}@turn:1`, '--apply', '--in-place', '--root', root, '--moved', `${root}=${root}`];
  let kills = 0;
  try {
    for (const when of ['before', 'after']) {
      for (let count = 1; ; count++) {
        const env = { NODE_OPTIONS: `--import=${KILL_AT}`, PALIMPSEST_KILL_AT: `name ${when} ${count}` };
        const { code, stderr } = await restore(inPlace, env);
        const id = /kept as (\S+)/.exec(stderr)?.[1];
        if (id === undefined) expect(await words()).toEqual(NAMES.map(() => 'now'));
        if (code !== 0) kills += 1;
        if (id !== undefined) {
          const undone = await restore(['--undo', id]);
          expect([undone.code, undone.stderr]).toEqual([0, '']);
        }
        expect(await words()).toEqual(NAMES.map(() => 'now'));
        if (code === 0) break;
      }
    }
    expect(kills).toBeGreaterThan(2 * NAMES.length);
  } finally {
    await remove();
  }
});
