import { execFile } from 'node:child_process';
import { mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const folder = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(folder));

const PLATFORMS = {
  'linux-x64': 'linux-amd64',
  'linux-arm64': 'linux-arm64v8',
  'darwin-x64': 'darwin-amd64',
  'darwin-arm64': 'darwin-arm64v8',
};

/** Copies the jars that `pom.xml` names, through the user's own Maven repository, and gives their paths. */
async function jars(name, properties) {
  const dir = await mkdtemp(join(tmpdir(), `palimpsest-${name}-`));
  const platform = PLATFORMS[`${process.platform}-${process.arch}`] ?? 'linux-amd64';
  const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${dir}`, `-Dpostgres.platform=${platform}`];
  await run('mvn', ['-q', '-B', '-f', join(folder, 'pom.xml'), ...goal, ...properties]);
  return { dir, paths: (await readdir(dir)).map((file) => join(dir, file)) };
}

/** Builds dist/ and gathers the servers that the tests start: tests find their jars in PALIMPSEST_TEST_JARS. */
export default async function startServers() {
  await run(process.execPath, [join(root, 'scripts', 'build.mjs')], { cwd: root });
  process.env.JAVA_TOOL_OPTIONS = [process.env.JAVA_TOOL_OPTIONS, '-XX:TieredStopAtLevel=1'].filter(Boolean).join(' ');
  const servers = await jars('servers', []);
  // A version that is too old for us.
  const old = await jars('old-servers', ['-Dpostgres.version=12.22.0', '-DincludeGroupIds=io.zonky.test.postgres']);
  process.env.PALIMPSEST_TEST_SERVERS = JSON.stringify([servers.dir, old.dir]);
  process.env.PALIMPSEST_TEST_JARS = JSON.stringify(servers.paths);
  process.env.PALIMPSEST_TEST_OLD_JARS = JSON.stringify(old.paths);
}
