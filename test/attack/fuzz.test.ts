import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import fc, { type Arbitrary } from 'fast-check';
import { type Attack, attack, several } from '../support/attack.js';
import { type Agent, stdioAgent } from '../support/mcp-clients.js';
import { type AttackedServer, attackedServer } from './attacked-server.js';

/** Far more than a call takes. */
const MOST_MS = 20_000;
/** Maximum length of a failed answer. */
const LONGEST_ERROR = 2_048;
const CALLS_OF_A_SESSION = 400;
/** Concurrent calls of one agent. */
const AT_ONCE = 3;

let server: AttackedServer;
let byStdio: Agent;

beforeAll(async () => {
  server = await attackedServer();
  const { root } = server;
  await mkdir(join(root, 'src'));
  await writeFile(join(root, 'src', 'a.ts'), 'const a = 1;\nconst b = 2;\n');
  await writeFile(join(root, 'poem.txt'), 'roses\nviolets\n');
  byStdio = await stdioAgent(root, ['--log-level', 'silent']);
});
afterAll(async () => {
  await byStdio.close();
  await server.close();
});

interface JsonSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
}

const nested = (depth: number, inner: unknown): unknown =>
  depth === 0 ? inner : nested(depth - 1, depth % 2 === 0 ? [inner] : { a: inner });

const TEXTS = [
  '',
  ' ',
  '.',
  '..',
  '/',
  '~',
  '*',
  '**',
  '[',
  '(',
  '\\',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\u202e',
  '\ufeff',
  '\r\n',
  '\u001b[2J',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'NaN',
  '{}',
  '[]',
  '["a"]',
  '1e999',
  '-1',
  '../../../../etc/passwd',
  '/etc/passwd',
  '/proc/self/environ',
  '/dev/zero',
  'file:///etc/passwd',
  '%s%n%x',
  '$(HOME)',
  '$(id)',
  '`id`',
  '; rm -rf /',
  "' OR 1=1 --",
  '#=(eval 1)',
  ':xt/id',
  'session:x',
  'chat:x',
  'system_prompt:x',
  'f'.repeat(64),
  'src',
  'src/a.ts',
  'poem.txt',
  'a'.repeat(5_000),
  '𝒜'.repeat(300),
  '\n'.repeat(3_000),
  '(a+)+$',
  '{a,b}',
  'roses',
  'const',
] as const;
const NUMBERS = [
  0,
  -0,
  1,
  -1,
  2,
  10,
  0.5,
  2 ** 31,
  2 ** 53,
  2 ** 53 + 2,
  -(2 ** 63),
  1e21,
  1e308,
  -1e308,
  5e-324,
] as const;
const OTHERS = [
  null,
  true,
  false,
  [],
  {},
  [null],
  [[]],
  { length: 1e9 },
  JSON.parse('{"__proto__":{"a":1}}'),
  { constructor: 1 },
  nested(60, 'x'),
  Array(500).fill('x'),
] as const;

const text = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
);
const number = fc.oneof(fc.constantFrom(...NUMBERS), fc.integer({ min: -5, max: 3_000 }));
const hostile: Arbitrary<unknown> = fc.oneof(
  text,
  number,
  fc.constantFrom<unknown>(...OTHERS),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Values of a schema, and sometimes invalid ones. */
function valuesOf(schema: JsonSchema): Arbitrary<unknown> {
  const kinds: Readonly<Record<string, () => Arbitrary<unknown>>> = {
    string: () => text,
    number: () => number,
    integer: () => number,
    boolean: () => fc.boolean(),
    array: () => fc.array(valuesOf(schema.items ?? {}), { maxLength: 5 }),
    object: () => argumentsOf(schema),
  };
  const right = kinds[schema.type ?? '']?.() ?? hostile;
  return fc.oneof({ weight: 5, arbitrary: right }, { weight: 1, arbitrary: hostile });
}

function argumentsOf({ properties = {}, required = [] }: JsonSchema): Arbitrary<Readonly<Record<string, unknown>>> {
  const known = Object.entries(properties).filter(([name]) => name !== 'session');
  const shape = Object.fromEntries(known.map(([name, schema]) => [name, valuesOf(schema)]));
  const named = fc.record(shape, { requiredKeys: required.filter((name) => name in shape) });
  const strange = fc.dictionary(
    fc.oneof(
      fc.constantFrom('__proto__', 'constructor', 'length', '', 'file_path', 'old_string'),
      fc.string({ maxLength: 8 }),
    ),
    hostile,
    { maxKeys: 2 },
  );
  return fc.oneof(
    { weight: 6, arbitrary: named },
    { weight: 1, arbitrary: fc.tuple(named, strange).map(([one, two]) => ({ ...one, ...two })) },
  );
}

const META_KEYS = [
  'threadId',
  'callId',
  'itemId',
  'claudecode/toolUseId',
  'turnId',
  'x-codex-turn-metadata',
  'palimpsest/session',
] as const;
const metas = fc.option(fc.dictionary(fc.constantFrom(...META_KEYS), hostile, { maxKeys: 2 }), {
  freq: 8,
  nil: undefined,
});

async function fuzz(tries: Attack, way: string, agent: Agent, count: number): Promise<void> {
  const { tools } = await agent.client.listTools();
  const calls = fc.oneof(
    ...tools.map(({ name, inputSchema }) => fc.tuple(fc.constant(name), argumentsOf(inputSchema as JsonSchema), metas)),
    fc.tuple(text, fc.constant({}), fc.constant(undefined)),
  );
  const all = fc.sample(calls, count);
  const known = new Set(tools.map(({ name }) => name));
  const one = async ([name, args, meta]: (typeof all)[number], n: number): Promise<void> => {
    const what = `${way}: ${name} ${JSON.stringify(args).slice(0, 400)} ${JSON.stringify(meta)?.slice(0, 200) ?? ''}`;
    const session =
      meta === undefined ? { session: `fuzz-${way}-${process.pid}-${Math.floor(n / CALLS_OF_A_SESSION)}` } : {};
    const params = { name, arguments: { ...args, ...session }, ...(meta === undefined ? {} : { _meta: meta }) };
    const broken = await agent.client.callTool(params, undefined, { timeout: MOST_MS }).then(
      ({ content, isError }) => {
        const [part, ...more] = content as readonly { readonly type: string; readonly text: string }[];
        if (part === undefined || more.length > 0 || part.type !== 'text' || part.text === '')
          return `not one text: ${JSON.stringify(content).slice(0, 300)}`;
        if (isError === true && Buffer.byteLength(part.text) > LONGEST_ERROR)
          return `an error of ${Buffer.byteLength(part.text)} bytes: ${part.text.slice(0, 300)}`;
        return isError === true && !part.text.startsWith('Error: ')
          ? `an error that does not say so: ${part.text.slice(0, 300)}`
          : undefined;
      },
      // An unknown tool is a protocol error.
      (error: Error) =>
        known.has(name) || !/-32602|Unknown tool/.test(error.message)
          ? `${error.name}: ${error.message.slice(0, 300)}`
          : undefined,
    );
    tries.tried(what, broken);
  };
  await several(all, AT_ONCE, one);
}

attack(
  'fuzz',
  async (tries) => {
    const before = (await readdir(server.base)).sort();
    const calls = tries.size(40, 10_000);
    await Promise.all([fuzz(tries, 'http', server.agent, calls), fuzz(tries, 'stdio', byStdio, calls)]);
    const now = (await readdir(server.base)).sort();
    tries.tried('what stands outside', now.join() === before.join() ? undefined : `outside became ${now.join()}`);
  },
  () => server,
);
