import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelMove } from './checked-model.js';

/** The tools that Claude Code may use without asking. */
export const ALLOWED = ['--allowedTools', 'Read,Edit,Bash,Task,Agent'] as const;

/**
 * Environment of Claude Code without its background traffic. With `address` it talks to that base
 * address and searches for tools, as it does with the provider.
 */
export const claudeEnv = (home: string, address?: string): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: home,
  CLAUDE_CONFIG_DIR: join(home, '.claude'),
  ANTHROPIC_API_KEY: 'sk-ant-secret-of-the-test',
  ...(address === undefined ? {} : { ANTHROPIC_BASE_URL: address, ENABLE_TOOL_SEARCH: 'true' }),
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  LANG: 'C.UTF-8',
});

const FILES = 12;
const fileOf = (root: string, n: number): string => join(root, 'src', `f${n % FILES}.txt`);

/**
 * Writes the files of a project. The first has this number of lines, and each further file has one
 * line more.
 */
export async function writeFiles(root: string, lines: number): Promise<void> {
  await mkdir(join(root, 'src'), { recursive: true });
  for (let n = 0; n < FILES; n += 1)
    await writeFile(fileOf(root, n), `file ${n}, some words of text\n`.repeat(lines + n));
}

/** A call of Claude Code's own tool that reads a file. */
const read = (path: string) => ({ name: 'Read', args: { file_path: path } });

/** The move that changes the words `some words` in a file. */
export const edits = (root: string, n: number, words: string): ModelMove => ({
  tools: [
    {
      name: 'Edit',
      args: { file_path: fileOf(root, n), old_string: 'some words', new_string: words, replace_all: true },
    },
  ],
});

/** The move that starts a sub-agent. */
export const DELEGATES: ModelMove = {
  tools: [{ name: 'Agent', args: { description: 'look', prompt: 'look around', subagent_type: 'general-purpose' } }],
};

/** The moves of one run: files are read, commands run, then the model speaks. */
export function moves(
  root: string,
  from: number,
  count: number,
  say = `It is done, up to ${from + count}.`,
): readonly ModelMove[] {
  const file = (n: number): string => fileOf(root, n);
  const work = Array.from({ length: count }, (_, i): ModelMove => {
    const n = from + i;
    if (n % 5 === 3) return { tools: [{ name: 'Bash', args: { command: `wc -l ${file(n)}`, description: 'counts' } }] };
    if (n % 7 === 5) return { say: 'Two at once.', tools: [read(file(n)), read(file(n + 1))] };
    return { tools: [read(file(n))] };
  });
  return [...work, { say }];
}
