/**
 * The demonstration: an embedded node, the MCP server, a real MCP client over this repository, then
 * a reviewer. It works in a temporary folder and removes it. The node's build stays in the user's
 * cache folder. Prints about 20 lines and writes the session's review page to `reports/`. With
 * `--verbose` it prints every call and context instead: `npm run demo -- --verbose`.
 */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import writeFileAtomic from 'write-file-atomic';
import { coloursFor, progressLine, standardOutput } from '../src/cli/output.js';
import { Timeline } from '../src/history/rebuild/timeline.js';
import { type ContextClient, ensureNode, localFilesystemId, sessionId, stopNode } from '../src/index.js';
import { writePage } from '../src/page/server/write-page.js';
import { SILENT, verboseNarrator } from './demo/narrator.js';
import { runSession } from './demo/run-session.js';
import { shortForm } from './demo/short-form.js';

const { verbose } = parseArgs({ options: { verbose: { type: 'boolean', default: false } } }).values;
const repository = dirname(dirname(fileURLToPath(import.meta.url)));
const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'palimpsest-demo-')));
const dataDir = join(scratch, 'data');
const session = sessionId('demo');
const file = join(repository, 'reports', 'demo.html');
const started = Date.now();
const seconds = (): string => ((Date.now() - started) / 1000).toFixed(1);

const narrator = verbose ? verboseNarrator((text) => console.log(text)) : SILENT;
const progress = progressLine();

/** Replaces the page of the last run as a whole, because two demonstrations may run at a time. */
async function writeDemoPage({ store }: ContextClient): Promise<void> {
  const draft = join(scratch, 'demo.html');
  await writePage(await Timeline.open(store), {
    session,
    file: draft,
    upto: undefined,
    web: join(repository, 'dist', 'page'),
    onProgress: () => undefined,
  });
  mkdirSync(dirname(file), { recursive: true });
  await writeFileAtomic(file, readFileSync(draft), { mode: 0o600 });
}

narrator.heading('The node: starting XTDB 1.24 (about a minute the first time, seconds afterwards)');
const node = await ensureNode({
  dataDir,
  profile: 'rocksdb',
  cacheDir: join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'palimpsest'),
  onProgress: (message) => {
    narrator.line(`   ${message}`);
    if (!verbose) progress.show(`${message} (about a minute the first time)`);
  },
});
narrator.line(`   ready after ${seconds()} s`);
try {
  if (!verbose) progress.show('The agent works …');
  const run = await runSession(
    {
      repository,
      copy: join(scratch, 'copy'),
      serverFlags: ['--data', dataDir],
      address: node.address,
      filesystemId: await localFilesystemId(dataDir),
      session,
    },
    narrator,
    verbose ? undefined : writeDemoPage,
  );
  if (!verbose) {
    progress.end();
    const colours = coloursFor(standardOutput({}));
    console.log(shortForm(run, { file, platform: process.platform }, colours).join('\n'));
  }
} finally {
  if (!verbose) progress.end();
  await node.release();
  await stopNode(dataDir);
  rmSync(scratch, { recursive: true, force: true });
}
if (verbose) console.log(`\nDone in ${seconds()} s.`);
else console.log(`Done in ${seconds()} s. See every call and context: npm run demo -- --verbose`);
