import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { expect, test } from '@jest/globals';
import { documents } from './source-tree.js';

/** Returns the files of this project that a document links to. */
function linked(document: string): readonly string[] {
  const targets = [...readFileSync(document, 'utf8').matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(
    ([, target = '']) => target,
  );
  return targets
    .filter((target) => !/^\w+:/.test(target))
    .map((target) => posix.normalize(posix.join(posix.dirname(document), target)));
}

test('documents have no broken links', () => {
  const broken = documents().flatMap((document) =>
    linked(document)
      .filter((target) => !existsSync(target))
      .map((target) => `${document}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test('the README leads to every document in two steps', () => {
  const first = linked('README.md');
  const second = first.filter((target) => target.endsWith('.md')).flatMap(linked);
  const found = new Set(['README.md', ...first, ...second]);
  expect(documents().length).toBeGreaterThan(20);
  expect(documents().filter((document) => !found.has(document))).toEqual([]);
});
