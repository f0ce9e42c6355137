import { chmod, copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { projectRoot as root } from '../bundle.mjs';
import { npmComponent, writeBill } from './bills.mjs';
import { licenceNames, licenceText, textsIn, textsInJar } from './licences.mjs';
import { PLATFORMS, programName } from './platforms.mjs';
import { run } from './run.mjs';
import { jdkTool, makeRuntime } from './runtime.mjs';
import { fetchPackage, packFolder } from './tarball.mjs';

/** Removes all but one platform's library from RocksDB's jar, which has fifteen. */
async function keepOneLibrary(jar, platform, { scratch, jdk }) {
  await mkdir(scratch, { recursive: true });
  await run(jdkTool(jdk, 'jar'), ['xf', jar], { cwd: scratch });
  const kept = PLATFORMS[platform].rocksdb;
  const names = await readdir(scratch);
  if (!names.includes(kept)) throw new Error(`${basename(jar)} has no ${kept}.`);
  const others = names.filter((name) => name.startsWith('librocksdbjni') && name !== kept);
  for (const name of others) await rm(join(scratch, name));
  await rm(jar);
  // A fixed date, so that each run gives the same bytes.
  const date = '--date=2022-10-24T00:00:00Z';
  await run(jdkTool(jdk, 'jar'), ['--create', '--file', jar, date, '--no-manifest', '-C', scratch, '.']);
  await rm(scratch, { recursive: true });
}

/** Puts ripgrep into the package. Returns its component and its licence. */
async function addRipgrep(folder, platform, scratch) {
  const name = `@vscode/ripgrep-${platform}`;
  const locked = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')).packages[`node_modules/${name}`];
  await mkdir(scratch, { recursive: true });
  const from = await fetchPackage(name, locked, scratch);
  const program = programName(platform, 'rg');
  await mkdir(join(folder, 'bin'), { recursive: true });
  await copyFile(join(from, 'bin', program), join(folder, 'bin', program));
  await chmod(join(folder, 'bin', program), 0o755);
  const found = { component: await npmComponent(from), texts: await textsIn(from) };
  await rm(scratch, { recursive: true });
  return found;
}

const readme = (name, { version, vendor, from }) => `# ${name}

The database node of palimpsest for one platform: a Java runtime, the compiled node with its libraries, ripgrep, and
the program that agents' hooks run.
palimpsest lists this package in its optionalDependencies, so npm installs it where it fits.

The Java runtime is ${vendor} ${version} (${from}), under the GPL 2 with the Classpath Exception. runtime/legal has its
licences, and runtime/release names its source. THIRD-PARTY-LICENSES.txt has all other licences, and sbom.cdx.json is
the CycloneDX bill of materials.
`;

/**
 * Packs the node of one platform. `front` has the compiled jars and the key of their sources.
 */
export async function packPlatform(platform, { draft, out, front, jars, jdk, isOwn, tools, compileHook }) {
  const { version, license } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const name = tools.platformPackageName(platform);
  const folder = join(draft, platform);
  await mkdir(join(folder, 'lib'), { recursive: true });
  const runtime = await makeRuntime(join(folder, 'runtime'), platform, { jdk, isOwn });
  const paths = [];
  for (const jar of front.jars) {
    paths.push(`lib/${basename(jar)}`);
    await cp(join(front.dir, jar), join(folder, 'lib', basename(jar)));
  }
  const rocksdb = paths.find((path) => path.includes('rocksdbjni'));
  await keepOneLibrary(join(folder, rocksdb), platform, { scratch: join(draft, `${platform}.rocksdb`), jdk });
  const ripgrep = await addRipgrep(folder, platform, join(draft, `${platform}.rg`));
  const inHook = await compileHook(platform, join(folder, 'bin', 'palimpsest-hook'));
  const sha256 = {};
  for (const path of paths) sha256[path] = await tools.sha256Of(join(folder, path));
  const node = {
    package: `${name} ${version}`,
    front: front.key,
    java: {
      command: `runtime/bin/${programName(platform, 'java')}`,
      major: runtime.major,
      fingerprint: `${runtime.vendor} ${runtime.version} ${platform} ${runtime.from}`,
    },
    jars: paths,
    sha256,
  };
  await writeFile(join(folder, tools.NODE_MANIFEST), `${JSON.stringify(node, null, 2)}\n`);
  const manifest = {
    name,
    version,
    description: `The database node of palimpsest for ${platform}, with its Java runtime`,
    license: `SEE LICENSE IN THIRD-PARTY-LICENSES.txt`,
    ...PLATFORMS[platform].limits,
    preferUnplugged: true,
  };
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  await writeFile(join(folder, 'README.md'), readme(name, runtime));
  await copyFile(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  const java = {
    type: 'platform',
    'bom-ref': `pkg:generic/openjdk@${runtime.version}`,
    supplier: { name: runtime.vendor },
    name: 'openjdk',
    version: runtime.version,
    description: `Java runtime, ${runtime.from}`,
    licenses: [{ license: { id: 'GPL-2.0-with-classpath-exception' } }],
    purl: `pkg:generic/openjdk@${encodeURIComponent(runtime.version)}`,
  };
  // The jar without the other libraries has other hashes than the published one.
  const shipped = jars.map((jar) => {
    if (jar.name !== 'rocksdbjni') return jar;
    return {
      ...jar,
      hashes: [{ alg: 'SHA-256', content: sha256[rocksdb] }],
      description: `${jar.description} (one library)`,
    };
  });
  const subject = { name, version, description: manifest.description };
  const linked = inHook.map(({ name: library, version: of, licences }) => ({
    type: 'library',
    'bom-ref': `pkg:generic/${library}@${encodeURIComponent(of)}`,
    name: library,
    version: of,
    description: 'linked into the program of hooks',
    licenses: licences.map((id) => ({ license: { id } })),
  }));
  await writeBill(join(folder, 'sbom.cdx.json'), subject, [...shipped, java, ripgrep.component, ...linked]);
  const parts = [];
  for (const jar of shipped) {
    const path = join(folder, 'lib', `${jar.name}-${jar.version}.jar`);
    const texts = await textsInJar(path, join(draft, `${platform}.texts`), jdk);
    parts.push({ name: jar.name, version: jar.version, licences: licenceNames(jar), texts });
  }
  parts.push({ name: 'ripgrep', version: ripgrep.component.version, licences: ['MIT'], texts: ripgrep.texts });
  parts.push(...inHook);
  parts.push({
    name: 'palimpsest',
    version,
    licences: [license],
    texts: [await readFile(join(root, 'LICENSE'), 'utf8')],
  });
  const title = "This package contains these programs and libraries, each under its licence. runtime/legal has Java's.";
  await writeFile(join(folder, 'THIRD-PARTY-LICENSES.txt'), licenceText(title, parts));
  const packed = await packFolder(folder, out);
  await rm(folder, { recursive: true });
  return { ...packed, java: `${runtime.vendor} ${runtime.version}, ${runtime.from}` };
}
