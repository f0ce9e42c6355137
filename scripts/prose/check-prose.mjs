/**
 * Checks the prose that people read: Markdown, comments, messages and test names. `npm run prose
 * [-- PATH...]`. Ends with 1 if it finds anything.
 *
 * textlint checks words and sentences by the rules of `rules.mjs`. We use textlint because vale
 * needs a binary that npm does not provide, and write-good is no longer maintained.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../bundle.mjs';
import { lintCode, lintMarkdown } from './lint-prose.mjs';

/** Files that are not prose of this project. */
const EXCLUDED = /^(?:test\/recordings\/|LICENSE|package-lock)/;
const CODE = /\.(?:ts|tsx|mjs)$/;

const listed = execFileSync('git', ['ls-files', '--', ...process.argv.slice(2)], {
  cwd: projectRoot,
  encoding: 'utf8',
});
const paths = listed.split('\n').filter((path) => (CODE.test(path) || path.endsWith('.md')) && !EXCLUDED.test(path));

let count = 0;
for (const path of paths) {
  const file = join(projectRoot, path);
  if (!existsSync(file)) continue;
  const source = readFileSync(file, 'utf8');
  const found = await (CODE.test(path) ? lintCode(path, source) : lintMarkdown(path, source));
  count += found.length;
  for (const { line, message } of found) console.log(`${path}:${line} ${message}`);
}
console.log(
  count === 0 ? `prose: ${paths.length} files, nothing found` : `prose: ${count} findings in ${paths.length} files`,
);
if (count > 0) process.exitCode = 1;
