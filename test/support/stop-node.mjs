import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Stops the node of the live suite and removes its data folder. */
export default async function stopNode() {
  const dataDir = process.env.PALIMPSEST_TEST_DATA;
  if (dataDir === undefined) return;
  await promisify(execFile)(process.execPath, [join(root, 'dist', 'cli.js'), 'node', 'stop', '--data', dataDir]);
  await rm(dataDir, { recursive: true, force: true });
}
