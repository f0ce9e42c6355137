import type { ChildProcess } from 'node:child_process';
import { mkdir, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { attack, several } from '../support/attack.js';
import { canExchange, exchangeNames } from '../support/disk-tricks.js';
import { type AttackedServer, attackedServer } from './attacked-server.js';

const SECRET = 'what-nobody-may-see';
const AT_ONCE = 3;
let server: AttackedServer;
let outside: string;
let swapping: ChildProcess | undefined;

beforeAll(async () => {
  server = await attackedServer();
  outside = join(server.base, 'outside');
  await mkdir(outside);
  await writeFile(join(outside, 'f.txt'), `needle ${SECRET}\n`);
  await writeFile(join(outside, `${SECRET}.txt`), `needle ${SECRET}\n`);
});
afterAll(async () => {
  swapping?.kill('SIGKILL');
  await server.close();
});

const CALLS: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
  ['read', { path: 'box/f.txt' }],
  ['read', { path: 'leaf.txt' }],
  ['ls', { path: 'box' }],
  ['grep', { pattern: 'needle', path: 'box' }],
  ['grep', { pattern: 'needle' }],
  ['find', { pattern: '**/*.txt', path: 'box' }],
  ['tree', { path: '.', depth: 4 }],
  ['activate', { ids: ['box/f.txt'] }],
  ['write', { path: 'box/f.txt', content: 'needle inside\n' }],
  ['write', { path: 'box/new/deep.txt', content: 'needle inside\n' }],
  ['write', { path: 'leaf.txt', content: 'needle inside\n' }],
  ['edit', { path: 'box/f.txt', edits: [{ oldText: 'needle', newText: 'needle' }] }],
  ['deactivate', { ids: ['box/f.txt'] }],
];

(canExchange() ? attack : attack.skip)(
  'links',
  async (tries) => {
    const { root, base, agent } = server;
    await mkdir(join(root, 'box'));
    await writeFile(join(root, 'box', 'f.txt'), 'needle inside\n');
    await writeFile(join(root, 'leaf.txt'), 'needle inside\n');
    await symlink(outside, join(base, 'trap'));
    await symlink(join(outside, 'f.txt'), join(base, 'leaf-trap'));
    await rename(join(base, 'trap'), join(root, '.trap'));
    await rename(join(base, 'leaf-trap'), join(root, '.leaf-trap'));
    swapping = await exchangeNames(['box', '.trap', 'leaf.txt', '.leaf-trap'].map((name) => join(root, name)));
    const all = Array.from({ length: tries.size(2, 300) }, () => CALLS).flat();
    await several(all, AT_ONCE, async ([tool, args]) => {
      const { text } = await agent.call(tool, args);
      const escaped = text.includes(SECRET) ? `it showed ${text.slice(0, 300)}` : undefined;
      const there = (await readdir(outside)).sort().join();
      const kept = await readFile(join(outside, 'f.txt'), 'utf8');
      const changed =
        there === `f.txt,${SECRET}.txt` && kept === `needle ${SECRET}\n`
          ? undefined
          : `outside became ${there}: ${kept}`;
      tries.tried(`${tool} ${JSON.stringify(args)}`, escaped ?? changed);
    });
  },
  () => server,
);
