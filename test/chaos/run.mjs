/**
 * Builds the project and the chaos test, and starts it: `npm run test:chaos -- [--take-overs]
 * [--kills N] [--seed N]`.
 */
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildPrograms } from './build.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(folder));

function run(args) {
  const { status, error } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

run([join(root, 'scripts', 'build.mjs')]);
await buildPrograms(join(folder, 'dist'), ['main', 'workload', 'deliverer']);
run(['--enable-source-maps', join(folder, 'dist', 'main.js'), ...process.argv.slice(2)]);
