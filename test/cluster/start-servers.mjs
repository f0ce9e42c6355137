import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { copyJars } from './server-jars.mjs';

const run = promisify(execFile);
const folder = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(folder));

/**
 * Builds dist/ and fetches the servers for the tests, which find the jars in PALIMPSEST_TEST_JARS.
 */
export default async function startServers() {
  await run(process.execPath, [join(root, 'scripts', 'build.mjs')], { cwd: root });
  process.env.JAVA_TOOL_OPTIONS = [process.env.JAVA_TOOL_OPTIONS, '-XX:TieredStopAtLevel=1'].filter(Boolean).join(' ');
  const pom = join(folder, 'pom.xml');
  const servers = await copyJars(pom, { name: 'servers' });
  // A version that is too old for us.
  const properties = ['-Dpostgres.version=12.22.0', '-DincludeGroupIds=io.zonky.test.postgres'];
  const old = await copyJars(pom, { name: 'old-servers', properties });
  process.env.PALIMPSEST_TEST_SERVERS = JSON.stringify([servers.dir, old.dir]);
  process.env.PALIMPSEST_TEST_JARS = JSON.stringify(servers.paths);
  process.env.PALIMPSEST_TEST_OLD_JARS = JSON.stringify(old.paths);
}
