import { link, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import fc from 'fast-check';
import { attack, several } from '../support/attack.js';
import { type AttackedServer, attackedServer } from './attacked-server.js';

/** A secret that no answer may contain and no one can guess. */
const SECRET = 'needle-in-the-haystack-of-others';
const AT_ONCE = 3;

let server: AttackedServer;
let outside: string;

beforeAll(async () => {
  server = await attackedServer('--allow-bash');
  const { base, root } = server;
  outside = join(base, 'outside');
  await mkdir(join(root, 'src', 'deep'), { recursive: true });
  await mkdir(join(outside, 'sub'), { recursive: true });
  await mkdir(join(base, 'inside-too'));
  await writeFile(join(root, 'src', 'a.txt'), 'inside\n');
  for (const place of [outside, join(outside, 'sub'), join(base, 'inside-too')])
    for (const name of ['known.txt', `${SECRET}.txt`]) await writeFile(join(place, name), `${SECRET}\n`);
  await writeFile(join(outside, 's.txt'), `${SECRET}\n`);
  await symlink(outside, join(root, 'out'));
  await symlink('../outside', join(root, 'out-relative'));
  await symlink('out', join(root, 'twice'));
  await symlink(join(outside, 's.txt'), join(root, 'out-file'));
  await symlink('/', join(root, 'everything'));
  await symlink('/proc/self', join(root, 'me'));
  await symlink('../../outside', join(root, 'src', 'deep-out'));
  await symlink(join(outside, 'new.txt'), join(root, 'dangling'));
  await symlink(`${root}/../outside`, join(root, 'src', 'climbing'));
});
afterAll(() => server.close());

/** Spellings of an outside path. */
function spellings({ base, root }: AttackedServer): readonly string[] {
  const climb = (count: number): string => '../'.repeat(count);
  const absolute = join(base, 'outside');
  const outsides = [
    '../outside',
    absolute,
    `${root}/../outside`,
    `${root}/src/../../outside`,
    './.././outside',
    'src/deep/../../../outside',
    'none/../../outside',
    'src/a.txt/../../../outside',
    `${climb(40)}${absolute.slice(1)}`,
    `${climb(2_000)}${absolute.slice(1)}`,
    `//${absolute}`,
    `${root}//..//outside`,
    './/..///outside//',
    `file://${absolute}`,
    `file:${absolute}`,
    '%2e%2e/outside',
    '..%2foutside',
    '..%252foutside',
    '..\\outside',
    '..／outside',
    '．．/outside',
    '․․/outside',
    '..\u0000/outside',
    '../outside\u0000',
    '\u202e../outside',
    ' ../outside',
    '../outside ',
    '\t../outside',
    '~/../outside',
    `~root/..${absolute}`,
    '$PWD/../outside',
    '$(pwd)/../outside',
    '$(PWD)/../outside',
    '{..,src}/outside',
    'src/[.][.]/../../outside',
    'out',
    'out/',
    'out/.',
    'out/sub/..',
    'out-relative',
    'twice',
    'twice/sub/../../outside',
    `everything${absolute}`,
    `everything/proc/self/root${absolute}`,
    `me/root${absolute}`,
    `me/cwd/../outside`,
    `/proc/self/root${absolute}`,
    `/proc/self/cwd/../outside`,
    `/proc/${process.pid}/root${absolute}`,
    '/dev/fd/../../outside',
    'src/deep-out',
    'src/climbing',
    'src/deep/../climbing',
    '../inside-too',
    `${root}-too`,
    `${root}-too/../outside`,
    '@../outside',
    '!../outside',
    '-/../../outside',
    'SRC/../../outside',
    'src/deep/..;/../../outside',
    '../inside/../outside',
  ];
  return outsides.flatMap((path) => [path, `${path}/s.txt`, `${path}/known.txt`, `${path}/sub/known.txt`]);
}

const TOOLS: readonly ((path: string) => readonly [string, Readonly<Record<string, unknown>>])[] = [
  (path) => ['read', { path }],
  (path) => ['read', { id: path }],
  (path) => ['ls', { path }],
  (path) => ['find', { pattern: '**/*.txt', path }],
  (path) => ['find', { pattern: `${path}/*` }],
  (path) => ['grep', { pattern: 'needle-in', path }],
  (path) => ['grep', { pattern: 'needle-in', glob: `${path}/**` }],
  (path) => ['tree', { path }],
  (path) => ['activate', { ids: [path] }],
  (path) => ['pin', { ids: [path] }],
  (path) => ['write', { path: `${path}/written.txt`, content: 'escaped' }],
  (path) => ['write', { path, content: 'escaped' }],
  (path) => ['edit', { path, edits: [{ oldText: 'needle', newText: 'escaped' }] }],
];

/** Reads everything outside: names and texts. */
async function everythingOutside(): Promise<string> {
  const names = [
    ...(await readdir(outside, { recursive: true })),
    ...(await readdir(join(server.base, 'inside-too'))),
  ].sort();
  const texts = await Promise.all(
    ['known.txt', 's.txt', 'sub/known.txt'].map((name) => readFile(join(outside, name), 'utf8')),
  );
  return JSON.stringify([names, texts, await readdir(server.base)]);
}

attack(
  'paths',
  async (tries) => {
    const before = await everythingOutside();
    const tried = async ([tool, args]: readonly [string, Readonly<Record<string, unknown>>]): Promise<void> => {
      const what = `${tool} ${JSON.stringify(args).slice(0, 200)}`;
      const answer = await server.agent.call(tool, args).catch((error: Error) => ({ text: error.message }));
      const shown = answer.text.includes(SECRET) ? `it showed ${answer.text.slice(0, 300)}` : undefined;
      const now = await everythingOutside();
      tries.tried(what, shown ?? (now === before ? undefined : `it changed what is outside: ${now}`));
    };
    const all = spellings(server).flatMap((path) => TOOLS.map((tool) => tool(path)));
    await several(tries.some(all, 40), AT_ONCE, tried);

    const piece = fc.constantFrom(
      '..',
      '.',
      '',
      'src',
      'out',
      'deep',
      'deep-out',
      'outside',
      'everything',
      'me',
      'root',
      'cwd',
      'none',
      'twice',
      '%2e%2e',
    );
    const paths = fc.array(piece, { minLength: 1, maxLength: 9 }).map((pieces) => `${pieces.join('/')}/s.txt`);
    const more = fc.sample(fc.tuple(paths, fc.nat(TOOLS.length - 1)), tries.size(10, 1_000));
    await several(more, AT_ONCE, ([path, index]) => tried(TOOLS[index]?.(path) ?? ['read', { path }]));

    // Two names of one file are indistinguishable, but a file is replaced, never written in place.
    await link(join(outside, 's.txt'), join(server.root, 'hard.txt'));
    await tried(['write', { path: 'hard.txt', content: 'escaped' }]);
    await tried(['edit', { path: 'hard.txt', edits: [{ oldText: 'escaped', newText: 'once more' }] }]);
  },
  () => server,
);
