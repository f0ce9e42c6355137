import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { projectRoot as root } from '../bundle.mjs';
import { npmComponent, writeBill } from './bills.mjs';
import { licenceNames, licenceText, textsIn } from './licences.mjs';
import { npm, packFolder, unpack } from './tarball.mjs';

/** Returns the npm packages that the library's types import, for programs in TypeScript. */
async function packagesOfTypes(folder) {
  const files = await readdir(join(folder, 'dist/types'), { recursive: true, withFileTypes: true });
  const texts = await Promise.all(
    files.filter((entry) => entry.isFile()).map(({ parentPath, name }) => readFile(join(parentPath, name), 'utf8')),
  );
  const named = texts.flatMap((text) => [
    ...text.matchAll(/(?:from|import\() ?["']((?:@[^/"']+\/)?[^./"':][^/"':]*)["'/]/g),
  ]);
  return new Set(named.map(([, name]) => name));
}

/**
 * Packs the program: `palimpsest-<version>.tgz`. Its npm packages are bundled, so it depends only
 * on the platform packages. npm chooses among them by `os` and `cpu`.
 */
export async function packProgram({ draft, out, platformNames }) {
  const [{ filename }] = JSON.parse(
    await npm(['pack', '--ignore-scripts', '--json', '--pack-destination', draft], { cwd: root }),
  );
  const folder = await unpack(join(draft, filename), join(draft, 'program'));
  await rm(join(draft, filename));
  const { scripts, dependencies, devDependencies, overrides, files, ...manifest } = JSON.parse(
    await readFile(join(folder, 'package.json'), 'utf8'),
  );
  const { name, version, description } = manifest;
  const typed = await packagesOfTypes(folder);
  const peers = Object.entries({ ...devDependencies, ...dependencies }).filter(([peer]) => typed.has(peer));
  const packed = {
    ...manifest,
    optionalDependencies: Object.fromEntries(platformNames.map((platform) => [platform, version])),
    peerDependencies: Object.fromEntries(peers),
    peerDependenciesMeta: Object.fromEntries(peers.map(([peer]) => [peer, { optional: true }])),
  };
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(packed, null, 2)}\n`);
  const bundled = JSON.parse(await readFile(join(root, 'dist/bundled-packages.json'), 'utf8')).map((path) =>
    join(root, path),
  );
  // npm may install one version of a package in several folders.
  const parts = new Map();
  for (const path of bundled) {
    const component = await npmComponent(path);
    if (parts.has(component.purl)) continue;
    const name = [component.group, component.name].filter(Boolean).join('/');
    const licences = { licences: licenceNames(component), texts: await textsIn(path) };
    parts.set(component.purl, { component, name, version: component.version, ...licences });
  }
  const title = `The files in dist/ contain code of these packages, each under its licence.`;
  await writeFile(join(folder, 'THIRD-PARTY-LICENSES.txt'), licenceText(title, [...parts.values()]));
  const components = [...parts.values()].map(({ component }) => component);
  await writeBill(join(folder, 'sbom.cdx.json'), { name, version, description }, components);
  return packFolder(folder, out);
}
