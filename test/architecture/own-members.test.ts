import { expect, test } from '@jest/globals';
import { sourceFiles } from './source-tree.js';

/** A table for any name: a constant, or a field that is set once. */
const TABLE = /(?:const ([A-Z_]+)|readonly (#\w+)): Readonly<(?:Partial<)?Record<string, .+> =/g;

test('tables of names are read with ownMember, so that "constructor" finds nothing', () => {
  const files = sourceFiles('src');
  const tables = files.flatMap(({ path, text }) =>
    [...text.matchAll(TABLE)].map(([, constant, field]) => ({ path, constant, field })),
  );
  expect(tables.length).toBeGreaterThan(20);
  const asked = tables.flatMap(({ path, constant, field }) => {
    const name = constant ?? `this\\.${field}`;
    const users = files.filter(
      ({ path: user, imports }) => user === path || (constant !== undefined && imports.includes(path)),
    );
    return users.flatMap(
      ({ path: user, text }) =>
        text.match(new RegExp(`(?<!\\w)${name}\\[.*`, 'g'))?.map((use) => `${user}: ${use}`) ?? [],
    );
  });
  expect(asked).toEqual([]);
});
