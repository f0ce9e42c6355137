import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { afterAll, beforeAll } from '@jest/globals';
import { RecordingError } from '../../src/lab/recordings/open-recording.js';
import { attack } from '../support/attack.js';
import { bytesSource, importAll, recordingPath } from '../support/recordings.js';
import { RecordingLines, recordingFolder, replay } from '../support/replays.js';

/** Far more than any of these takes. */
const MOST_MS = 20_000;
const FORMATS = readdirSync(recordingPath(''), { recursive: true, encoding: 'utf8' }).filter((name) =>
  statSync(recordingPath(name)).isFile(),
);

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
beforeAll(async () => {
  recordings = await recordingFolder();
});
afterAll(() => recordings.remove());

const deep = (depth: number): string => `${'{"a":['.repeat(depth)}1${']}'.repeat(depth)}`;
const NAMES = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
  'length',
  'then',
  '',
] as const;
const CONTROLS = '\\u0000\\u0001\\u001b[2J\\u001b]0;title\\u0007\\u009b5m\\r\\u202e\\u2028\\ud800';
const ESCAPES = [
  '../../../../etc/cron.d/x',
  '/etc/passwd',
  '/proc/self/mem',
  '//x',
  'a/../../..',
  '~/.ssh/authorized_keys',
  '\\u0000/x',
  '.'.repeat(5_000),
] as const;
const FORGED = [
  'session:x',
  'chat:x',
  'system_prompt:x',
  'step:x:1',
  'chunk:x',
  'assembly:x',
  'x:1',
  ':xt/id',
  '#=(eval 1)',
  'a b',
  '\\n',
  'x'.repeat(10_000),
] as const;

/** Modifications of a recording's text, each at every place of a kind. */
const SPOILED: readonly (readonly [string, (text: string) => string])[] = [
  ...NAMES.map(
    (name) =>
      [
        `every role is ${name}`,
        (text: string) => text.replaceAll(/"(role|type|source|kind|action)": ?"[^"]*"/g, `"$1":"${name}"`),
      ] as const,
  ),
  ...NAMES.map(
    (name) =>
      [
        `every tool is ${name}`,
        (text: string) => text.replaceAll(/"(name|tool|tool_name)": ?"[^"]*"/g, `"$1":"${name}"`),
      ] as const,
  ),
  ...NAMES.map(
    (name) =>
      [
        `every text is a member ${name}`,
        (text: string) => text.replaceAll(/"(text|content)": ?"[^"]*"/g, `"$1":{"${name}":{"x":1}}`),
      ] as const,
  ),
  ...FORGED.map(
    (id) =>
      [
        `every id is ${id.slice(0, 20)}`,
        (text: string) =>
          text.replaceAll(/"(id|uuid|call_id|tool_use_id|tool_call_id|callId|sessionId)": ?"[^"]*"/g, `"$1":"${id}"`),
      ] as const,
  ),
  ...ESCAPES.map(
    (path) =>
      [
        `every path is ${path.slice(0, 20)}`,
        (text: string) => text.replaceAll(/"(file_path|path|filePath|cwd)": ?"[^"]*"/g, `"$1":"${path}"`),
      ] as const,
  ),
  ['control characters in every text', (text) => text.replaceAll(/"(text|content|output)": ?"/g, `"$1":"${CONTROLS}`)],
  ['every number is beyond all', (text) => text.replaceAll(/: ?\d+/g, ':1e400')],
  ['every number is large', (text) => text.replaceAll(/: ?\d+/g, ':99999999999999999999')],
  [
    'every time is invalid',
    (text) =>
      text.replaceAll(/"(timestamp|time|ts|created_at|startTime)": ?"[^"]*"/g, '"$1":"+275760-09-13T00:00:00.001Z"'),
  ],
  ['every null is deep', (text) => text.replaceAll('null', deep(2_000))],
  ['every text is a list', (text) => text.replaceAll(/"(text|content)": ?"[^"]*"/g, `"$1":[[[["x"]]]]`)],
  ['every list is a map', (text) => text.replaceAll('[', '{"0":').replaceAll(']', '}')],
  ['every member stands twice', (text) => text.replaceAll(/("(?:role|type|id)": ?"[^"]*")/g, '$1,$1')],
  ['without quotes', (text) => text.replaceAll('"', '')],
  ['all lines in one', (text) => text.replaceAll('\n', ' ')],
  ['one line a hundred times over', (text) => `${(text.split('\n')[1] ?? '').repeat(100)}\n${text}`],
  ['lines without an end', (text) => text.replaceAll('\n', '\r')],
  ['a giant text', (text) => text.replace(/"(text|content)": ?"/, `"$1":"${'x'.repeat(8_000_000)}`)],
  [
    'a giant number of members',
    (text) => text.replace(/\{/, `{${Array.from({ length: 50_000 }, (_, n) => `"k${n}":1,`).join('')}`),
  ],
  ['deep before all else', (text) => `${deep(100_000)}\n${text}`],
  ['deep within', (text) => text.replace(/"(input|arguments|args)": ?\{/, `"$1":{"deep":${deep(5_000)},`)],
  [
    'deep within a text',
    (text) => text.replaceAll(/"arguments": ?"/g, `"arguments":"${deep(5_000).replaceAll('"', '\\"')}`),
  ],
  ['zeros within', (text) => text.replaceAll(',', ',\u0000')],
  ['another character set', (text) => Buffer.from(text, 'utf16le').toString('latin1')],
  ['a mark of byte order on each line', (text) => text.replaceAll('\n', '\n\ufeff')],
];

/** Returns the fault of how work ended. It may refuse with an error that names its cause. */
async function judge(work: () => Promise<unknown>): Promise<string | undefined> {
  const members = Object.getOwnPropertyNames(Object.prototype).join();
  const from = performance.now();
  const thrown = await work().then(
    () => undefined,
    (error: unknown) => error,
  );
  const took = Math.round(performance.now() - from);
  if (took > MOST_MS) return `it took ${took} ms`;
  if (Object.getOwnPropertyNames(Object.prototype).join() !== members) return 'it changed what all objects inherit';
  if (thrown === undefined || thrown instanceof RecordingError) return undefined;
  return thrown instanceof Error ? (thrown.stack ?? thrown.message).slice(0, 600) : String(thrown);
}

attack('recordings', async (tries) => {
  const all = FORMATS.flatMap((name) => SPOILED.map(([what, spoil]) => ({ what: `${name}: ${what}`, name, spoil })));
  for (const { what, name, spoil } of tries.some(all, 60)) {
    const text = spoil(readFileSync(recordingPath(name), 'utf8'));
    tries.tried(what, await judge(() => importAll(bytesSource(text))));
  }

  // Whole replays of calls that an agent might be tricked into.
  const lines = (): RecordingLines => new RecordingLines().user('go');
  const hostile: readonly (readonly [string, RecordingLines])[] = [
    ...NAMES.map(
      (name) =>
        [
          `a tool ${name}`,
          lines()
            .calls('c', name, { [name]: name })
            .answers('c', 'ok'),
        ] as const,
    ),
    ...FORGED.map(
      (id) => [`a call ${id.slice(0, 20)}`, lines().calls(id, 'Read', { file_path: '/p/a' }).answers(id, 'x')] as const,
    ),
    ...ESCAPES.map(
      (path) =>
        [`a file ${path.slice(0, 20)}`, lines().reads('c', path, 'x\n').edits('d', path, 'x\n', 'x', 'y')] as const,
    ),
    ['deep arguments', lines().calls('c', 'Other', 'DEEP').answers('c', 'ok')],
    [
      'a line end in an id',
      lines().calls('c\nforged: line', 'Read', { file_path: '/p/a' }).answers('c\nforged: line', 'x'),
    ],
    ['an answer without a call', lines().answers('nobody', 'x')],
    ['a text of control characters', lines().user(JSON.parse(`"${CONTROLS.replace('\\ud800', '')}"`))],
    ['a lone surrogate', lines().user('\ud800')],
  ];
  for (const [at, [what, { text }]] of tries.some(hostile, 3).entries())
    tries.tried(
      `a replay of ${what}`,
      await judge(async () => replay(await recordings.write(`r${at}.jsonl`, text.replaceAll('"DEEP"', deep(3_000))))),
    );
  tries.tried('the files of this machine', existsSync('/etc/cron.d/x') ? 'a replay wrote one' : undefined);
  tries.tried(
    'the folder of the recordings',
    readdirSync(recordings.folder).every((name) => /^r\d+\.jsonl$/.test(name)) ? undefined : 'a replay wrote into it',
  );
});
