import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { projectRoot } from '../../scripts/bundle.mjs';

/**
 * `suites` runs those of `npm test` over several nodes. Any other argument selects suites of this
 * folder. Without arguments both run.
 */
const [word, ...more] = process.argv.slice(2);
const runs =
  word === 'suites'
    ? [['suites.config.mjs', ...more]]
    : word === undefined
      ? [['jest.config.mjs'], ['suites.config.mjs']]
      : [['jest.config.mjs', word, ...more]];
for (const [config, ...args] of runs) {
  const { status } = spawnSync(
    'npm',
    ['run', '-s', 'jest', '--', '--config', join('test', 'cluster', config), ...args],
    {
      cwd: projectRoot,
      stdio: 'inherit',
    },
  );
  if (status !== 0) process.exit(status ?? 1);
}
