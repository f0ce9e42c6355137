/**
 * Makes the npm packages: the program, and for each platform a package with the node and its Java.
 * Then makes the parcels in OUT/parcels. Run it by `npm run pack:all -- [--out FOLDER] [--jdk
 * FOLDER] [--platform NAME]…`.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { bundle, projectRoot as root } from './bundle.mjs';
import { jarComponents } from './pack/bills.mjs';
import { hookCompiler } from './pack/hook-client.mjs';
import { packPlatform } from './pack/platform-package.mjs';
import { PLATFORMS } from './pack/platforms.mjs';
import { packProgram } from './pack/program-package.mjs';
import { writeParcels } from './parcels.mjs';

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(root, 'packages') },
    jdk: { type: 'string', default: process.env.JAVA_HOME || undefined },
    platform: { type: 'string', multiple: true, default: Object.keys(PLATFORMS) },
  },
});
const unknown = values.platform.filter((name) => !Object.hasOwn(PLATFORMS, name));
if (unknown.length > 0)
  throw new Error(`${unknown.join(', ')} is not a platform. Choose from ${Object.keys(PLATFORMS).join(', ')}.`);

const say = (line) => process.stdout.write(`${line}\n`);
const sizeText = ({ path, bytes, unpacked }) =>
  `${path}: ${(bytes / 1e6).toFixed(1)} MB, ${(unpacked / 1e6).toFixed(1)} MB unpacked`;

const draft = await mkdtemp(join(root, 'node_modules', '.pack-'));
try {
  const tools = join(draft, 'tools');
  await bundle({
    entryPoints: ['scripts/pack/front.ts'],
    outdir: tools,
    splitting: false,
    outExtension: { '.js': '.mjs' },
  });
  const front = await import(pathToFileURL(join(tools, 'front.mjs')).href);
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  say(`Packing palimpsest ${version} into ${values.out}`);
  const platformNames = front.PACKAGED_PLATFORMS.map(front.platformPackageName);
  const program = await packProgram({ draft, out: values.out, platformNames });
  say(sizeText(program));

  const frontDir = join(root, 'xtdb');
  const files = await front.readFrontFiles(frontDir);
  const dir = join(draft, 'front');
  const { jars } = await front.buildJars(dir, files, {
    java: await front.findJava({ javaHome: values.jdk }),
    frontDir,
    memoryConfig: join(frontDir, 'memory.edn'),
    cacheDir: draft,
    onProgress: say,
  });
  const components = await jarComponents(draft);
  const compileHook = hookCompiler(draft);
  let node;
  for (const platform of values.platform) {
    const isOwn = platform === `${process.platform}-${process.arch}`;
    const packed = await packPlatform(platform, {
      draft,
      out: values.out,
      front: { dir, jars, key: front.frontKey(files) },
      jars: components,
      jdk: values.jdk,
      isOwn,
      tools: front,
      compileHook,
    });
    say(`${sizeText(packed)}; ${packed.java}`);
    if (isOwn) node = packed.path;
  }
  const parcels = resolve(values.out, 'parcels');
  await writeParcels(parcels, { program: program.path, node });
  say(`${parcels}: parcels of Claude Code, Gemini CLI and MCP`);
} finally {
  await rm(draft, { recursive: true, force: true });
}
