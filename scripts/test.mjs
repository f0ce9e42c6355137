/**
 * Runs `npm run check` and all suites in parallel: `npm test`. Passes the arguments after `--` to
 * Jest. Exits with 1 if checks or suites failed. A failure of one does not stop the other.
 */
import { spawn } from 'node:child_process';
import { projectRoot } from './bundle.mjs';
import { runEnded } from './run-ended.mjs';

const run = (args, stdio) => runEnded(spawn('npm', ['run', '-s', ...args], { cwd: projectRoot, stdio }));

// Runs the checks at the same time, because the suites begin with a build and the start of a node.
// These leave one of two cores idle.
const checking = run(['check'], ['ignore', 'pipe', 'pipe']).then((check) => {
  process.stdout.write(check.output);
  return check;
});
const suites = await run(['jest', '--', ...process.argv.slice(2)], 'inherit');
const check = await checking;
if (!check.passed) console.error('npm run check failed: see its output above.');
if (!suites.passed || !check.passed) process.exitCode = 1;
