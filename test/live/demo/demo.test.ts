import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import picocolors from 'picocolors';
import { verboseNarrator } from '../../../scripts/demo/narrator.js';
import { type DemoRun, runSession } from '../../../scripts/demo/run-session.js';
import { shortForm } from '../../../scripts/demo/short-form.js';
import { localFilesystemId } from '../../../src/filesystem/access/filesystem-id.js';
import { sessionId } from '../../../src/objects/ids.js';
import { countTokens } from '../../../src/review/ask/token-count.js';
import { suiteData, suiteFlags } from '../../support/mcp-clients.js';
import { testNodeAddress, uniquePrefix } from '../../support/xtdb.js';

const repository = join(import.meta.dirname, '..', '..', '..');
const page = { file: join(repository, 'reports', 'demo.html'), platform: 'linux' } as const;
const session = sessionId(`${uniquePrefix()}demo`);
const printed: string[] = [];
let copy: string;
let run: DemoRun;

beforeAll(async () => {
  copy = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-demo-test-')));
  run = await runSession(
    {
      repository,
      copy,
      serverFlags: suiteFlags(),
      address: testNodeAddress(),
      filesystemId: await localFilesystemId(suiteData()),
      session,
    },
    verboseNarrator((text) => printed.push(text)),
  );
});
afterAll(() => rm(copy, { recursive: true, force: true }));

const short = (isColoured = false): readonly string[] => shortForm(run, page, picocolors.createColors(isColoured));
const verbose = (): string => stripVTControlCharacters(printed.join('\n'));
const digits = (text: string): number => Number(text.replaceAll(',', ''));

/** Returns the groups of a match in a text that must have one. */
function found(text: string, pattern: RegExp): readonly string[] {
  const match = pattern.exec(text);
  if (match === null) throw new Error(`nothing matches ${pattern} in:\n${text}`);
  return match.slice(1);
}

describe('the short form of the demonstration', () => {
  test('has about 20 lines of at most 100 columns, without hashes and long ids', () => {
    const lines = short().map((line) => line.replaceAll(session, 'demo').replaceAll(repository, '/home/me/palimpsest'));
    expect(lines.length).toBeLessThanOrEqual(22);
    // All lines but the address fit into the narrowest usual terminal, too.
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(line.startsWith('  file:') ? 100 : 80);
    expect(lines.join('\n')).not.toMatch(/[0-9a-f]{12}/);
    expect(lines.join('\n')).not.toContain(copy);
  });

  test('shows the files that were read, changed, loaded and collapsed', () => {
    const verbs = short().flatMap((line) => /^ {2}(\w+) +(\S+\/\S+) {2}/.exec(line)?.slice(1, 3).join(' ') ?? []);
    expect(verbs).toEqual([
      'listed src/objects',
      'searched src/objects',
      'read src/objects/hashes.ts',
      'read docs/glossary.md',
      'changed docs/glossary.md',
      'loaded src/objects/sets.ts',
      'collapsed src/objects/hashes.ts',
    ]);
  });

  test('its counts of entries, matches, lines and characters are those of --verbose', async () => {
    const text = short().join('\n');
    const all = verbose();
    expect(found(text, /listed .* (\d+) entries/)).toEqual(found(all, /^\[ls .* entries=(\d+)\]/m));
    expect(found(text, /(\d+) matches in (\d+) files/)).toEqual(found(all, /^\[grep .* matches=(\d+) files=(\d+)/m));
    expect(found(text, /hashes\.ts +(\d+) lines/)).toEqual(found(all, /hashes\.ts lines=1-\d+\/(\d+)/));
    const versions = [...all.matchAll(/ (\d+) characters, object_hash/g)].map(([, chars]) => Number(chars));
    expect(found(text, /from (\S+) to (\S+) characters/).map(digits)).toEqual(versions);
    expect(versions[1]).toBe((await readFile(join(copy, 'docs/glossary.md'), 'utf8')).length);
  });

  test('its tokens are those of the contexts before and after the collapse', async () => {
    const text = short().join('\n');
    const source = await readFile(join(repository, 'src/objects/hashes.ts'), 'utf8');
    const [from, to] = [countTokens(run.before.text), countTokens(run.after.text)];
    expect(found(text, /the whole context +(\S+) tokens +(\S+) tokens/).map(digits)).toEqual([from, to]);
    expect(found(text, /hashes\.ts +(\S+) tokens +1 line$/m).map(digits)).toEqual([countTokens(source)]);
    const [saved = '', of = '', share = ''] = found(text, /: (\S+) of (\S+) tokens \((\S+) %\)/);
    expect([digits(saved), digits(of)]).toEqual([from - to, from]);
    expect(Number(share)).toBeCloseTo(((from - to) / from) * 100, 1);
    expect(run.before.text).toContain(source);
    expect(run.after.text).not.toContain(source);
    expect(run.after.text).toContain('src/objects/hashes.ts');
  });

  test('names the command and the address of the review page', () => {
    expect(short().slice(-2)).toEqual([
      'Its review page needs no server:  xdg-open reports/demo.html',
      `  file://${repository}/reports/demo.html`,
    ]);
    expect(shortForm(run, { ...page, platform: 'darwin' }, picocolors.createColors(false)).at(-2)).toContain(' open ');
  });

  test('has colours only on a terminal, around the same text', () => {
    expect(short().join('\n')).toBe(stripVTControlCharacters(short().join('\n')));
    expect(short(true)).not.toEqual(short());
    expect(short(true).map((line) => stripVTControlCharacters(line))).toEqual(short());
  });
});

describe('the demonstration with --verbose', () => {
  test('prints each heading, each call with its arguments, and both contexts with their hashes', () => {
    const glossary = join(copy, 'docs/glossary.md');
    const edits = [{ oldText: '# Glossary', newText: '# Glossary of the demonstration' }];
    const lines = verbose().split('\n');
    expect(lines.filter((line) => /^(?:==|>) /.test(line))).toEqual([
      '== Turn 1: the agent lists, searches and reads this repository',
      '> ls {"path":"src/objects"}',
      '> grep {"pattern":"export function .*Hash","path":"src/objects"}',
      '> read {"path":"src/objects/hashes.ts"}',
      '== The pool: what the agent knows; [unread] are discovery stubs',
      '> context {}',
      '== The context after turn 1, assembled',
      '== Turn 2: it edits a copy, activates a stub, deactivates the first file, pins',
      `> read ${JSON.stringify({ path: glossary })}`,
      `> edit ${JSON.stringify({ path: glossary, edits })}`,
      '> activate {"ids":["src/objects/sets.ts"]}',
      `> deactivate {"ids":["src/objects/hashes.ts","${session}:3"]}`,
      `> pin ${JSON.stringify({ ids: [glossary] })}`,
      '== The context after turn 2, assembled',
      '== History of the edited file, both times',
      '== Time travel: the context of turn 1, rebuilt from its basis',
    ]);
    const hashes = lines.flatMap((line) => /^ {3}sha256 (?:then |now {2})?([0-9a-f]{64})$/.exec(line)?.[1] ?? []);
    expect(hashes).toHaveLength(4);
    expect([hashes[2], hashes[3]]).toEqual([hashes[0], hashes[0]]);
    expect(lines.filter((line) => /^ {3}(?:pool|chat|active): \d+ characters$/.test(line))).toHaveLength(6);
    expect(lines.at(-1)).toBe('   the same bytes');
  });

  test('prints each event in the form that it always had', () => {
    const out: string[] = [];
    const narrator = verboseNarrator((text) => out.push(text));
    narrator.heading('A heading');
    narrator.line('   a line');
    narrator.call({ turn: 'one', name: 'ls', args: { path: 'a' }, answer: ['x'.repeat(151), ...'bcdefgh'].join('\n') });
    const { text, record } = run.before;
    narrator.context(run.before);
    const sections = record.sections.map(({ name, chars }) => `   ${name}: ${chars} characters`);
    const all = text.split('\n');
    const shown = all.slice(0, 40).map((line) => (line.length > 150 ? `${line.slice(0, 149)}…` : line));
    expect(out).toEqual([
      '\n\x1b[1m== A heading\x1b[0m',
      '   a line',
      `\n\x1b[36m> ls {"path":"a"}\x1b[0m\n${'x'.repeat(149)}…\nb\nc\nd\ne\nf\ng\n… 1 more lines`,
      ...sections,
      `   sha256 ${record.sha256}\n`,
      [...shown, `… ${all.length - 40} more lines`].join('\n'),
    ]);
  });
});
