/**
 * Runs `npm run check` and every suite side by side: `npm test`. What stands behind `--` goes to Jest. Ends with 1 where one of the two failed, whatever the other
 * one found.
 */
import { spawn } from 'node:child_process';
import { projectRoot } from './bundle.mjs';

/** Resolves to whether the script of package.json passed, and to what it printed where that is not shown at once. */
function run(args, stdio) {
  const child = spawn('npm', ['run', '-s', ...args], { cwd: projectRoot, stdio });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (chunk) => (output += chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ passed: code === 0, output }));
  });
}

// While the suites begin (a build, the start of a node), one core of two would have nothing to do.
const checking = run(['check'], ['ignore', 'pipe', 'pipe']).then((check) => {
  process.stdout.write(check.output);
  return check;
});
const suites = await run(['jest', '--', ...process.argv.slice(2)], 'inherit');
const check = await checking;
if (!check.passed) console.error('npm run check failed: what it said stands above.');
if (!suites.passed || !check.passed) process.exitCode = 1;
