/**
 * Runs the benchmark: installs its own dependencies once, builds the project and the benchmark, and
 * starts it with the given flags. See `npm run bench -- --help`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle, projectRoot as root } from '../scripts/bundle.mjs';

const bench = dirname(fileURLToPath(import.meta.url));

function run(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: ['inherit', 'inherit', 'inherit'] });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

if (!existsSync(join(bench, 'node_modules', '@modelcontextprotocol', 'server-filesystem'))) {
  console.error('bench: installing the server for the comparison');
  run('npm', ['ci', '--no-audit', '--no-fund'], bench);
}
run(process.execPath, [join(root, 'scripts', 'build.mjs')], root);

await bundle({
  entryPoints: ['bench/main.ts', 'bench/watching-process.ts', 'bench/cluster/reading-process.ts'],
  entryNames: '[name]',
  outdir: 'bench/dist',
  sourcemap: 'linked',
  external: ['@vscode/ripgrep', 'playwright-core'],
});
run(process.execPath, ['--enable-source-maps', join(bench, 'dist', 'main.js'), ...process.argv.slice(2)], root);
