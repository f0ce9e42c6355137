#!/usr/bin/env node
import { endOnLostOutput, USAGE_EXIT_CODE } from './cli/output.js';
import { isReviewVerb } from './cli/review/verb-names.js';
import { tooOldNode } from './process/node-version.js';
import { refuseBeyondFileSizeLimit } from './process/system-error.js';

const tooOld = tooOldNode(process.versions.node);
if (tooOld !== undefined) {
  process.stderr.write(`${tooOld}\n`);
  process.exit(USAGE_EXIT_CODE);
}
refuseBeyondFileSizeLimit();
endOnLostOutput();
// package.json lies above this program, whether it was built or not.
const home = new URL('../', import.meta.url);
// A question is answered in less time than the declarations of all other commands take to load.
if (isReviewVerb(process.argv[2])) {
  const { answerOnly } = await import('./cli/review/program.js');
  await answerOnly(process.argv);
} else await (await import('./program.js')).runProgram(home);
