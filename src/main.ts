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
// package.json is in the parent folder of this program, both built and unbuilt.
const home = new URL('../', import.meta.url);
// A question, and the start of a server that an agent waits for, take less time than loading the
// declarations of all other commands.
if (isReviewVerb(process.argv[2])) {
  const { answerOnly } = await import('./question-program.js');
  await answerOnly(process.argv);
} else if (process.argv[2] === 'mcp') await (await import('./mcp-program.js')).runMcp(process.argv, home);
else await (await import('./program.js')).runProgram(home);
