import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import spdx from 'spdx-license-list/full.js';
import { run } from './run.mjs';
import { jdkTool } from './runtime.mjs';

const IS_LICENCE = /^(?:.*[-_.])?(?:licen[cs]e|notice|copying|copyright|epl|unlicense)(?:[-_.].*)?$/i;

/** Returns the names of a component's licences. */
export const licenceNames = ({ licenses = [] }) =>
  licenses.map(({ expression, license }) => expression ?? license?.id ?? license?.name ?? license?.url ?? 'unknown');

/** Reads the licence texts at the top of a folder. */
export async function textsIn(folder) {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isFile() && IS_LICENCE.test(entry.name)).map(({ name }) => name);
  return Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
}

/** Reads the licence texts in a jar. `scratch` is a folder that it may use and remove. */
export async function textsInJar(jar, scratch, jdk) {
  const list = await run(jdkTool(jdk, 'jar'), ['tf', jar]);
  const names = list.split(/\r?\n/).filter((path) => {
    const parts = path.split('/');
    const name = parts.at(-1) ?? '';
    const isTop = parts.length === 1 || parts[0] === 'META-INF';
    return isTop && !path.endsWith('.class') && IS_LICENCE.test(name.replace(/^.*-(?=licen|notice)/i, ''));
  });
  if (names.length === 0) return [];
  await mkdir(scratch, { recursive: true });
  await run(jdkTool(jdk, 'jar'), ['xf', jar, ...names], { cwd: scratch });
  const texts = await Promise.all(names.map((name) => readFile(join(scratch, name), 'utf8')));
  await rm(scratch, { recursive: true });
  return texts;
}

const line = '-'.repeat(80);

/**
 * Returns one text with all licences. Each of `parts` has a name, a version, licence names and its
 * own texts. If a part has no text for a licence, SPDX's text is used. Equal texts appear once.
 */
export function licenceText(title, parts) {
  const shown = new Map();
  const numberOf = (text) => {
    const key = text.replaceAll(/\s+/g, ' ').trim();
    if (!shown.has(key)) shown.set(key, { number: shown.size + 1, text: text.trim() });
    return shown.get(key).number;
  };
  const lines = parts.map(({ name, version, licences, texts }) => {
    const standard = licences.flatMap((id) => id.split(/ (?:OR|AND|WITH) |[()]/)).map((id) => spdx[id.trim()]);
    const all = texts.length > 0 ? texts : standard.flatMap((known) => known?.licenseText ?? []);
    const see = all.map((text) => `[${numberOf(text)}]`).join(' ');
    return `${name} ${version}: ${licences.join(', ')} ${see}`.trimEnd();
  });
  const texts = [...shown.values()].map(({ number, text }) => `${line}\n[${number}]\n\n${text}\n`);
  return `${title}\n\n${lines.join('\n')}\n\n${texts.join('\n')}`;
}
