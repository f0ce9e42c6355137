import { describe, expect, test } from '@jest/globals';
import { fileFindings, findingText, readBudget } from '../../../../src/contracts/cortexfs/check-file.js';
import { type LineFile, lineFindings } from '../../../../src/contracts/cortexfs/check-line.js';
import { contentName, isName, nameFor, sourceFault } from '../../../../src/contracts/cortexfs/session-paths.js';
import { hashText } from '../../../../src/objects/hashes.js';

/** Returns the findings of a line as `issue field`. */
const issues = (file: LineFile, line: string): readonly string[] =>
  lineFindings(file, line).map(({ issue, field }) => `${issue} ${field}`.trimEnd());

describe('sources of a pack', () => {
  test.each([
    'messages.jsonl',
    'events.jsonl',
    'context/facts.jsonl',
    'context/summary.md',
    'context/pinned/rules.md',
    'context/dedup/index.jsonl',
    'context/child/helper-1/result.md',
    'context/child/helper-1/refs.jsonl',
    'context/child/helper-1/handoff.md',
    'context/child/helper-1/artifact/plan.md',
  ])('include %s', (source) => expect(sourceFault(source)).toBeUndefined());

  test.each([
    ['', 'empty'],
    ['/srv/shared/messages.jsonl', 'absolute'],
    ['context//facts.jsonl', 'part of it is empty'],
    ['context/./facts.jsonl', '. or ..'],
    ['../other/messages.jsonl', '. or ..'],
    ['session/other/messages.jsonl', 'not a file of the session'],
    ['context/other.md', 'not a file of the context area'],
    ['context/swap/chunk/sha256-1', 'not a file of the context area'],
    ['context/child/helper-1/messages.jsonl', 'of a child only'],
    ['context/child/bad name/result.md', 'of a child only'],
  ])('exclude %j', (source, why) => expect(sourceFault(source)).toContain(why));
});

describe('packs', () => {
  const found = (text: string) =>
    fileFindings('context/pack.json', text).map(({ issue, field }) => `${issue} ${field}`.trimEnd());

  test.each([
    ['{', ['invalid-json']],
    ['{"items":[]} more', ['invalid-json']],
    ['{"items":[],"items":[]}', ['invalid-json']],
    ['[]', ['not-an-object']],
    ['{"items":{"source":"messages.jsonl"}}', ['invalid-field items']],
    ['{"items":["messages.jsonl"]}', ['not-an-object items[0]']],
    [
      '{"items":[{"kind":"none"},{"kind":"n","source":42}]}',
      ['missing-field items[0].source', 'invalid-field items[1].source'],
    ],
    ['{"items":[{"source":"../x"}]}', ['invalid-field items[0].source']],
    ['{"items":[{"kind":"facts","source":"context/facts.jsonl","tokens":1}]}', []],
  ])('are checked field by field: %s', (text, expected) => expect(found(text)).toEqual(expected));
});

describe('lines', () => {
  test.each<[LineFile, string]>([
    ['messages', '{"role":"system","content":"Be brief."}'],
    ['messages', '{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","path":"a.png"}]}'],
    [
      'messages',
      '{"role":"tool","content":[{"type":"tool_result","tool_call_id":"call-1","content":"ok"}],"anything":1}',
    ],
    ['events', '{"type":"start","run":"r1","model":"none/echo"}'],
    ['events', '{"type":"tool_call","run":"r1","id":"call-1","name":"fs.read","arguments":{"path":"a.md"}}'],
    [
      'events',
      '{"type":"usage","run":"r1","input_tokens":10,"output_tokens":1,"cached_tokens":8,"cache_write_tokens":4}',
    ],
    ['events', '{"type":"done","run":"r1","status":"ok"}'],
    ['events', '{"type":"error","run":"r1","code":"EACCES","message":"no"}'],
    ['events', '{"type":"approval_request","run":"r1","id":"call-1","name":"echo","args":["a"]}'],
    [
      'events',
      '{"type":"approval_result","run":"r1","id":"call-1","name":"echo","decision":"allow_once","reason":"once"}',
    ],
    ['events', '{"type":"agent.child.cancel","parent":"lead","child":"helper-1","reason":"parent_dead"}'],
    ['events', '{"type":"agent.stop","agent":"lead","status":"cancelled"}'],
    ['facts', '{"id":"f1","text":"The port is 8080.","source":"messages:1-2"}'],
    ['decisions', '{"id":"d1","decision":"Use one file.","source":"user:latest"}'],
    ['refs', '{"id":"r1","path":"/srv/plan.md","kind":"file","summary":"the plan"}'],
    ['refs', '{"id":"r2","path":"context/swap/chunk/sha256-1","kind":"swap","summary":"the beginning"}'],
    [
      'swap',
      '{"id":"sha256-1","kind":"message_range","source":"messages.jsonl","range":"1-9","summary":"the ' +
        'beginning","tokens":90}',
    ],
    ['dedup', '{"hash":"sha256-1","refs":["messages:1"],"bytes":12,"tokens":3}'],
  ])('of %s accept %s', (file, line) => expect(issues(file, line)).toEqual([]));

  test.each<[LineFile, string, readonly string[]]>([
    ['messages', 'no json', ['invalid-json']],
    ['messages', '', ['invalid-json']],
    ['messages', '[]', ['not-an-object']],
    ['messages', '{"content":"x"}', ['missing-field role']],
    ['messages', '{"role":"developer","content":"x"}', ['invalid-field role']],
    ['messages', '{"role":"assistant","response_id":"r","content":"x"}', ['native-field response_id']],
    ['messages', '{"role":"assistant","content":"x","meta":[{"thread_id":"t"}]}', ['native-field thread_id']],
    ['messages', '{"role":"assistant","content":[{"type":"blob","text":"x"}]}', ['invalid-field content']],
    ['messages', '{"role":"assistant","content":null}', ['invalid-field content']],
    ['messages', '{"role":"assistant"}', ['missing-field content']],
    ['messages', '{"role":"assistant","content":[{"type":"text","text":"a","text":"b"}]}', ['invalid-json']],
    ['messages', '{"role":"user","content":"a","\\u0072ole":"user"}', ['invalid-json']],
    ['events', '{"type":"delta","text":"x"}', ['missing-field run']],
    ['events', '{"type":"error","run":"r1","code":"DENIED"}', ['invalid-field code']],
    ['events', '{"type":"done","run":"r1","status":"maybe"}', ['invalid-field status']],
    ['events', '{"type":"tool_call","run":"r1","id":"bad/id","name":"fs.read"}', ['invalid-field id']],
    [
      'events',
      '{"type":"approval_result","run":"r1","id":"c","name":"e","decision":"deny","reason":""}',
      ['invalid-field reason'],
    ],
    ['events', '{"type":"usage","run":"r1","input_tokens":"1","output_tokens":1}', ['invalid-field input_tokens']],
    ['events', '{"type":"native_thread","run":"r1"}', ['unknown-type type']],
    ['events', '{"type":"constructor","run":"r1"}', ['unknown-type type']],
    ['facts', '{"id":"bad/id","text":"ok"}', ['invalid-field id', 'missing-field source']],
    ['facts', '{"id":"f1","id":"f2","text":"ok","source":"messages:1"}', ['invalid-json']],
    ['facts', '{"id":"f1","text":"two\\nlines","source":"messages:1"}', ['invalid-field text']],
    [
      'refs',
      '{"id":"r1","path":"../secret","kind":"thread","summary":"bad"}',
      ['invalid-field path', 'invalid-field kind'],
    ],
    [
      'swap',
      `{"id":"sha256-${'a'.repeat(64)}","kind":"file","source":"x","summary":"s","tokens":-1}`,
      ['invalid-field id', 'invalid-field source', 'invalid-field tokens'],
    ],
    [
      'dedup',
      '{"hash":"md5-old","refs":[],"bytes":"120","tokens":3000}',
      ['invalid-field hash', 'invalid-field refs', 'invalid-field bytes'],
    ],
  ])('of %s refuse %s', (file, line, expected) => expect(issues(file, line)).toEqual(expected));

  test('survive a text of ten million characters and one nested a hundred thousand deep', () => {
    expect(issues('messages', JSON.stringify({ role: 'user', content: '\\"'.repeat(5_000_000) }))).toEqual([]);
    expect(
      issues('messages', `{"role":"user","content":"x","deep":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
    ).toEqual(['invalid-json']);
  });
});

describe('files', () => {
  test('yield findings with file, line and field; a last line without an end is cut off', () => {
    const found = fileFindings(
      'messages.jsonl',
      '{"role":"user","content":"x"}\n{"role":"robot","content":"x"}\n{"role":"user","content":"x"}',
    );
    expect(found.map(findingText)).toEqual([
      'messages.jsonl, line 2: the field role must be one of system, user, assistant, tool',
      'messages.jsonl, line 3: the last line does not end with a line break and may be truncated',
    ]);
    expect(fileFindings('messages.jsonl', '')).toEqual([]);
    expect(fileFindings('context/facts.jsonl', '\n').map(findingText)).toEqual([
      'context/facts.jsonl, line 1: it is not JSON',
    ]);
  });

  test.each([
    ['', undefined],
    ['0\n', undefined],
    ['32000\n', 32_000],
    ['7', 7],
    [' 2\n', null],
    ['2 \n', null],
    ['2\n\n', null],
    ['-1\n', null],
    ['9'.repeat(30), null],
  ])('check the budget %j', (text, expected) => {
    expect(readBudget(text)).toBe(expected);
    expect(fileFindings('context/budget', text)).toHaveLength(expected === null ? 1 : 0);
  });

  test.each([
    ['state', 'idle\n', 0],
    ['state', 'asleep\n', 1],
    ['context/child/helper-1/status', 'done\n', 0],
    ['context/child/helper-1/status', 'gone\n', 1],
    ['context/child/bad name/result.md', 'x', 1],
    ['context/child/helper-1/refs.jsonl', '{"id":"r1"}\n', 3],
    ['meta.json', '{"client":"a","model":"b","scope":"private"}\n', 0],
    ['meta.json', '{"scope":"public"}\n', 1],
    ['meta.json', '{"scope":"private","scope":"private"}\n', 1],
    ['latest.md', 'anything', 0],
  ])('%s with %j', (path, text, expected) => expect(fileFindings(path, text)).toHaveLength(expected));
});

describe('names', () => {
  test('stay as they are or become unique', () => {
    expect(['call_1', 'a.b+c-d', 'x'.repeat(64)].map(nameFor)).toEqual(['call_1', 'a.b+c-d', 'x'.repeat(64)]);
    const others = ['', 'a b', 'a/b', 'a.sock', '_a', 'x'.repeat(65), '\u{1F600}', 'mcp__x/y'];
    expect(others.filter(isName)).toEqual([]);
    expect(others.map(nameFor).filter((name) => !isName(name))).toEqual([]);
    expect(new Set(others.map(nameFor)).size).toBe(others.length);
    expect(isName(contentName(hashText('x')))).toBe(true);
  });
});
