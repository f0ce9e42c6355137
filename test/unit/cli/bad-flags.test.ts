import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { Command, CommanderError } from 'commander';
import { endUsageErrors } from '../../../src/cli/flags.js';
import { reportFailure } from '../../../src/cli/output.js';
import { serveCommand } from '../../../src/cli/serve.js';
import { CONTRACTS } from '../../../src/contract-list.js';
import { replayCommand } from '../../../src/lab/cli/replay.js';
import { reviewCommands } from '../../../src/review/cli/commands.js';

const PARTS = { version: '0', home: new URL('../../../', import.meta.url), contracts: CONTRACTS };

/** Returns the message for an invalid command line. */
async function toldOf(...argv: readonly string[]): Promise<string> {
  const program = new Command('palimpsest');
  for (const command of [
    replayCommand(),
    serveCommand(PARTS),
    ...reviewCommands(CONTRACTS),
    ...CONTRACTS.flatMap((contract) => contract.commands?.(PARTS) ?? []),
  ])
    program.addCommand(command);
  let told = '';
  for (const command of program.commands)
    command.exitOverride().configureOutput({
      writeErr: (text) => {
        told += text;
      },
    });
  const failure = await program.parseAsync([...argv], { from: 'user' }).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(CommanderError);
  return told;
}

describe('counts on the command line', () => {
  test.each([
    [['replay', 'a.jsonl', '--jobs', '0'], '--jobs'],
    [['replay', 'a.jsonl', '--jobs', 'many'], '--jobs'],
    [['log', '-n', '2.5'], '--limit'],
    [['query', '{}', '--limit', '1e3'], '--limit'],
    [['diff', 'a', '-U', '0.5'], '--context'],
    [['serve', '--port', '80.5'], '--port'],
  ])('refuses %j in one line that names the flag', async (argv, flag) => {
    const told = await toldOf(...argv);
    expect(told).toMatch(/^error: .*It must be a whole number from \d+ to \d+\.\n$/);
    expect(told).toContain(flag);
  });
});

describe('error messages', () => {
  const before = process.exitCode;

  afterEach(() => {
    jest.restoreAllMocks();
    process.exitCode = before;
  });

  const failing = (json: boolean): Promise<void> =>
    reportFailure({ json }, async () => {
      throw new Error('no such thing: \u001b]0;title\u0007 \u009b31m \u202e');
    });

  test('quote nothing that a terminal interprets', async () => {
    const told = jest.spyOn(console, 'error').mockReturnValue(undefined);
    await failing(false);
    expect(told.mock.calls).toEqual([['palimpsest: no such thing: \\x1b]0;title\\x07 \\x9b31m \\u202e']]);
    expect(process.exitCode).toBe(1);
  });

  test('read back unchanged with --json', async () => {
    let said = '';
    jest.spyOn(process.stdout, 'write').mockImplementation((text: unknown, done?: unknown) => {
      said += String(text);
      if (typeof done === 'function') done();
      return true;
    });
    await failing(true);
    const line = said.trimEnd();
    expect(line).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
    expect(JSON.parse(line)).toEqual({
      error: { code: 'error', message: 'no such thing: \u001b]0;title\u0007 \u009b31m \u202e' },
    });
  });
});

test('prints one JSON object on stdout for an invalid command line with --json, and exits with 64', async () => {
  const argv = ['log', '--limit', 'x', '--json'];
  const program = new Command('palimpsest');
  for (const command of reviewCommands(CONTRACTS)) program.addCommand(command);
  endUsageErrors(program, argv);
  const said = jest.spyOn(console, 'log').mockImplementation(() => undefined);
  const told = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  const exit = jest.spyOn(process, 'exit').mockImplementation((code) => {
    throw new Error(`exit ${code}`);
  });
  await expect(program.parseAsync(argv, { from: 'user' })).rejects.toThrow('exit 64');
  const lines = said.mock.calls.map(([line]) => JSON.parse(String(line)));
  expect([told.mock.calls, lines]).toEqual([
    [],
    [
      {
        error: {
          code: 'usage',
          message: expect.stringMatching(/--limit.* It must be a whole number from .*See palimpsest log --help$/),
        },
      },
    ],
  ]);
  for (const spy of [said, told, exit]) spy.mockRestore();
});
