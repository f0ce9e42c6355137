import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Spec, Validation } from '@cyclonedx/cyclonedx-library';
import spdx from 'spdx-license-list';
import { projectRoot } from '../bundle.mjs';
import { run } from './run.mjs';

/** The Maven plugin that lists the jars of the node with their licences and hashes. */
const PLUGIN = 'org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom';

/** Lists the jars of the node as CycloneDX components. */
export async function jarComponents(folder) {
  const args = ['-q', '-B', '-f', join(projectRoot, 'xtdb', 'pom.xml'), PLUGIN];
  const options = ['-DoutputFormat=json', `-DoutputDirectory=${folder}`, '-DoutputName=jars', '-DschemaVersion=1.6'];
  await run('mvn', [...args, ...options], { missing: 'Install Apache Maven 3.6 or later.' });
  return JSON.parse(await readFile(join(folder, 'jars.json'), 'utf8')).components;
}

/**
 * Returns a licence in CycloneDX's form: an SPDX id or expression, or another name as free text.
 */
function licenceOf(license) {
  if (/ (OR|AND|WITH) /.test(license)) return { expression: license };
  return { license: Object.hasOwn(spdx, license) ? { id: license } : { name: license } };
}

/** Describes an npm package as a CycloneDX component. */
export async function npmComponent(folder) {
  const { name, version, license, description } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const [group, own] = name.startsWith('@') ? name.split('/') : [undefined, name];
  const purl = `pkg:npm/${group === undefined ? '' : `${encodeURIComponent(group)}/`}${own}@${version}`;
  return {
    type: 'library',
    'bom-ref': purl,
    ...(group === undefined ? {} : { group }),
    name: own,
    version,
    ...(description === undefined ? {} : { description }),
    licenses: license === undefined ? [] : [licenceOf(license)],
    purl,
  };
}

/**
 * Writes a CycloneDX bill of materials for `subject`, whose parts are `components`. Throws if it
 * does not match the published schema.
 */
export async function writeBill(file, subject, components) {
  const ref = `pkg:npm/${subject.name.replace('@', '%40')}@${subject.version}`;
  const bill = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: { type: 'application', 'bom-ref': ref, ...subject, licenses: [{ license: { id: 'MIT' } }], purl: ref },
    },
    components,
    dependencies: [{ ref, dependsOn: components.map((part) => part['bom-ref']) }],
  };
  const text = `${JSON.stringify(bill, null, 2)}\n`;
  const trouble = await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text);
  if (trouble !== null) {
    const places = trouble.map(({ instancePath, keyword }) => `${instancePath} (${keyword})`);
    throw new Error(`${file} is not CycloneDX 1.6: ${places.join(', ')}`);
  }
  await writeFile(file, text);
}
