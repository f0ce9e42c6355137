import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { bundleJsonSchema } from '../../../src/bundle/bundle-lines.js';

test('publishes the line schema that bundles are read with', () => {
  const published: unknown = JSON.parse(
    readFileSync(new URL('../../../docs/bundle.schema.json', import.meta.url), 'utf8'),
  );
  expect(published).toEqual(JSON.parse(JSON.stringify(bundleJsonSchema())));
});
