import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cellsOf } from '../../../src/cli/fitted-table.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { reportDetail } from '../../../src/review/ask/context-report.js';
import { countHere } from '../../../src/review/ask/token-count.js';
import { askHere } from '../../support/ask-here.js';
import { wholeRead } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { cliPath, suiteData } from '../../support/mcp-clients.js';
import { HOSTILE, type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';
import { runCli } from '../../support/run-cli.js';

/** Gives a program a separate terminal. */
const SCRIPT = '/usr/bin/script';
const onTerminal = existsSync(SCRIPT) ? test : test.skip;

/** A control character that a terminal would interpret. */
const ACTIVE = /(?![\n\t])\p{Cc}|\p{Bidi_Control}/u;

describe('history commands on the command line', () => {
  const name = `rev${randomUUID().slice(0, 8)}`;
  let made: ReviewedSessions;

  // In the long tests, each of some hundred queries runs in its own process.
  const run = effort(0, 1) === 1 ? runCli : askHere;
  const ask = (...args: string[]) =>
    run([...args, '--data', suiteData()], { FORCE_COLOR: undefined, NO_COLOR: undefined });
  const said = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await ask(...args);
    expect([code, stderr, code === 0 ? '' : stdout]).toEqual([0, '', '']);
    expect(stdout).not.toMatch(ACTIVE);
    return stdout;
  };
  const json = async (...args: string[]) => JSON.parse(await said(...args, '--json'));

  beforeAll(async () => {
    made = await reviewedSessions(name);
  });
  afterAll(() => made.close());

  test('sessions and log show both times of every turn, its calls and its set changes', async () => {
    expect(await said('sessions')).toMatch(new RegExp(`^${name}-first +3 `, 'm'));
    const log = await said('log', `${name}-first`);
    expect(log.match(/^turn \d+/gm)).toEqual(['turn 3', 'turn 2', 'turn 1']);
    expect(log).toMatch(/valid {2}\d{4}-.*Z to .*Z\n {3}known {2}\d{4}-.*Z, transaction \d+/);
    expect(log).toContain('user: Look at a.ts');
    expect(log).toMatch(/bash .* ✗ /);
    expect(log).toContain(`+pinned  ${made.root}/a.ts`);
    expect(log).not.toContain(made.file.slice(0, 12));
    expect(await said('log', `${name}-first`, '--ids')).toContain(made.file.slice(0, 12));
    const { turns, basis } = await json('log', `${name}-f`, '--object', 'a.ts', '-n', '1');
    expect(turns).toHaveLength(1);
    expect(turns[0]).toMatchObject({ session: `${name}-first`, turn: 3, changes: { deactivate: [made.file] } });
    expect(basis.tx_id).toBeGreaterThanOrEqual(turns[0].tx_id);
    expect((await json('log', `${name}-first@turn:2`)).turns.map(({ turn }: { turn: number }) => turn)).toEqual([2, 1]);
    // Read as of one of our turns, which excludes deliberate damage by other tests.
    expect((await json('log', '-n', '2', '--tx', String(turns[0].tx_id))).turns).toHaveLength(2);
  });

  test('show the versions of a file, and the file at every kind of moment', async () => {
    const { versions } = await json('log', '--object', made.file);
    expect(versions.map(({ number, state }: { number: number; state: string }) => [number, state])).toEqual([
      [3, 'text'],
      [2, 'text'],
      [1, 'text'],
    ]);
    const [third, , oldest] = versions;
    const text = async (reference: string, ...flags: string[]) => (await ask('cat', reference, ...flags)).stdout;
    const session = ['--session', `${name}-first`];
    expect(await text(`${made.file}@turn:1`, ...session)).toBe('one\nshared\n');
    expect(await text('a.ts@turn:2', ...session)).toBe('two\nshared\n');
    expect(await text('a.ts', '--at', 'turn:2.1', ...session)).toBe('one\nshared\n');
    expect(await text(`${made.root}/a.ts`)).toBe('three\nshared\n');
    expect(await text(`${made.file}@tx:${oldest.tx_id}`)).toBe('one\nshared\n');
    expect(await text(`${made.file}@${third.valid_time}`)).toBe('three\nshared\n');
    expect(await text(`${made.file}@${new Date(Date.parse(third.valid_time) - 1).toISOString()}`)).toBe(
      'two\nshared\n',
    );
    // Valid then, but not yet known to the database.
    expect(await text(made.file, '--valid-time', third.valid_time, '--tx', String(third.tx_id - 1))).toBe(
      'two\nshared\n',
    );
    const shown = await said('show', `a.ts@turn:1`, ...session);
    expect(shown).toMatch(/^file (?:\/\S+\/)?a\.ts\n(?:canonical|id) /);
    expect(shown).toMatch(new RegExp(`^id +${made.file}$`, 'm'));
    expect(shown).toMatch(/version +1\nvalid +.*Z\nknown +.*Z, transaction \d+/);
    expect(shown).toMatch(/# turn 1, step \d+ of session/);
    expect(await json('show', `${name}-first`)).toMatchObject({
      object: { type: 'session', pinned_set: [made.file] },
      text: null,
    });
    expect((await json('show', made.hostileCall.slice(0, 20))).object).toMatchObject({ tool: 'bash', status: 'fail' });
  });

  test('escape hostile output on every way to a terminal, and write it exactly to a file', async () => {
    expect(await said('show', made.hostileCall)).toContain('\\x1b]0;title\\x07\\x1b[2J\\x1b[31mred');
    expect(await said('log', `${name}-first`)).toContain('\\x1b]0;title');
    const { stdout } = await ask('cat', made.hostileCall);
    expect(stdout).toBe(HOSTILE);
  });

  test('diff compares a file at two moments and a session at two turns', async () => {
    const file = await said('diff', 'a.ts', 'turn:1..turn:2', '--session', `${name}-first`);
    expect(file).toMatch(/^--- .*a\.ts\ttx:\d+ .*Z\n\+\+\+ .*\n@@ -1,2 \+1,2 @@\n-one\n\+two\n shared\n/);
    expect(await said('diff', made.file)).toContain('-two\n+three');
    const session = await said('diff', `${name}-first`, '1..3');
    expect(session).toMatch(/index and pool: \d+ added, 0 removed/);
    expect(session).toMatch(/active: \d+ added, 1 removed\n {2}-.*a\.ts/);
    expect(session).toContain('pinned: 1 added');
    const { session: found } = await json('diff', `${name}-first`, '1..2');
    expect(found.active).toContainEqual(
      expect.objectContaining({
        id: made.file,
        change: 'changed',
        diff: expect.objectContaining({ added: 1, removed: 1 }),
      }),
    );
    expect(found.sets.index.added).toContain(made.stub);
  });

  test('who lists every session that met a file, with the turns and versions', async () => {
    const { sessions } = await json('who', made.file);
    expect(sessions).toMatchObject([
      {
        session: `${name}-first`,
        known_from: { turn: 1 },
        touched: [1, 2, 3],
        active: [1, 2, 3],
        is_active: false,
        is_pinned: true,
      },
      { session: `${name}-second`, active: [1], is_active: true },
    ]);
    // The first version is in the context until turn 2 reads the second one, which turn 3
    // deactivates before its end.
    const had = sessions[0].versions.map(({ turns, steps }: { turns: number[]; steps: unknown }) => [turns, steps]);
    expect(had).toEqual([
      [[1, 2], [{ first: 2, last: 3 }]],
      [[2, 3], [{ first: 4, last: 8 }]],
    ]);
    expect(await said('who', made.file)).toMatch(/version +tx:\d+ of .*Z active in turns 2-3, after steps 4-8$/m);
    const stub = await said('who', 'b.ts', '--session', `${name}-first`);
    expect(stub).toMatch(
      /active set +never in it\n +not seen +Palimpsest did not see the model's requests in turns 3$/m,
    );
    // Reading the file again changes no set, but touches the file.
    const again = await made.client.openSession({ id: `again-${name}` });
    for (const text of ['read it', 'read it again']) {
      await again.reportMessage({ role: 'user', text });
      const readings = [await wholeRead(made.client, 'a.ts')];
      const { applied } = await again.recordCall({
        tool: 'x',
        args: { text },
        status: 'ok',
        content: text,
        readings,
        answer: () => text,
      });
      await applied;
    }
    await made.client.closeSession(again);
    const found = (await json('who', made.file)).sessions.find(
      ({ session }: { session: string }) => session === again.id,
    );
    expect(found).toMatchObject({ touched: [1, 2], active: [1, 2], versions: [{ turns: [1, 2] }] });
  });

  test('context shows a handed-out context, byte for byte, or the context at a moment', async () => {
    const { stdout } = await ask('context', `${name}-first@turn:2`, '--raw');
    expect(stdout).toBe(made.handedOut);
    expect(await json('context', `${name}-first@turn:2`)).toMatchObject({
      source: 'record',
      delivered: 'library',
      matches: true,
      text: made.handedOut,
    });
    const shown = await said('context', `${name}-first@turn:2`);
    expect(shown).toContain('the handed-out context (library), byte for byte');
    expect(shown).toContain('\\x1b[31mred');
    const earlier = await json('context', `${name}-first@turn:1`, '--assemble');
    expect(earlier).toMatchObject({
      kind: 'unseen',
      source: 'assembled',
      delivered: null,
      matches: null,
      turn: 1,
      step: 2,
    });
    expect(earlier.text).toContain(`ACTIVE_CONTENT id=${made.file}\none\nshared\n`);
    expect(earlier.text).toMatch(/^You are careful\.\n\n/);
    expect((await json('context', `${name}-first@turn:1.1`, '--assemble')).text).not.toContain('ACTIVE_CONTENT');
    const { tx_id: first } = (await json('log', '--object', made.file)).versions.at(-1);
    const unknown = await ask('context', `${name}-first@turn:2`, '--tx', String(first));
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      expect.stringMatching(`turn:2 of session ${name}-first was not in the database after transaction ${first}: `),
    ]);
    const now = await json('context', `${name}-second`, '--assemble');
    expect(now).toMatchObject({ source: 'assembled', turn: 1 });
    expect(now.text).toContain('three\nshared');
  });

  test('report shows tokens and characters by section and object', async () => {
    const { assemblies, tokenizer } = await json('report', 'list', `${name}-first`);
    expect(tokenizer).toBe('gpt-tokenizer/o200k_base');
    expect(assemblies).toMatchObject([{ turn: 2, recorded: true, delivered: 'library' }]);
    expect(await json('report', 'list', `${name}-second`)).toMatchObject({ assemblies: [], unseen: [1] });
    const turns = (await json('report', 'list', `${name}-second`, '--assemble')).assemblies;
    expect(turns).toMatchObject([{ turn: 1, recorded: false, kind: 'unseen' }]);
    const detail = await json('report', 'detail', `${name}-first@turn:2`);
    const { sections, total } = detail.assembly;
    expect(sections.map(({ name: section }: { name: string }) => section)).toEqual([
      'system',
      'pool',
      'chat',
      'active',
    ]);
    expect(sections.reduce((sum: number, { tokens }: { tokens: number }) => sum + tokens, 0)).toBe(total.tokens);
    // Three empty lines between the sections, and no line end after the last piece.
    expect(total.chars).toBe(made.handedOut.length - 3 + 1);
    const file = detail.objects.find(({ id }: { id: string }) => id === made.file);
    expect(file).toMatchObject({ name: `${made.root}/a.ts`, active: true, raw_chars: 11 });
    expect(file.shown_chars).toBe(file.line.chars + file.block.chars);
    expect(detail.objects.find(({ id }: { id: string }) => id === made.stub)).toMatchObject({
      active: false,
      raw_chars: 0,
      block: null,
    });
    const tokens = detail.objects.map(({ shown_tokens }: { shown_tokens: number }) => shown_tokens);
    expect(tokens).toEqual([...tokens].sort((a, b) => b - a));
    // Counts in a separate thread, with the same result.
    const timeline = await Timeline.open(await made.client.delivered());
    const { ledger } = await reportDetail(timeline, { reference: `${name}-first@turn:2`, text: {}, count: countHere });
    expect(ledger.total).toEqual(total);
    expect(tokens).toEqual(ledger.objects.map(({ shown }) => shown.tokens));
    expect(await said('report', 'detail', `${name}-first@turn:2`)).toMatch(/section +tokens +share +chars\nsystem /);
  });

  test('answer for a session that another process has open', async () => {
    const open = await made.client.openSession({ id: `open-${name}` });
    const { applied } = await open.recordCall({
      tool: 'bash',
      args: {},
      status: 'ok',
      content: 'at work',
      answer: () => 'at work',
    });
    await applied;
    expect(await said('log', `open-${name}`)).toMatch(/ {2}bash .*chars$/m);
    expect((await json('context', `open-${name}`, '--assemble')).text).toContain('at work');
    await open.recordCall({
      tool: 'bash',
      args: {},
      status: 'ok',
      content: 'still at work',
      answer: () => 'still at work',
    });
    await made.client.closeSession(open);
  });

  test('verify keeps its result, which the list of sessions shows', async () => {
    const id = `${name}-first`;
    const checkOf = async () =>
      (await json('sessions')).sessions.find((row: { id: string }) => row.id === id)?.check as unknown;
    expect(await checkOf()).toBeNull();
    const { code, stdout } = await runCli(['verify', id, '--data', suiteData()]);
    expect([code, stdout]).toEqual([0, expect.stringContaining(`session   ${id}: verified`)]);
    expect(await checkOf()).toEqual({ findings: 0, at: expect.any(String) });
  });

  onTerminal('a terminal gets colours, escapes and a pager; a file none of them', async () => {
    const shown = async (command: string, env: NodeJS.ProcessEnv = {}): Promise<string> => {
      const line = `stty rows 10; '${process.execPath}' '${cliPath}' ${command} --data '${suiteData()}'`;
      const bare = {
        ...process.env,
        NODE_OPTIONS: '',
        NO_COLOR: undefined,
        FORCE_COLOR: undefined,
        TERM: 'xterm',
        SHELL: '/bin/sh',
        ...env,
      };
      return (await promisify(execFile)(SCRIPT, ['-qec', line, '/dev/null'], { env: bare })).stdout;
    };
    const call = await shown(`cat '${made.hostileCall}'`, { PAGER: 'cat' });
    expect(call).toContain('\\x1b]0;title\\x07\\x1b[2J\\x1b[31mred');
    expect(call.replaceAll('\r\n', '\n')).not.toMatch(ACTIVE);
    const paged = await shown(`log ${name}-first`, { PAGER: 'more', PALIMPSEST_PAGER: 'sed s/^/PAGED/' });
    expect(paged).toContain('PAGED\u001b[33mturn 3');
    expect(await shown(`log ${name}-first -n 1 --no-pager`, { NO_COLOR: '1' })).toMatch(/^turn 3 of/);
  });

  onTerminal('diff, who and report keep to a terminal of 80 columns, and a context to one of 100', async () => {
    const program = `'${process.execPath}' '${cliPath}'`;
    const commands = [`diff ${name}-first 1..3`, `who ${made.file}`, `report detail ${name}-first@turn:2`];
    const inData = (one: string): string => `${program} ${one} --data '${suiteData()}'`;
    const context = ['echo WIDE', 'stty cols 100', inData(`context ${name}-first@turn:2`)];
    const line = ['stty cols 80', ...commands.map(inData), ...context].join('; ');
    const env = {
      ...process.env,
      NODE_OPTIONS: '',
      FORCE_COLOR: undefined,
      NO_COLOR: '1',
      PAGER: 'cat',
      TERM: 'xterm',
    };
    const { stdout } = await promisify(execFile)(SCRIPT, ['-qec', line, '/dev/null'], { env });
    const [narrow = '', wide = ''] = stdout.split('WIDE\r\n');
    const lines = narrow.split('\r\n');
    expect(lines.length).toBeGreaterThan(20);
    expect(lines.filter((one) => cellsOf(one) > 80)).toEqual([]);
    // The text below its head stays as it was sent.
    const [head = '', text] = wide.split('\r\n\r\n');
    expect(head).toMatch(/^context of session/);
    expect(head.split('\r\n').filter((one) => cellsOf(one) > 100)).toEqual([]);
    expect(text).not.toBeUndefined();
  });

  test('query shows rows at a moment, reports its limits, and runs no code', async () => {
    const files = '{:find [?e ?n] :in [?id] :where [[?e :xt/id ?id] [?e :char_count ?n]]}';
    expect((await json('query', files, '--args', `["${made.file}"]`)).rows).toEqual([[made.file, 13]]);
    expect(
      (await json('query', files, '--args', `["${made.file}"]`, '--as-of', 'turn:1', '--session', `${name}-first`))
        .rows,
    ).toEqual([[made.file, 11]]);
    const every = '{:find [?e] :where [[?e :xt/id]]}';
    expect(await said('query', every, '--limit', '2')).toContain('cut at 2 rows');
    expect(await json('query', every, '-n', '2')).toMatchObject({ limit: 2, is_cut: true });
    expect((await json('query', `{:find [?e] :where [[?e :xt/id]] :limit 1}`)).is_cut).toBe(false);
    const code = await ask('query', '{:find [?x] :where [[(slurp "/etc/passwd") ?x]]}');
    expect([code.code, code.stderr]).toEqual([64, expect.stringContaining('"slurp", which is not allowed')]);
    const heavy =
      '{:find [?a ?b ?c ?d] :where [[?a :xt/id] [?b :xt/id] [?c :xt/id] [?d :xt/id]] :order-by [[?d :asc] [?a :desc]]}';
    const late = await ask('query', heavy, '--timeout', '0.2');
    expect([late.code, late.stderr]).toEqual([1, expect.stringContaining('stopped after 0.2 s')]);
    // The query was stopped, so the node answers as before.
    expect((await json('query', files, '--args', `["${made.file}"]`, '--timeout', '5')).rows).toHaveLength(1);
  });

  test.each<[string, readonly string[], number, RegExp]>([
    ['an unknown session', ['log', 'nobody-here'], 1, /no session "nobody-here".*latest ones are/],
    ['a session that is nearly right', ['log', 'NAME-frist'], 1, /did you mean NAME-first\?/],
    ['a prefix that several sessions fit', ['log', 'NAME'], 1, /2 sessions begin with.*NAME-first, NAME-second/],
    ['a turn beyond the end', ['log', 'NAME-first@turn:9'], 1, /no turn 9: its last one is 3/],
    ['a step beyond the end of its turn', ['show', 'NAME-first@turn:1.99'], 1, /its last one is 2/],
    [
      'a transaction beyond the last',
      ['sessions', '--at', 'tx:99999999'],
      1,
      /no transaction 99999999 yet: the last one is \d+/,
    ],
    ['a malformed time', ['show', 'FILE@2026-99-01'], 64, /not a moment.*2026-11-21T14:05/],
    ['a turn without a session', ['show', 'FILE@turn:1'], 64, /name the session \(--session\)/],
    ['two moments', ['show', 'FILE@turn:1', '--at', 'turn:2'], 64, /given twice/],
    ['an unknown object', ['show', 'no/such/file.ts'], 1, /no object "no\/such\/file.ts"/],
    ['an object before its time', ['cat', 'FILE@2001-01-01'], 1, /its first version holds from .*transaction/],
    ['an object without text', ['cat', 'b.ts', '--session', 'NAME-first'], 1, /had not been read/],
    ['a malformed query', ['query', '{:find [?e'], 64, /cannot be read/],
    ['a malformed range', ['diff', 'NAME-first', 'abc'], 64, /A\.\.B/],
  ])('report a clear error for %s', async (_, args, code, message) => {
    const asked = args.map((arg) => arg.replace('NAME', name).replace('FILE', made.file));
    const inSession =
      asked.includes('--session') || asked[1] !== 'a.ts' ? asked : asked.map((arg) => arg.replace('a.ts', made.file));
    const failed = await ask(...inSession);
    expect([failed.code, failed.stdout]).toEqual([code, '']);
    expect(failed.stderr.replaceAll(name, 'NAME')).toMatch(message);
    expect(failed.stderr.trim().split('\n')).toHaveLength(1);
  });
});
