import { parse as parseToml } from '@decimalturn/toml-patch';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type ParseError, parse as parseJson } from 'jsonc-parser';
import type { Change } from '../../../src/agents/edits/change.js';
import { changeSettings, takeBackSettings } from '../../../src/agents/edits/edit.js';

const SERVER = { command: 'palimpsest', args: ['mcp', '--data', '/home/me/data'] };
const ENTRY: Change = { kind: 'entry', path: ['mcpServers', 'ctx'], value: SERVER };
const ASK: Change = { kind: 'members', path: ['permissions', 'ask'], values: ['mcp__ctx__write', 'mcp__ctx__edit'] };
const TABLE: Change = {
  kind: 'entry',
  path: ['mcp_servers', 'ctx'],
  value: { ...SERVER, startup_timeout_sec: 20, tools: { write: { approval_mode: 'prompt' } } },
};

const lines = (...all: readonly string[]): string => `${all.join('\n')}\n`;
const inJson = (text: string, ...changes: readonly Change[]): string =>
  changeSettings('json', text, changes.length === 0 ? [ENTRY] : changes).text;
const inToml = (text: string): string => changeSettings('toml', text, [TABLE]).text;

/** Makes the changes and undoes them at once. */
function thereAndBack(format: 'json' | 'toml', text: string, ...changes: readonly Change[]): string {
  const { text: changed, made } = changeSettings(format, text, changes);
  expect(changed).not.toBe(text);
  return takeBackSettings(format, changed, made).text;
}

describe('an entry in JSON', () => {
  test('creates the text of a missing file', () => {
    expect(inJson('')).toBe(
      lines(
        '{',
        '  "mcpServers": {',
        '    "ctx": {',
        '      "command": "palimpsest",',
        '      "args": [',
        '        "mcp",',
        '        "--data",',
        '        "/home/me/data"',
        '      ]',
        '    }',
        '  }',
        '}',
      ),
    );
    expect(takeBackSettings('json', inJson(''), changeSettings('json', '', [ENTRY]).made)).toMatchObject({
      isEmpty: true,
    });
  });

  test('leaves comments in their place, and is added after them', () => {
    const text = lines('{', '  // theme', '  "theme": "dark" // at night', '  // the end', '}');
    const changed = inJson(text, { ...ENTRY, value: 1 });
    expect(changed).toBe(
      lines(
        '{',
        '  // theme',
        '  "theme": "dark", // at night',
        '  // the end',
        '  "mcpServers": {',
        '    "ctx": 1',
        '  }',
        '}',
      ),
    );
  });

  test('is added beside existing servers, with the indentation and line endings of the file', () => {
    const text = lines('{', '\t"mcpServers": {', '\t\t"fs": { "command": "fs" }', '\t}', '}').replaceAll('\n', '\r\n');
    const changed = inJson(text, { ...ENTRY, value: { a: 1 } });
    expect(changed).toBe(
      lines(
        '{',
        '\t"mcpServers": {',
        '\t\t"fs": { "command": "fs" },',
        '\t\t"ctx": {',
        '\t\t\t"a": 1',
        '\t\t}',
        '\t}',
        '}',
      ).replaceAll('\n', '\r\n'),
    );
  });

  test('keeps a file of one line on one line', () => {
    const text = '{"a":1,"mcpServers":{"fs":{}}}';
    expect(inJson(text, { ...ENTRY, value: { a: 1 } })).toBe('{"a":1,"mcpServers":{"fs":{}, "ctx": {"a":1}}}');
  });

  test('accepts a trailing comma, an empty object with a comment, and a file of comments', () => {
    for (const text of ['{\n  "a": 1,\n}\n', '{\n  "mcpServers": { /* none */ }\n}\n', '// nothing yet\n']) {
      const errors: ParseError[] = [];
      const changed = inJson(text);
      expect(parseJson(changed, errors, { allowTrailingComma: true })).toMatchObject({ mcpServers: { ctx: SERVER } });
      expect(errors).toEqual([]);
      for (const comment of text.match(/\/\*.*\*\/|\/\/.*/g) ?? []) expect(changed).toContain(comment);
    }
  });

  test('replaces an entry of the same name, and the undo restores it as it was written', () => {
    const other = '{ "command": "other", // mine\n      "args": [] }';
    const text = lines('{', '  "mcpServers": {', `    "ctx": ${other}`, '  }', '}');
    const { text: changed, made } = changeSettings('json', text, [ENTRY]);
    expect(parseJson(changed)).toEqual({ mcpServers: { ctx: SERVER } });
    expect(made).toMatchObject([{ before: other }]);
    expect(takeBackSettings('json', changed, made).text).toBe(text);
  });

  test('changes nothing if it exists already', () => {
    expect(changeSettings('json', inJson(''), [ENTRY])).toEqual({ text: inJson(''), made: [] });
  });

  test('keeps the byte order mark at the beginning of a file', () => {
    expect(inJson('\ufeff{}\n').startsWith('\ufeff{\n')).toBe(true);
    expect(thereAndBack('json', '\ufeff{}\n', ENTRY)).toBe('\ufeff{}\n');
  });

  test.each([
    ['{\n  "a": 1\n  "b": 2\n}\n', 'line 3: comma expected'],
    ['{\n  "a": \n', 'line 3: value expected'],
    ['[]\n', 'line 1: the file holds a array, not an object'],
    ['{\n  "mcpServers": []\n}\n', 'line 2: mcpServers is not an object'],
    ['{\n  "mcpServers": {},\n  "mcpServers": {}\n}\n', 'line 3: "mcpServers" occurs a second time'],
  ])('refuses %j with line and reason', (text, reason) => {
    expect(() => inJson(text)).toThrow(reason);
  });

  test('turns a plain permission into rules, and leaves a stricter one', () => {
    const change: Change = { kind: 'entry', path: ['permission', 'ctx_write'], value: 'ask', plainKey: '*' };
    const text = '{\n  "permission": "allow"\n}\n';
    expect(parseJson(inJson(text, change))).toEqual({ permission: { '*': 'allow', ctx_write: 'ask' } });
    expect(thereAndBack('json', text, change)).toBe(text);
    expect(inJson('{"permission": "deny"}', change)).toBe('{"permission": "deny"}');
  });
});

describe('list members in JSON', () => {
  test('are added to the list, and the undo removes only them', () => {
    const text = lines('{', '  "permissions": {', '    "ask": [', '      "Bash(rm:*)" // careful', '    ]', '  }', '}');
    const { text: changed, made } = changeSettings('json', text, [ASK]);
    expect(parseJson(changed)).toEqual({
      permissions: { ask: ['Bash(rm:*)', 'mcp__ctx__write', 'mcp__ctx__edit'] },
    });
    const later = changed.replace('"mcp__ctx__edit"', '"mcp__ctx__edit",\n      "WebFetch"');
    expect(parseJson(takeBackSettings('json', later, made).text)).toEqual({
      permissions: { ask: ['Bash(rm:*)', 'WebFetch'] },
    });
    expect(thereAndBack('json', text, ASK)).toBe(text);
  });

  test('leave no list behind that did not exist before', () => {
    const text = '{\n  "theme": "dark"\n}\n';
    expect(thereAndBack('json', text, ASK, ENTRY)).toBe(text);
  });
});

describe('an undo after later edits', () => {
  test('keeps them, in JSON', () => {
    const { text, made } = changeSettings('json', '{\n  "a": 1\n}\n', [ENTRY]);
    const later = text
      .replace('"a": 1,', '"a": 2, // changed')
      .replace('"mcpServers": {', '"mcpServers": {\n    "fs": {},')
      .replace('"command": "palimpsest",', '"command": "palimpsest",\n      "env": {},');
    expect(takeBackSettings('json', later, made)).toMatchObject({
      text: '{\n  "a": 2, // changed\n  "mcpServers": {\n    "fs": {}\n  }\n}\n',
      left: [],
    });
  });

  test('leaves an entry that now runs something else', () => {
    const { text, made } = changeSettings('json', '{}', [ENTRY]);
    const later = text.replace('"palimpsest"', '"other"');
    expect(takeBackSettings('json', later, made)).toMatchObject({ text: later, left: ['mcpServers.ctx'] });
  });

  test('keeps them, in TOML, also a tool that the user allowed', () => {
    const { text, made } = changeSettings('toml', 'model = "x"\n', [TABLE]);
    const allowed = '[mcp_servers.ctx.tools.read]\napproval_mode = "approve"\n';
    const later = `# mine\n${text}\n${allowed}\n# other\n[other]\na = 1\n`;
    expect(takeBackSettings('toml', later, made).text).toBe('# mine\nmodel = "x"\n\n# other\n[other]\na = 1\n');
  });
});

describe('a table in TOML', () => {
  test('is added at the end, and leaves everything else', () => {
    const text = lines('model = "x" # mine', '', '[profiles.deep]', 'args = [ "a", # first', '  "b",', ']');
    expect(inToml(text)).toBe(
      `${text}${lines(
        '',
        '[mcp_servers.ctx]',
        'command = "palimpsest"',
        'args = ["mcp", "--data", "/home/me/data"]',
        'startup_timeout_sec = 20',
        '',
        '[mcp_servers.ctx.tools.write]',
        'approval_mode = "prompt"',
      )}`,
    );
    expect(thereAndBack('toml', text, TABLE)).toBe(text);
    expect(thereAndBack('toml', text.replaceAll('\n', '\r\n'), TABLE)).toBe(text.replaceAll('\n', '\r\n'));
  });

  test.each([
    'mcp_servers = { other = { command = "a" } }\n',
    'mcp_servers.other.command = "a"\n',
    '[mcp_servers]\nother = { command = "a" } # mine\n',
    '[mcp_servers.other]\ncommand = "a"\ntext = """\n[mcp_servers.ctx]\n"""\n',
  ])('joins servers that are written as %j', (text) => {
    const changed = inToml(text);
    expect(parseToml(changed)).toMatchObject({ mcp_servers: { ctx: SERVER, other: { command: 'a' } } });
    expect(parseToml(thereAndBack('toml', text, TABLE))).toEqual(parseToml(text));
  });

  test.each([
    lines(
      'a = 1',
      '[mcp_servers.ctx] # old',
      'command = "b"',
      '[mcp_servers.ctx.env]',
      'A = "1"',
      '',
      '# c',
      '[c]',
      'd = 1',
    ),
    lines('[mcp_servers]', 'ctx = { command = "b" }', '', '# c', '[c]', 'd = 1'),
    lines('[mcp_servers."ctx"]', 'command = "b"', '', '# c', '[c]', 'd = 1'),
  ])('replaces %j and gives it back', (text) => {
    const { text: changed, made } = changeSettings('toml', text, [TABLE]);
    expect(parseToml(changed)).toMatchObject({ mcp_servers: { ctx: SERVER }, c: { d: 1 } });
    expect(changed).toContain('# c\n[c]');
    expect(parseToml(takeBackSettings('toml', changed, made).text)).toEqual(parseToml(text));
  });

  test.each([
    ['a = 1\nb = \n', /^line 2: /],
    ['[a]\nx = 1\n[a]\n', /^line 3: Table already defined/],
    ['mcp_servers = 1\n', /mcp_servers is not a table/],
  ])('refuses %j with line and reason', (text, reason) => {
    expect(() => inToml(text)).toThrow(reason);
  });
});

describe('any file', () => {
  /** JSON in several densities, with comments and trailing commas between its members. */
  const json = fc
    .tuple(
      fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 5 }),
      fc.constantFrom(undefined, 2, 4, '\t'),
      fc.constantFrom('\n', '\r\n'),
      fc.constantFrom('', ' // note', ' /* note */'),
      fc.boolean(),
    )
    .map(([value, indent, eol, comment, trailing]) => {
      const { mcpServers: _, permissions: __, ...rest } = value as Record<string, unknown>;
      const text = JSON.stringify(rest, null, indent);
      if (indent === undefined || text === '{}') return text;
      return `${text
        .replace(/,\n/g, `,${comment}\n`)
        .replace(/\n\}$/, `${trailing ? ',' : ''}${comment}\n}`)
        .replaceAll('\n', eol)}${eol}`;
    });

  test('in JSON keeps its meaning and its comments, and undo restores it byte for byte', () => {
    fc.assert(
      fc.property(json, (text) => {
        const errors: ParseError[] = [];
        const { text: changed, made } = changeSettings('json', text, [ENTRY, ASK]);
        const options = { allowTrailingComma: true };
        expect(parseJson(changed, errors, options)).toEqual({
          ...(parseJson(text, [], options) as object),
          mcpServers: { ctx: SERVER },
          permissions: { ask: ASK.kind === 'members' ? ASK.values : [] },
        });
        expect(errors).toEqual([]);
        expect(changed.match(/note/g)?.length).toBe(text.match(/note/g)?.length);
        expect(takeBackSettings('json', changed, made).text).toBe(text);
      }),
      { numRuns: 500 },
    );
  });

  test('in TOML keeps its bytes, and undo restores it byte for byte', () => {
    const line = fc
      .tuple(
        fc.stringMatching(/^[a-z]{1,5}$/),
        fc.constantFrom('1', '"x"', "'[a]'", '[1, 2] # list', '2026-11-27', 'true'),
      )
      .map(([key, value]) => `${key} = ${value}`);
    const lineSet = (most: number) => fc.uniqueArray(line, { maxLength: most, selector: (one) => one.split(' ')[0] });
    const table = fc
      .tuple(fc.stringMatching(/^t[0-9]{2}$/), lineSet(3))
      .map(([name, all]) => `# ${name}\n[${name}]\n${all.join('\n')}\n`);
    const toml = fc
      .tuple(
        lineSet(3),
        fc.uniqueArray(table, { maxLength: 3, selector: (one) => one.slice(0, 5) }),
        fc.constantFrom('\n', '\r\n'),
      )
      .map(([top, tables, eol]) =>
        [...top, ...tables]
          .join('\n')
          .replaceAll('\n', eol)
          .replace(/(?:\r?\n)*$/, eol),
      );
    fc.assert(
      fc.property(toml, (text) => {
        const { text: changed, made } = changeSettings('toml', text, [TABLE]);
        expect(changed.startsWith(text)).toBe(true);
        expect(parseToml(changed)).toEqual({
          ...(parseToml(text) as object),
          mcp_servers: { ctx: (TABLE as { value: object }).value },
        });
        expect(takeBackSettings('toml', changed, made).text).toBe(text);
      }),
      { numRuns: 300 },
    );
  });
});
