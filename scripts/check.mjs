/** Runs the scripts of package.json that check the source side by side: `npm run check`. Prints what each said, in this order; ends with 1 where one failed. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { projectRoot } from './bundle.mjs';

const CHECKS = ['lint', 'types', 'types:page', 'unused', 'figures'];

const { scripts } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
// As npm would run them: five of it cost a second and a half of the processor.
const env = { ...process.env, PATH: [join(projectRoot, 'node_modules', '.bin'), process.env.PATH].join(delimiter) };

/** Resolves to whether the script passed, and to all that it printed. */
function run(name) {
  const child = spawn(scripts[name], { cwd: projectRoot, env, shell: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk) => (output += chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ passed: code === 0, output }));
  });
}

const running = CHECKS.map(run);
for (const [index, name] of CHECKS.entries()) {
  const { passed, output } = await running[index];
  console.log(`${name}: ${passed ? 'passed' : 'failed'}\n${output.trimEnd()}`);
  if (!passed) process.exitCode = 1;
}
