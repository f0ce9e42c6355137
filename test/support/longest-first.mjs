import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';

const tests = join(import.meta.dirname, '..');

/**
 * The suites that take longest, the longest first: what begins last must be short, for the workers to end together. By itself Jest knows what took long the
 * last time, and in a fresh clone only how large a file is.
 */
const LONGEST = {
  short: [
    'live/bundle/page-answers',
    'live/client/fork',
    'live/bundle/redacted',
    'live/history/questions',
    'live/history/cli',
    'live/harness/loop-epochs',
    'live/bundle/bad-input',
    'live/client/tracking',
    'live/client/ahead',
    'live/interop/cortexfs-import',
    'live/harness/tyrum-context',
    'live/replay/bad-input',
    'live/client/interleavings',
    'live/tools/context-tools',
    'live/client/durable',
    'live/history/query-documents',
  ],
  long: [
    'long/chaos/chaos',
    'live/client/interleavings',
    'live/replay/bad-input',
    'long/client/damaged-journal',
    'long/replay/laboratory',
    'live/interop/cortexfs-import',
    'long/bundle/recordings',
    'unit/lab/recordings/torn-recordings',
    'live/client/ahead',
    'long/wire/front-memory',
    'long/client/same-files',
    'unit/filesystem/search/ignore-rules',
    'unit/filesystem/search/swapped-links',
    'long/interop/cortexfs-killed',
    'live/history/cli',
    'live/client/tracking',
    'long/wire/process',
    'live/history/query-documents',
    'long/wire/start-failures',
    'long/bundle/round-trip',
    'long/interop/cortexfs-recordings',
    'long/replay/resume',
    'long/mcp/other-roots',
    'long/replay/proof',
    'long/mcp/stdio',
    'long/harness/loop-killed',
    'long/node/dead-indexer',
  ],
};

/** The longest suites first, then those on a node, which wait most; within each kind the order is Jest's own. */
export default class LongestFirst extends Sequencer {
  sort(tasks) {
    const longest = LONGEST[process.env.PALIMPSEST_TEST_LONG === '1' ? 'long' : 'short'];
    const missing = longest.find((name) => !existsSync(join(tests, `${name}.test.ts`)));
    if (missing !== undefined)
      throw new Error(`test/support/longest-first.mjs names ${missing}.test.ts, which is not there: name it as it is now`);
    const place = ({ path, context }) => {
      const at = longest.indexOf(relative(tests, path).replace(/\.test\.ts$/, ''));
      if (at >= 0) return at;
      return longest.length + (context.config.displayName?.name === 'unit' ? 1 : 0);
    };
    return [...super.sort(tasks)].sort((a, b) => place(a) - place(b));
  }
}
