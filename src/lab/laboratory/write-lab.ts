import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { systemCode } from '../../process/system-error.js';
import { ReplayError } from '../replay/replay-error.js';
import { labHtml } from './lab-html.js';
import { labMarkdown } from './lab-markdown.js';
import type { LabRun } from './run-lab.js';

/**
 * Writes JSON with rounded numbers. Leaves out the figures of single calls, which only the HTML
 * page shows.
 */
function rounded(value: unknown): string {
  const text = JSON.stringify(
    value,
    (key, one: unknown) => (key === 'series' ? undefined : typeof one === 'number' ? Number(one.toPrecision(7)) : one),
    1,
  );
  return `${text.replaceAll(/\[[\d\s.,e+-]*\]/g, (numbers) => numbers.replaceAll(/\s+/g, ''))}\n`;
}

/**
 * Writes a run into a folder. For equal input, `laboratory.md`, `laboratory.json` and
 * `laboratory.html` have equal bytes; `times.json` does not. Returns the paths of the files.
 * @throws {ReplayError} bad-target – the folder cannot be written
 */
export async function writeLab(folder: string, { report, times }: LabRun): Promise<readonly string[]> {
  const files = {
    'laboratory.md': labMarkdown(report),
    'laboratory.html': labHtml(report),
    'laboratory.json': rounded(report),
    'times.json': rounded(times),
  };
  try {
    await mkdir(folder, { recursive: true });
    const paths: string[] = [];
    for (const [name, text] of Object.entries(files)) {
      const path = join(folder, name);
      await writeFileAtomic(path, text);
      paths.push(path);
    }
    return paths;
  } catch (cause) {
    throw new ReplayError(
      'bad-target',
      `--out ${folder} cannot be written (${systemCode(cause) ?? 'unknown error'}); name a folder`,
      {
        cause,
      },
    );
  }
}
