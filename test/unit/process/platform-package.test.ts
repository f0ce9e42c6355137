import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { removalCommand } from '../../../src/process/platform-package.js';

const modules = join('/usr', 'lib', 'node_modules');

test.each([
  ['installed from its own file', join(modules, '@palimpsest', 'node-linux-x64'), ' @palimpsest/node-linux-x64'],
  ['a dependency of the program', join(modules, 'palimpsest', 'node_modules', '@palimpsest', 'node-linux-x64'), ''],
  ['missing', undefined, ''],
])('the command that removes the program names the platform package only if needed: %s', (_, folder, added) => {
  expect(removalCommand(folder)).toBe(`npm uninstall -g palimpsest${added}`);
});
