/**
 * Builds dist/: one ESM bundle per entry with shared chunks (a bundle halves the start-up of `palimpsest mcp`), and the type declarations of
 * the library when `--types` is given.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundle, projectRoot as root } from './bundle.mjs';

const entries = {
  cli: 'src/main.ts',
  index: 'src/index.ts',
  demo: 'scripts/demo.ts',
  experiment: 'scripts/experiment.ts',
  lab: 'scripts/lab.ts',
  'replay-corpus': 'scripts/replay-corpus.ts',
  sidecar: 'src/extensions/sidecar/main.ts',
  'pi-extension': 'src/extensions/pi/pi-extension.ts',
  opencode: 'src/extensions/opencode/opencode-plugin.ts',
};

// Built aside and then moved into place, so that a program started meanwhile finds the old files or the new ones.
const draft = join(root, 'node_modules', `.dist-${process.pid}`);
await bundle({
  entryPoints: Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(join(root, file)))),
  outdir: draft,
  legalComments: 'none',
  sourcemap: false,
  chunkNames: 'chunks/[name]-[hash]',
});
// pi asks for a default export, which nothing in the source has.
writeFileSync(join(draft, 'pi.js'), "export { palimpsestForPi as default } from './pi-extension.js';\n");
if (existsSync(join(draft, 'cli.js'))) chmodSync(join(draft, 'cli.js'), 0o755);
if (existsSync(join(root, 'dist'))) renameSync(join(root, 'dist'), `${draft}-old`);
renameSync(draft, join(root, 'dist'));
rmSync(`${draft}-old`, { recursive: true, force: true });

if (process.argv.includes('--types')) {
  const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.types.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  process.exitCode = tsc.status ?? 1;
}
