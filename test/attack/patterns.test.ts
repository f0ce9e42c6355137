import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { attack } from '../support/attack.js';
import { type AttackedServer, attackedServer } from './attacked-server.js';

/** Far more than a good pattern takes, and far less than one with polynomial matching time. */
const MOST_MS = 10_000;
let server: AttackedServer;

beforeAll(async () => {
  server = await attackedServer();
  const { root } = server;
  const deep = join(root, ...Array<string>(30).fill('a'));
  await mkdir(deep, { recursive: true });
  await mkdir(join(root, 'ignored'));
  await writeFile(join(deep, `${'a'.repeat(200)}.txt`), 'x');
  await writeFile(join(root, 'long.txt'), `${'a'.repeat(100_000)}!\n`);
  await writeFile(join(root, 'aaa.txt'), `${`${'ab'.repeat(40)}\n`.repeat(2_000)}`);
});
afterAll(() => server.close());

const REGULAR = [
  '(a+)+$',
  '(a|a)*b',
  '(a|aa)+$',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  '(.*a){25}',
  '(.*)(.*)(.*)(.*)(.*)b',
  '(x+x+)+y',
  '(?:a?){60}a{60}',
  'a{1000}{1000}',
  '(((a{100}){100}){100})',
  `${'('.repeat(2_000)}a${')'.repeat(2_000)}`,
  `${'a|'.repeat(20_000)}b`,
  '(?<=a+)b',
  '(?=(a+))a*b\\1',
  '\\1(a)',
  '[a-\\uFFFF]{500}',
  '\\p{L}{900}$',
  '(?i)(ſ|K)+$',
  '.*'.repeat(400),
  '(?:(?:(?:a*)*)*)*$',
  '\u0000',
  '(?P<n>a)(?P<n>b)',
  '[[:alpha:]]{999}',
  '(?s:.){1000}',
] as const;
const STARS = [
  'a/**/',
  '**/',
  '*a',
  '?*',
  '{a,b}',
  '[!b]*',
  '+(a|aa)',
  '*(a|*(a))',
  '@(a|a*)',
  '!(b)',
  '*?',
  '[a-z]*',
] as const;
const GLOBS = [
  ...STARS.flatMap((piece) => [10, 60, 400].map((times) => `${piece.repeat(times)}b`)),
  `${'{a,'.repeat(40)}b${'}'.repeat(40)}`,
  `${'{'.repeat(500)}a${'}'.repeat(500)}`,
  '{1..1000000}',
  '{a..z}'.repeat(8),
  '['.repeat(3_000),
  '\\'.repeat(3_001),
  `${'(a|'.repeat(200)}b${')'.repeat(200)}`,
  `!${'!('.repeat(100)}a${')'.repeat(100)}`,
  '*'.repeat(60_000),
] as const;
/** Patterns from a repository: the same as ignore rules, and others. */
const IGNORED = [
  ...GLOBS,
  `${'a/**/'.repeat(12)}b`,
  `${'!a\n'.repeat(20_000)}`,
  `${'*a*\n'.repeat(3_000)}`,
  `${'\\'.repeat(70)}a`,
] as const;

attack(
  'patterns',
  async (tries) => {
    const { agent, root } = server;
    const call = async (tool: string, args: Readonly<Record<string, unknown>>): Promise<void> => {
      const from = performance.now();
      const { text } = await agent.call(tool, args).catch((error: Error) => ({ text: error.message }));
      const took = performance.now() - from;
      const what = `${tool} ${JSON.stringify(args).slice(0, 120)}`;
      tries.tried(what, took < MOST_MS ? undefined : `it took ${Math.round(took)} ms: ${text.slice(0, 200)}`);
    };
    for (const pattern of tries.some(REGULAR, 4)) {
      await call('grep', { pattern, path: 'long.txt' });
      await call('grep', { pattern, path: 'aaa.txt', context: 3, ignoreCase: true });
    }
    for (const pattern of tries.some(GLOBS, 5)) {
      await call('find', { pattern });
      await call('grep', { pattern: 'x', glob: pattern });
    }
    for (const rules of tries.some(IGNORED, 4)) {
      await writeFile(join(root, '.gitignore'), `${rules}\n`);
      await call('find', { pattern: '*.txt' });
      await call('tree', { depth: 40 });
      await call('grep', { pattern: 'x' });
    }
    await writeFile(join(root, '.gitignore'), '');
  },
  () => server,
);
