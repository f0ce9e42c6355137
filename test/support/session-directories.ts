import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import fc, { type Arbitrary } from 'fast-check';
import { anyText } from './any-text.js';

/** The files of a session directory, by path. */
export type DirectoryFiles = Readonly<Record<string, string>>;

/** Writes files into a folder. */
export async function writeFiles(folder: string, files: DirectoryFiles): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

/** Reads all files below a folder as texts. */
export async function filesIn(folder: string): Promise<DirectoryFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  return Object.fromEntries(
    await Promise.all(paths.sort().map(async (path) => [path, await readFile(join(folder, path), 'utf8')] as const)),
  );
}

const lines = (values: readonly object[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('');

/** A directory of another program: calls in the events, outputs in parts, notes, pins, a child. */
export const FOREIGN: DirectoryFiles = {
  'messages.jsonl': lines([
    { role: 'system', content: 'You are terse.' },
    { role: 'user', content: 'Where is the port set?', seq: 1 },
    { role: 'assistant', content: [{ type: 'text', text: 'I look.' }] },
    { role: 'tool', content: [{ type: 'tool_result', tool_call_id: 'c1', content: 'port = 8080\n'.repeat(40) }] },
    { role: 'assistant', content: 'In the settings.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'And this?' },
        { type: 'image', path: 'shots/a.png' },
      ],
    },
    {
      content: 'Two calls at once.',
      role: 'assistant',
      tool_calls: [
        { id: 'c2', function: { name: 'ls', arguments: '{"path":"."}' } },
        { id: 'c3', name: 'cat', arguments: {} },
      ],
    },
    { role: 'tool', content: [{ type: 'tool_result', tool_call_id: 'c3', content: '' }], status: 'fail' },
    {
      role: 'tool',
      content: [
        { type: 'tool_result', tool_call_id: 'c2', content: 'a.png\n' },
        { type: 'tool_result', tool_call_id: 'none', content: 'x' },
      ],
    },
  ]),
  'events.jsonl': lines([
    { type: 'start', run: 'r1', model: 'debug/echo' },
    { type: 'tool_call', run: 'r1', id: 'c1', name: 'grep', arguments: { pattern: 'port' } },
    { type: 'approval_request', run: 'r1', id: 'c1', name: 'grep', args: ['port'] },
    { type: 'approval_result', run: 'r1', id: 'c1', name: 'grep', decision: 'allow_once', reason: 'fine' },
    { type: 'tool_result', run: 'r1', id: 'c1', content: 'cut' },
    { type: 'usage', run: 'r1', input_tokens: 10, output_tokens: 2 },
    { type: 'done', run: 'r1', status: 'ok' },
    { type: 'start', run: 'r2' },
    { type: 'delta', run: 'r2', text: 'Two' },
  ]),
  'meta.json': '{"client":"another","model":"m-1","scope":"private"}',
  state: 'active\n',
  cwd: '/home/u/p\n',
  created_at: '2026-01-05T09:00:00Z\n',
  updated_at: '2026-01-05T09:01:00Z\n',
  'latest.md': 'In the settings.\n',
  'context/summary.md': 'They look for the port.\n',
  'context/facts.jsonl': '{"id":"f1", "text":"The port is 8080.", "source":"messages:4", "by":"m-1"}\n',
  'context/decisions.jsonl': '{"id":"d1","decision":"Leave it.","source":"user:latest"}\n',
  'context/todo.md': '# Work\n- [ ] look at a.png\n- [x] find the port\n',
  'context/refs.jsonl': '{"id":"r1","path":"settings.ini","kind":"file","summary":"where the port is"}\n',
  'context/budget': '4000\n',
  'context/gc.policy': 'pack_ttl=1d\n',
  'context/pinned/style.md': 'Short sentences.\n',
  'context/pinned/no-end.md': 'without an end',
  'context/swap/index.jsonl': '',
  'context/swap/chunk/sha256-abc': '{"source":"messages.jsonl","start":1,"end":2}\n',
  'context/child/rev-1/agent': 'reviewer\n',
  'context/child/rev-1/session': 'rev-session\n',
  'context/child/rev-1/status': 'done\n',
  'context/child/rev-1/handoff.md': 'Review it.\n',
  'context/child/rev-1/result.md': 'Fine.\n',
  'context/child/rev-1/refs.jsonl': '',
  'context/child/rev-1/artifact/notes.md': 'one\n',
};

const text = fc.oneof(
  { weight: 4, arbitrary: anyText({ maxLength: 30 }) },
  fc.constantFrom(
    '',
    'one\ntwo',
    '\u{1F600}'.repeat(120),
    'x'.repeat(400),
    '\u2028 \u0000 "\\',
    '<system-reminder>\nhush\n</system-reminder>',
  ),
);
const id = fc.constantFrom('c1', 'c2', 'c3', 'call_4');
const member = fc.record({ tag: text, n: fc.integer() }, { requiredKeys: [] });
const line = (fields: Arbitrary<object>): Arbitrary<object> =>
  fc.tuple(fields, member).map(([own, more]) => ({ ...own, ...more }));
const message = fc.oneof(
  line(fc.record({ role: fc.constantFrom('user', 'assistant', 'system'), content: text })),
  line(
    fc.record({
      role: fc.constantFrom('user', 'assistant'),
      content: fc.array(fc.record({ type: fc.constant('text'), text }), { maxLength: 2 }),
    }),
  ),
  line(
    fc.record({
      role: fc.constant('assistant'),
      content: text,
      tool_calls: fc.array(
        fc.record({ id, name: fc.constantFrom('ls', 'cat'), arguments: fc.record({ path: text }) }),
        { maxLength: 2 },
      ),
    }),
  ),
  line(
    fc.record({
      role: fc.constant('tool'),
      content: fc.array(fc.record({ type: fc.constant('tool_result'), tool_call_id: id, content: text }), {
        minLength: 1,
        maxLength: 2,
      }),
    }),
  ),
);
const event = fc.oneof(
  fc.record({
    type: fc.constantFrom('start', 'delta', 'message', 'reasoning_delta'),
    run: fc.constantFrom('r1', 'r2'),
    text,
  }),
  fc.record({
    type: fc.constant('tool_call'),
    run: fc.constant('r1'),
    id,
    name: fc.constantFrom('ls', 'cat'),
    arguments: fc.record({ path: text }),
  }),
  fc.record({ type: fc.constant('tool_result'), run: fc.constant('r1'), id, content: text }),
  fc.record({ type: fc.constant('done'), run: fc.constant('r1'), status: fc.constantFrom('ok', 'error') }),
  fc.record({
    type: fc.constant('approval_request'),
    run: fc.constant('r1'),
    id,
    name: fc.constant('ls'),
    args: fc.array(text, { maxLength: 2 }),
  }),
  fc.record({
    type: fc.constant('approval_result'),
    run: fc.constant('r1'),
    id,
    name: fc.constant('ls'),
    decision: fc.constantFrom('deny', 'allow_once', 'later'),
    reason: fc.constant('so'),
  }),
);
const oneLine = fc.constantFrom('The port is 8080.', 'No tabs.', '\u{1F600} é');
const named = (field: string) =>
  fc.uniqueArray(
    fc.record({
      id: fc.constantFrom('a', 'b', 'c'),
      [field]: oneLine,
      source: fc.constantFrom('messages:1', 'messages:1-2', 'user:latest'),
    }),
    { selector: (one) => one.id, maxLength: 3 },
  );

/** Any canonical directory of a program that knows nothing of Palimpsest. */
export const anyDirectory: Arbitrary<DirectoryFiles> = fc
  .record({
    messages: fc.array(message, { maxLength: 12 }),
    events: fc.array(event, { maxLength: 8 }),
    facts: named('text'),
    decisions: named('decision'),
    todo: fc.array(fc.tuple(fc.constantFrom(' ', 'x'), oneLine), { maxLength: 2 }),
    pinned: fc.dictionary(fc.constantFrom('system.md', 'style.md', 'r7.md'), text, { maxKeys: 3 }),
    others: fc.dictionary(
      fc.constantFrom('cwd', 'latest.md', 'AGENTS.md', 'context/summary.md', 'context/plan.json', 'context/pack.md'),
      text,
      { maxKeys: 4 },
    ),
  })
  .map(({ messages, events, facts, decisions, todo, pinned, others }) => ({
    'messages.jsonl': lines(messages),
    'events.jsonl': lines(events),
    'meta.json': '{"client":"any","scope":"private"}\n',
    'context/facts.jsonl': lines(facts),
    'context/decisions.jsonl': lines(decisions),
    'context/todo.md': todo.map(([mark, what]) => `- [${mark}] ${what}\n`).join(''),
    ...Object.fromEntries(Object.entries(pinned).map(([name, content]) => [`context/pinned/${name}`, content])),
    ...others,
  }));
