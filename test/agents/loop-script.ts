import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Move } from './loop-model.js';

/** How a harness calls its tools. */
export interface ToolDialect {
  read(path: string): { readonly name: string; readonly args: Readonly<Record<string, unknown>> };
  shell(command: string): { readonly name: string; readonly args: Readonly<Record<string, unknown>> };
  edit(
    path: string,
    from: string,
    to: string,
  ): { readonly name: string; readonly args: Readonly<Record<string, unknown>> };
}

const verb = (name: string, ...ids: readonly string[]) => ({ name, args: { ids } });
const FILES = Array.from({ length: 20 }, (_, i) => i + 1);

/** Actions while the model thinks. */
export interface Meanwhile {
  /** Looks at the running session. */
  look(): Promise<void>;
  /**
   * Waits until the database has a version of a file with a text. A tracker notices a change
   * asynchronously, and a scripted model does not wait for it.
   */
  noticed(path: string, text: string): Promise<void>;
  /** Kills the database. */
  kill(): Promise<void>;
}

/** The moves of a session of more than thirty model calls; `root` is the project. */
export function scriptOf(
  { read, shell, edit }: ToolDialect,
  root: string,
  { look, noticed, kill }: Meanwhile,
): Readonly<Record<string, readonly Move[]>> {
  const file = (n: number): string => join(root, 'src', `f${n}.txt`);
  return {
    reading: [
      ...FILES.slice(0, 16).map((n): Move => ({ tools: [read(file(n))] })),
      // Two calls at once.
      { tools: [read(file(17)), read(file(18))] },
      { tools: [read(file(19)), read(file(20))], meanwhile: () => appendFile(file(3), 'changed from outside\n') },
      { say: 'I have read everything.', meanwhile: () => noticed(file(3), 'changed from outside') },
    ],
    working: [
      { tools: [shell('cat notes/s1.log')] },
      { tools: [shell('cat notes/s2.log')], meanwhile: look },
      { tools: [verb('deactivate', ...FILES.slice(4).map(file))] },
      { tools: [verb('activate', file(7))] },
      { tools: [edit(file(1), 'file 1, line 7 of 40', 'line seven')] },
      ...[3, 4, 5, 6].map((n): Move => ({ tools: [shell(`cat notes/s${n}.log`)] })),
      { say: 'It is done.' },
    ],
    trouble: [
      { tools: [shell('cat notes/s7.log')], meanwhile: kill },
      { tools: [read(file(9))] },
      { tools: [edit(file(2), 'file 2, line 7 of 40', 'line seven')] },
      { say: 'Done after the failure.' },
    ],
    compacted: [{ tools: [shell('cat notes/s8.log')] }, { say: 'After the compaction.' }],
    resumed: [
      { tools: [verb('pin', file(7))] },
      { tools: [shell('cat notes/s9.log')] },
      { tools: [read(file(10))] },
      { say: 'Resumed.' },
    ],
    forked: [{ tools: [read(file(11))] }, { say: 'On another way.' }],
  };
}
