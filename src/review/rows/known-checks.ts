import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { replaceFile } from '../../process/owned-file.js';
import type { FiguredState } from './known-figures.js';

/** The result of the last verification of a session. */
export interface SessionCheck {
  /** Contexts, answers and parts that differ from what was written. */
  readonly findings: number;
  /** When it ended, milliseconds since 1970. */
  readonly checkedAt: number;
}

const count = z.number().int().nonnegative();
const fileSchema = z.object({
  version: z.literal(1),
  sessions: z.record(z.string(), z.object({ upto: count, at: count, findings: count, checkedAt: count })),
});
type Checks = z.output<typeof fileSchema>['sessions'];

const fileIn = (dataDir: string): string => join(dataDir, 'session-checks.json');

async function readChecks(dataDir: string): Promise<Checks> {
  try {
    return fileSchema.safeParse(JSON.parse(await readFile(fileIn(dataDir), 'utf8'))).data?.sessions ?? {};
  } catch {
    return {};
  }
}

/**
 * Returns the results of `palimpsest verify` in a data folder, for sessions that have not gone on
 * since. A damaged file has none.
 */
export async function knownChecks(dataDir: string): Promise<(of: FiguredState) => SessionCheck | undefined> {
  const known = new Map(Object.entries(await readChecks(dataDir)));
  return ({ id, upto, at }) => {
    const found = known.get(id);
    return found?.upto === upto && found.at === at ? found : undefined;
  };
}

/** Keeps results of a verification. A folder that cannot be written keeps none. */
export async function keepChecks(dataDir: string, checks: readonly (FiguredState & SessionCheck)[]): Promise<void> {
  const sessions = { ...(await readChecks(dataDir)) };
  for (const { id, ...check } of checks) sessions[id] = check;
  await replaceFile(fileIn(dataDir), JSON.stringify({ version: 1, sessions })).catch(() => undefined);
}
