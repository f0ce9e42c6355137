import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { tooOldNode } from '../../../src/process/node-version.js';

test('names a Node that is too old in one line, with the minimum of package.json', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly engines: { readonly node: string };
  };
  expect(engines.node).toContain('20.19');
  expect(['18.20.4', '20.18.9'].map((version) => tooOldNode(version))).toEqual([
    expect.stringMatching(/^palimpsest needs Node 20\.19 or newer; this is Node 18\.20\.4 \(.*\)\.$/),
    expect.stringContaining('20.18.9'),
  ]);
  expect(['20.19.0', '20.20.1', '22.0.0', '100.1.0'].map((version) => tooOldNode(version))).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
