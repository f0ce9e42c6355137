import { join } from 'node:path';
import type { ModelMove } from './checking-upstream.js';

/** A call of Claude Code's own tool that reads a file. */
const read = (path: string) => ({ name: 'Read', args: { file_path: path } });

/** The moves of one run: files are read and edited, commands run, then the model speaks. */
export function moves(root: string, from: number, count: number): readonly ModelMove[] {
  const file = (n: number): string => join(root, 'src', `f${n % 12}.txt`);
  const work = Array.from({ length: count }, (_, i): ModelMove => {
    const n = from + i;
    if (n % 5 === 3) return { tools: [{ name: 'Bash', args: { command: `wc -l ${file(n)}`, description: 'counts' } }] };
    if (n % 7 === 5) return { say: 'Two at once.', tools: [read(file(n)), read(file(n + 1))] };
    return { tools: [read(file(n))] };
  });
  return [...work, { say: `It is done, up to ${from + count}.` }];
}
