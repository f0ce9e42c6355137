/**
 * Runs `npm run check` and every suite side by side: `npm test`. What stands behind `--` goes to Jest. Ends with 1 where one of the two failed, whatever the other
 * one found.
 */
import { spawn } from 'node:child_process';
import { projectRoot } from './bundle.mjs';
import { runEnded } from './run-ended.mjs';

const run = (args, stdio) => runEnded(spawn('npm', ['run', '-s', ...args], { cwd: projectRoot, stdio }));

// While the suites begin (a build, the start of a node), one core of two would have nothing to do.
const checking = run(['check'], ['ignore', 'pipe', 'pipe']).then((check) => {
  process.stdout.write(check.output);
  return check;
});
const suites = await run(['jest', '--', ...process.argv.slice(2)], 'inherit');
const check = await checking;
if (!check.passed) console.error('npm run check failed: what it said stands above.');
if (!suites.passed || !check.passed) process.exitCode = 1;
