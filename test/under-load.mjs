import { spawn } from 'node:child_process';
import { loadavg } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * Runs the whole suite beside other work, several times in a row. Usage: `node test/under-load.mjs
 * [--times 3] [--processes 3] [--threads 2]`. Arguments after `--` go to Jest.
 *
 * Each busy process keeps its threads at work, so the machine's load is at least processes ×
 * threads before a test begins. Ends with 1 at the first run that fails.
 */
const { values, positionals } = parseArgs({
  options: {
    times: { type: 'string', default: '3' },
    processes: { type: 'string', default: '3' },
    threads: { type: 'string', default: '2' },
  },
  allowPositionals: true,
});
const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Computes in every thread. Ends when the process that started it ends, for any reason. */
const BUSY = `
  const { Worker } = require('node:worker_threads');
  process.stdin.on('end', () => process.exit()).resume();
  for (let i = 0; i < Number(process.argv[1]); i += 1)
    new Worker(
      "const { createHash } = require('node:crypto'); const page = Buffer.alloc(1 << 20);" +
        "for (;;) createHash('sha256').update(page).digest();",
      { eval: true },
    );
`;

/** One `npm test`; resolves to its exit code. */
function suite() {
  const child = spawn('npm', ['test', ...(positionals.length > 0 ? ['--', ...positionals] : [])], {
    cwd: root,
    stdio: 'inherit',
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
}

const busy = Array.from({ length: Number(values.processes) }, () =>
  spawn(process.execPath, ['-e', BUSY, values.threads], { stdio: ['pipe', 'ignore', 'inherit'] }),
);
try {
  for (let run = 1; run <= Number(values.times) && process.exitCode !== 1; run += 1) {
    const from = performance.now();
    const code = await suite();
    const seconds = Math.round((performance.now() - from) / 1_000);
    const load = loadavg()[0]?.toFixed(1);
    console.log(
      `run ${run} of ${values.times}: ${code === 0 ? 'passed' : `failed with code ${code}`} ` +
        `after ${seconds} s, load ${load}`,
    );
    if (code !== 0) process.exitCode = 1;
  }
} finally {
  for (const child of busy) child.kill();
}
