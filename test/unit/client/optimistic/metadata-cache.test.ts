import { expect, test } from '@jest/globals';
import { MetadataCache } from '../../../../src/client/optimistic/metadata-cache.js';
import { objectId } from '../../../../src/objects/ids.js';

test('reads two future versions in order of their dates', () => {
  const id = objectId('a');
  const cache = new MetadataCache({} as ConstructorParameters<typeof MetadataCache>[0]);
  const [at, first, second] = [0, 60_000, 110_000].map((ms) => new Date(ms)) as [Date, Date, Date];
  cache.setDue(id, { from: first, at });
  cache.setDue(id, { from: second, at: new Date(50_000) });
  expect([cache.isDue(id, new Date(59_999)), cache.isDue(id, first)]).toEqual([false, true]);
  // When the object is read again, its newest version is still in the future.
  cache.setDue(id, { from: second, at: first });
  expect([cache.isDue(id, first), cache.isDue(id, second)]).toEqual([false, true]);
  cache.setDue(id, { from: second, at: second });
  expect(cache.isDue(id, second)).toBe(false);
});
