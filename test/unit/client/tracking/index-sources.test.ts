import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { FileObservation } from '../../../../src/client/decide-file.js';
import { FileAccess } from '../../../../src/client/file-access.js';
import { MetadataCache } from '../../../../src/client/optimistic/metadata-cache.js';
import { SourceIndexer } from '../../../../src/client/tracking/index-sources.js';
import { hashText } from '../../../../src/objects/hashes.js';
import { canonicalPath, filesystemId } from '../../../../src/objects/ids.js';
import { type FilesystemSource, filesystemSource } from '../../../../src/objects/source.js';
import { indexedFile } from '../../../../src/objects/versions.js';
import { type TempFolder, tempFolder } from '../../filesystem/temp-folder.js';

let folder: TempFolder;
let source: FilesystemSource;
let metadata: MetadataCache;
let indexer: SourceIndexer;
let written: FileObservation[];
let postponed: string[];
/** Resolves once a write was deferred. */
let told: Promise<void>;

/** A call that ends on command. */
function deferred() {
  let resolve = (): void => undefined;
  let reject = (_error: Error): void => undefined;
  const promise = new Promise<void>((done, failed) => {
    [resolve, reject] = [done, failed];
  });
  return { promise, resolve, reject };
}

beforeEach(async () => {
  folder = await tempFolder();
  const host = filesystemId('host');
  const files = await FileAccess.open({ roots: [folder.inside], cwd: folder.inside, filesystemId: host });
  source = filesystemSource(host, canonicalPath(await folder.put('root/a.txt', 'one\n')));
  metadata = new MetadataCache(files);
  written = [];
  postponed = [];
  let tell: () => void;
  told = new Promise((resolve) => {
    tell = resolve;
  });
  // Only the input of the outbox matters here.
  const outbox = { index: async (observed: readonly FileObservation[]) => void written.push(...observed) };
  indexer = new SourceIndexer(
    { files, metadata, outbox: outbox as never, clock: () => Date.now() },
    {
      onPostponed: ({ path }) => {
        postponed.push(path);
        tell();
      },
    },
  );
});
afterEach(async () => {
  await indexer.close();
  await folder.remove();
});

test('writes an observation that no call is recording', async () => {
  await indexer.index(source);
  expect(written).toMatchObject([{ source, reading: { content: 'one\n' } }]);
  expect(postponed).toEqual([]);
});

test.each(['well', 'badly'])('defers an observation until all calls that record it have ended, %s', async (how) => {
  const calls = [1, 2].map(() => deferred());
  for (const { promise } of calls) indexer.recording([{ source }], promise);
  await indexer.index(source);
  const end = ({ resolve, reject }: (typeof calls)[number]): void =>
    how === 'well' ? resolve() : reject(new Error('not kept'));
  end(calls[0] as never);
  await Promise.allSettled([calls[0]?.promise]);
  expect([written, postponed]).toEqual([[], []]);
  end(calls[1] as never);
  await told;
  expect([written, postponed]).toEqual([[], [source.path]]);
  // On the second indexing nothing defers it.
  await indexer.index(source);
  expect(written).toHaveLength(1);
});

test('also defers a source that was recorded while it was read', async () => {
  const newer = indexedFile(source, 'two\n', hashText('two\n'));
  await indexer.index(source, async () => {
    metadata.acknowledge(newer, {});
    return true;
  });
  await told;
  expect([written, postponed]).toEqual([[], [source.path]]);
});
