import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { isReviewVerb } from '../../../src/cli/review/verb-names.js';
import { CONTRACTS } from '../../../src/contract-list.js';
import { codeFileOf } from '../../../src/process/compiled-script.js';
import { restoreCommand } from '../../../src/restore/contract.js';
import { noteCommand, reviewCommands, verifyCommand } from '../../../src/review/cli/commands.js';

const dist = join(dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url))))), 'dist');

/** Returns the files that load with some built files before any of their code runs. */
function loadedWith(files: readonly string[], found = new Set<string>()): ReadonlySet<string> {
  for (const file of files) {
    if (found.has(file)) continue;
    found.add(file);
    const source = readFileSync(file, 'utf8');
    const imports = [
      ...source.matchAll(/(?:^|;)(?:import|export)\b[^;'"]*?(?:from\s*)?["'](\.{1,2}\/[^"']+)["'];/gm),
      ...source.matchAll(/\brequire\("(\.\/[^"]+)"\)/g),
    ];
    loadedWith(
      imports.map(([, path = '']) => join(dirname(file), path)),
      found,
    );
  }
  return found;
}

describe('the code that a reviewer’s verb loads', () => {
  test.each([
    ['context', 8],
    ['log', 8],
    ['note', 8],
    ['object', 8],
    ['query', 8],
    // Its writing code is separate, which splits the shared code into more files.
    ['restore', 16],
    ['verify', 8],
  ])('%s: is a few files, without a client or a protocol', (verb, most) => {
    const files = [...loadedWith([join(dist, 'review', `${verb}.cjs`)])];
    expect(files.length).toBeLessThanOrEqual(most);
    expect(files.reduce((bytes, file) => bytes + statSync(file).size, 0)).toBeLessThan(850_000);
    const source = files.map((file) => readFileSync(file, 'utf8')).join('\n');
    for (const name of ['ContextClient', 'HarnessClient', 'McpServer'])
      expect(source).not.toMatch(new RegExp(`class _?${name}\\b`));
    // Only --json needs the schemas of the answers.
    expect(source).not.toContain('ISO 8601, UTC');
  });

  test.each(['context', 'log', 'note', 'object', 'query', 'restore', 'verify'])(
    '%s: loads the HTTP client with its first query, from compiled code',
    (verb) => {
      const clients = readdirSync(join(dist, 'review')).filter((name) => /^undici-\w+\.cjs$/.test(name));
      expect(clients.length).toBeGreaterThan(0);
      const paths = clients.map((name) => join(dist, 'review', name));
      const first = loadedWith([join(dist, 'review', `${verb}.cjs`)]);
      expect(paths.filter((path) => first.has(path))).toEqual([]);
      expect(paths.filter((path) => !existsSync(codeFileOf(path)))).toEqual([]);
    },
  );

  test.each(['program', 'context', 'log', 'note', 'object', 'prefix', 'query', 'restore', 'tyrum', 'verify'])(
    '%s: is compiled with the project',
    (name) => {
      const scripts = [...loadedWith([join(dist, 'review', `${name}.cjs`)])];
      expect(scripts.filter((script) => !existsSync(codeFileOf(script)))).toEqual([]);
      // Includes uncalled functions: compiling on call takes a fifth of a query.
      const whole = scripts.filter((script) => statSync(script).size > 20_000);
      expect(whole.filter((script) => statSync(codeFileOf(script)).size < 1.5 * statSync(script).size)).toEqual([]);
      const atOnce = /\brequire\d*\)?\("node:(?:child_process|worker_threads|zlib|tls)"\)/;
      expect(scripts.filter((script) => atOnce.test(readFileSync(script, 'utf8')))).toEqual([]);
    },
  );

  test.each(['context', 'prefix', 'tyrum'])('%s: has no token vocabulary before something is counted', (verb) => {
    const hasVocabulary = (file: string): boolean => readFileSync(file, 'utf8').includes('bytePairRankDecoder');
    expect([...loadedWith([join(dist, 'review', `${verb}.cjs`)])].filter(hasVocabulary)).toEqual([]);
    const counting = readdirSync(join(dist, 'review')).filter((name) =>
      /^(?:token-count|session-moment)-\w+\.cjs$/.test(name),
    );
    expect(counting.length).toBeGreaterThan(1);
    for (const name of counting) {
      expect([...loadedWith([join(dist, 'review', name)])].some(hasVocabulary)).toBe(true);
      expect(existsSync(codeFileOf(join(dist, 'review', name)))).toBe(true);
    }
  });

  test('has no vocabulary list in any program, which takes 130 ms to load', () => {
    const files = ['.', 'chunks', 'review'].flatMap((folder) =>
      readdirSync(join(dist, folder)).map((name) => join(dist, folder, name)),
    );
    const large = files.filter((file) => /\.c?js$/.test(file) && statSync(file).size > 1_500_000);
    expect(large).toEqual([]);
  });

  test('has no declaration of another command', () => {
    const source = [...loadedWith([join(dist, 'cli.js'), join(dist, 'review', 'program.cjs')])].map((file) =>
      readFileSync(file, 'utf8'),
    );
    expect(source.join('\n')).toContain('which sessions saw an object');
    for (const other of ['mcp', 'serve', 'doctor', 'lab'])
      expect(source.join('\n')).not.toMatch(new RegExp(`Command\\d*\\("${other}"\\)`));
  });

  test('is chosen by the first word of each verb only', () => {
    const names = [...reviewCommands(CONTRACTS), verifyCommand(), restoreCommand(), noteCommand()].map((command) =>
      command.name(),
    );
    expect(names.filter((name) => !isReviewVerb(name))).toEqual([]);
    expect(['fork', 'mcp', 'doctor', '--version', 'help', undefined].filter(isReviewVerb)).toEqual([]);
  });

  test('is not loaded by the program before the verb is known', () => {
    const first = [...loadedWith([join(dist, 'cli.js')])];
    expect(first).toHaveLength(1);
    const files = [...loadedWith([join(dist, 'cli.js'), join(dist, 'program.js')])];
    expect(files.length).toBeLessThanOrEqual(14);
    expect(files.filter((file) => file.includes('/review/'))).toEqual([]);
  });
});

describe('the code that `palimpsest mcp` loads before it answers', () => {
  const [server = ''] = readdirSync(join(dist, 'chunks')).filter((name) => /^stdio-\w+\.js$/.test(name));
  const files = [...loadedWith([join(dist, 'cli.js'), join(dist, 'mcp-program.js'), join(dist, 'chunks', server)])];
  const source = files.map((file) => readFileSync(file, 'utf8')).join('\n');

  test('has no compiler of JSON Schemas', () => {
    const packages = new Set([...source.matchAll(/^\/\/ node_modules\/([^/\n]+)/gm)].map(([, name]) => name));
    expect([...packages]).toContain('@modelcontextprotocol');
    expect([...packages].filter((name) => name?.startsWith('ajv'))).toEqual([]);
    expect(source.length).toBeLessThan(850_000);
  });

  test('has no declarations of other commands', () => {
    expect(source).toMatch(/Command\d*\("mcp"\)/);
    for (const other of ['doctor', 'lab', 'setup'])
      expect(source).not.toMatch(new RegExp(`Command\\d*\\("${other}"\\)`));
  });
});
