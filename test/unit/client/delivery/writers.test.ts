import { describe, expect, test } from '@jest/globals';
import { OwnFiles } from '../../../../src/client/delivery/writers.js';
import type { WrittenFile } from '../../../../src/client/optimistic/known-versions.js';
import { hashText } from '../../../../src/objects/hashes.js';
import { canonicalPath, filesystemId } from '../../../../src/objects/ids.js';
import { filesystemSource } from '../../../../src/objects/source.js';
import { deletedFile, fileStub, indexedFile } from '../../../../src/objects/versions.js';
import { marksOf, toStored } from '../../../../src/store/head.js';

const source = (path = '/a.ts') => filesystemSource(filesystemId('fs'), canonicalPath(path));
const text = (content: string, at: number): WrittenFile => ({
  version: indexedFile(source(), content, hashText(content)),
  marks: {},
  validTime: new Date(at),
  onlyIfAbsent: false,
});
const stub = (at: number, path?: string): WrittenFile => ({
  version: fileStub(source(path)),
  marks: {},
  validTime: new Date(at),
  onlyIfAbsent: true,
});
const headOf = ({ version, validTime, marks }: WrittenFile) => {
  const { head } = toStored(version, marks);
  return { document: head, marks: marksOf(head), validTime };
};
const wrote = (own: OwnFiles, files: readonly WrittenFile[]) => own.learn({ files, observed: [] });
const observed = (own: OwnFiles, heads: readonly ReturnType<typeof headOf>[]) =>
  own.learn({ files: [], observed: heads });
const id = stub(1).version['xt/id'];

describe('the knowledge of a sole writer about its files', () => {
  test('holds the last text that it wrote, and a deletion', () => {
    const heads = new OwnFiles();
    expect(heads.get(id)).toBeUndefined();
    wrote(heads, [stub(1)]);
    expect(heads.get(id)).toEqual({ fileHash: null, gone: false, validTime: new Date(1) });
    wrote(heads, [text('one', 2)]);
    expect(heads.get(id)).toEqual({ fileHash: hashText('one'), gone: false, validTime: new Date(2) });
    wrote(heads, [
      { version: deletedFile(source()), marks: { gone: true }, validTime: new Date(3), onlyIfAbsent: false },
    ]);
    expect(heads.get(id)).toMatchObject({ gone: true, validTime: new Date(3) });
  });

  test('holds the state of the database for files it did not write', () => {
    const heads = new OwnFiles();
    observed(heads, [headOf(text('there', 5))]);
    expect(heads.get(id)).toEqual({ fileHash: hashText('there'), gone: false, validTime: new Date(5) });
  });

  test('is not replaced by an earlier state of the database or a late stub', () => {
    const heads = new OwnFiles();
    wrote(heads, [text('new', 9)]);
    observed(heads, [headOf(text('old', 5))]);
    wrote(heads, [stub(4)]);
    expect(heads.get(id)).toMatchObject({ fileHash: hashText('new'), validTime: new Date(9) });
  });

  test('is bounded: evicted files are read again, and known ones stay up to date', () => {
    const heads = new OwnFiles(1);
    wrote(heads, [stub(1), stub(1, '/b.ts')]);
    expect(heads.get(stub(1, '/b.ts').version['xt/id'])).toBeUndefined();
    wrote(heads, [text('one', 2)]);
    expect(heads.get(id)?.fileHash).toBe(hashText('one'));
  });
});
