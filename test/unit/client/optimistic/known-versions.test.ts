import { expect, test } from '@jest/globals';
import { KnownVersions, type MarkedVersion } from '../../../../src/client/optimistic/known-versions.js';
import { MetadataCache } from '../../../../src/client/optimistic/metadata-cache.js';
import { hashText } from '../../../../src/objects/hashes.js';
import { canonicalPath, filesystemId } from '../../../../src/objects/ids.js';
import { filesystemSource } from '../../../../src/objects/source.js';
import { indexedFile } from '../../../../src/objects/versions.js';

const source = filesystemSource(filesystemId('f'), canonicalPath('/a/b.txt'));
const versionOf = (text: string): MarkedVersion => ({ version: indexedFile(source, text, hashText(text)), marks: {} });
const [one, two] = [versionOf('one'), versionOf('two two')] as const;
const id = one.version['xt/id'];

const opened = () => {
  const metadata = new MetadataCache({ shows: () => true, display: ({ path }: typeof source) => path } as never);
  return { metadata, versions: new KnownVersions(metadata) };
};

const READS: { readonly [read: string]: (known: ReturnType<typeof opened>) => unknown } = {
  pending: ({ versions }) => versions.pending(id)?.version,
  journaled: ({ versions }) => versions.journaled(id)?.version,
  newest: ({ versions }) => versions.newest(id)?.version,
  recent: ({ versions }) => versions.recent(id)?.version,
  metadata: ({ metadata }) => metadata.get(id),
  source: ({ metadata }) => metadata.source(id),
  'not as of': ({ metadata }) => (metadata.isAsOf(id, 99) ? undefined : 'younger'),
};

test.each(Object.keys(READS))(
  'shows an acknowledged version to the next reader, though it is built only then: %s',
  (read) => {
    const known = opened();
    let made = 0;
    known.versions.acknowledge(() => {
      made += 1;
      return [one];
    }, true);
    expect(made).toBe(0);
    expect(READS[read]?.(known)).toBeDefined();
    expect(made).toBe(1);
  },
);

test('applies acknowledgements in order; each includes the earlier ones and ends by itself', () => {
  const { metadata, versions } = opened();
  const before: unknown[] = [];
  const first = versions.acknowledge(() => [one], true);
  const second = versions.acknowledge(() => {
    before.push(versions.newest(id)?.version);
    return [two];
  }, true);
  // The database is ahead of the reader.
  versions.committed({ written: [one], files: [], observed: [], observedAt: undefined }, 7);
  expect(before).toEqual([one.version]);
  expect(versions.journaled(id)).toBe(two);
  versions.settle(first);
  versions.settle(first);
  expect(versions.pending(id)).toBe(two);
  expect(metadata.isAsOf(id, 7)).toBe(false);
  versions.settle(second);
  expect(versions.pending(id)).toBeUndefined();
  expect(metadata.isAsOf(id, 7)).toBe(true);
});

test('forgets an acknowledgement that ends before the first read', () => {
  const { versions } = opened();
  versions.settle(versions.acknowledge(() => [one], true));
  expect(versions.journaled(id)).toBeUndefined();
  expect(versions.recent(id)?.version).toBe(one.version);
});

test('does not block readers with a version that cannot be built', () => {
  const { versions } = opened();
  versions.acknowledge(() => {
    throw new Error('not plain');
  }, true);
  versions.acknowledge(() => [one], true);
  expect(versions.journaled(id)).toBe(one);
});
