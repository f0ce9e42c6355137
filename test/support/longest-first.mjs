import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';

const tests = join(import.meta.dirname, '..');

/**
 * The longest suites, longest first. Short suites must begin last so that the workers end together.
 * By itself Jest orders by earlier times and, in a fresh clone, by file size.
 */
const LONGEST = {
  short: [
    'live/history/documented-queries',
    'live/own-sessions/open',
    'live/history/cli',
    'live/harness/loop-epochs',
    'live/client/taken-journals',
    'live/watch/formats',
    'live/client/tracking',
    'live/client/fork',
    'live/mcp/away-at-start',
    'live/contracts/tyrum-context',
    'unit/filesystem/tracking/file-saves',
    'unit/agents/setup-files',
    'live/watch/follow',
    'live/history/questions',
    'live/page/page-answers',
    'live/page/people-answers',
    'live/client/durable',
    'live/gateway/steer',
    'unit/filesystem/access/read-source',
    'live/tools/context-tools',
    'unit/redaction/secret-kinds',
    'unit/process/link-lock',
    'live/replay/lab-loop',
    'live/watch/kills',
  ],
  long: [
    'long/replay/large-recordings',
    'long/client/damaged-journal',
    'long/contracts/cortexfs-import',
    'long/client/interleavings',
    'long/chaos/chaos',
    'long/replay/laboratory',
    'long/replay/torn-recordings',
    'long/bundle/recordings',
    'long/client/ahead',
    'unit/filesystem/search/ignore-rules',
    'unit/filesystem/search/swapped-links',
    'long/client/same-files',
    'long/wire/process',
    'long/contracts/cortexfs-killed',
    'long/wire/front-memory',
    'live/history/cli',
    'long/history/query-documents',
    'long/wire/start-failures',
    'long/bundle/round-trip',
    'long/contracts/cortexfs-recordings',
    'long/replay/resume',
    'long/mcp/other-roots',
    'long/replay/proof',
    'long/mcp/stdio',
    'long/harness/loop-killed',
    'long/node/dead-indexer',
  ],
};

/**
 * Runs the longest suites first, then those on a node, which wait most. Within each kind Jest's
 * order applies.
 */
export default class LongestFirst extends Sequencer {
  sort(tasks) {
    const longest = LONGEST[process.env.PALIMPSEST_TEST_LONG === '1' ? 'long' : 'short'];
    const missing = longest.find((name) => !existsSync(join(tests, `${name}.test.ts`)));
    if (missing !== undefined)
      throw new Error(
        `test/support/longest-first.mjs names ${missing}.test.ts, which does not exist: use its present name`,
      );
    const place = ({ path, context }) => {
      const at = longest.indexOf(relative(tests, path).replace(/\.test\.ts$/, ''));
      if (at >= 0) return at;
      return longest.length + (context.config.displayName?.name === 'unit' ? 1 : 0);
    };
    return [...super.sort(tasks)].sort((a, b) => place(a) - place(b));
  }
}
