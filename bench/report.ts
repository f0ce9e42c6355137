import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Machine } from './machine.js';
import { type CaseResult, summary } from './results.js';

const BEGIN = '<!-- figures: begin -->';
const END = '<!-- figures: end -->';

const NOT_SHOWN = `## What this does not show

- One machine, one client, one agent at a time; nothing about several agents on one node.
- Files lie in the page cache: no figure holds the time of a disk that has to read.
- Absolute times depend on the machine's other work. Ratios within a case depend on it less, because its contenders
  take turns call by call.
- The rivals differ. The public server keeps nothing, sends every text twice and never cuts it; ours stores every call.
`;

/** Writes all figures of a run, including every measured time, to `{folder}/{date}.json`. */
export async function keepResults(folder: string, machine: Machine, { cases, goals }: CaseResult): Promise<string> {
  const file = join(folder, `${machine.date.replaceAll(/[:.]/g, '-')}.json`);
  await mkdir(folder, { recursive: true });
  const summed = cases.map((result) =>
    result.kind === 'timed'
      ? { ...result, samples: result.samples.map((sample) => ({ ...sample, ...summary(sample) })) }
      : result,
  );
  await writeFile(file, `${JSON.stringify({ machine, goals, cases: summed }, undefined, 1)}\n`);
  return file;
}

/**
 * Writes the figures of a run into a report, between its two marks. Without marks, writes a new
 * report.
 */
export async function writeReport(file: string, machine: Machine, figures: string): Promise<void> {
  const before = existsSync(file)
    ? await readFile(file, 'utf8')
    : `# Benchmark of ${machine.date.slice(0, 10)}\n\n${BEGIN}\n${END}\n\n${NOT_SHOWN}`;
  const [head, rest] = before.split(BEGIN);
  const tail = rest?.split(END)[1];
  if (head === undefined || tail === undefined)
    throw new Error(`${file} has no place for figures: add the lines ${BEGIN} and ${END}`);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${head}${BEGIN}\n\n${figures}\n\n${END}${tail}`);
}
