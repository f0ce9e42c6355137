import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const run = promisify(execFile);

/**
 * Builds dist/ and starts one XTDB node for the whole live suite through the built command. It is
 * in memory unless PALIMPSEST_TEST_PROFILE names another profile. Tests find its socket in
 * PALIMPSEST_TEST_SOCKET and its data folder in PALIMPSEST_TEST_DATA. They separate their data by
 * id prefixes.
 */
export default async function startNode() {
  await run(process.execPath, [join(root, 'scripts', 'build.mjs')], { cwd: root });
  // Every JVM of the tests lives for seconds. The first compiler alone takes half the CPU time of
  // both.
  process.env.JAVA_TOOL_OPTIONS = [process.env.JAVA_TOOL_OPTIONS, '-XX:TieredStopAtLevel=1'].filter(Boolean).join(' ');
  const profile = process.env.PALIMPSEST_TEST_PROFILE ?? 'memory';
  const dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-test-'));
  const args = [
    join(root, 'dist', 'cli.js'),
    'node',
    'start',
    '--data',
    dataDir,
    '--profile',
    profile,
    // A suite with a separate node can run for twenty minutes.
    '--idle-exit',
    '3600',
    '--json',
  ];
  // Allocates the whole heap at start. A growing heap has a small young generation, whose
  // collection takes twice the CPU time.
  const env = { ...process.env, _JAVA_OPTIONS: '-Xms1024m' };
  const started = await run(process.execPath, args, { env }).catch((error) => {
    throw new Error(`the test node did not start: ${error.stdout || error.stderr || error.message}`);
  });
  process.env.PALIMPSEST_TEST_SOCKET = JSON.parse(started.stdout).address.socketPath;
  process.env.PALIMPSEST_TEST_DATA = dataDir;
}
