/** Runs the scripts of package.json that check the source side by side: `npm run check`. Prints what each said, in this order; ends with 1 where one failed. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { projectRoot } from './bundle.mjs';
import { runEnded } from './run-ended.mjs';

const CHECKS = ['lint', 'types', 'types:page', 'unused', 'figures'];

const { scripts } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
// As npm would run them: five of it cost a second and a half of the processor.
const env = { ...process.env, PATH: [join(projectRoot, 'node_modules', '.bin'), process.env.PATH].join(delimiter) };

const run = (name) => runEnded(spawn(scripts[name], { cwd: projectRoot, env, shell: true, stdio: ['ignore', 'pipe', 'pipe'] }));

const running = CHECKS.map(run);
for (const [index, name] of CHECKS.entries()) {
  const { passed, output } = await running[index];
  console.log(`${name}: ${passed ? 'passed' : 'failed'}\n${output.trimEnd()}`);
  if (!passed) process.exitCode = 1;
}
