import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { systemCode } from '../../process/system-error.js';
import { ReplayError } from '../replay/replay-error.js';
import { labMarkdown } from './lab-markdown.js';
import type { LabRun } from './run-lab.js';

/** JSON with rounded numbers: a report is the same on every machine, and nobody reads a sixteenth digit. */
function rounded(value: unknown): string {
  return `${JSON.stringify(value, (_key, one: unknown) => (typeof one === 'number' ? Number(one.toPrecision(9)) : one), 1)}\n`;
}

/**
 * Writes a run into a folder: `laboratory.md` and `laboratory.json`, the same bytes for the same recordings and configuration, and `times.json`,
 * which differs. Returns the paths.
 * @throws {ReplayError} bad-target – the folder cannot be written
 */
export async function writeLab(folder: string, { report, times }: LabRun): Promise<readonly string[]> {
  const files = { 'laboratory.md': labMarkdown(report), 'laboratory.json': rounded(report), 'times.json': rounded(times) };
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
    throw new ReplayError('bad-target', `--out ${folder} cannot be written (${systemCode(cause) ?? 'unknown error'}); name a folder`, {
      cause,
    });
  }
}
