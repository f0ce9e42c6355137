import { expect, test } from '@jest/globals';
import { sourceFiles } from './source-tree.js';

const EXPORTED = /^export (?:async |abstract )*(?:function\*?|class|interface) (\w+)/;

test('every exported function, class and interface has a docstring', () => {
  const named = sourceFiles('src').flatMap(({ path, text }) => {
    const lines = text.split('\n');
    return lines.flatMap((line, i) => {
      const [, name] = EXPORTED.exec(line) ?? [];
      return name === undefined
        ? []
        : [
            {
              name,
              path,
              told: lines[i - 1]?.trimEnd().endsWith('*/') === true,
              overload: lines[i - 1]?.startsWith(`export function ${name}`),
            },
          ];
    });
  });
  expect(named.length).toBeGreaterThan(400);
  const silent = named.filter(({ told, overload }) => !told && overload !== true);
  expect(silent.map(({ path, name }) => `${path}: ${name}`)).toEqual([]);
});
