import { describe, expect, test } from '@jest/globals';
import { canonicalJson } from '../../../src/objects/canonical-json.js';
import { assignedIdentityHash, hashText, metadataHash, sourcedIdentityHash } from '../../../src/objects/hashes.js';
import { canonicalPath, filesystemId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { fileStub, indexedFile } from '../../../src/objects/versions.js';

const source = filesystemSource(filesystemId('fs1'), canonicalPath('/a.ts'));

describe('golden vectors of the five hashes [§2.4, decision A8]', () => {
  test('match the identity of a file', () => {
    expect(sourcedIdentityHash('file', source)).toBe(
      'df286d6f3405ac80750af3171e32ba4d250254c2001afb07d849a4db12c35c78',
    );
  });

  test('match the identity of a chat', () => {
    expect(assignedIdentityHash('chat', 'chat:s1')).toBe(
      'c2ab302b647648812a4ab1350f6671e7be7e6bdd6d955a3fcf762b1d41564e9c',
    );
  });

  test('match the metadata of a type without fields', () => {
    expect(metadataHash({})).toBe('44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a');
  });

  test('match a discovery stub', () => {
    const stub = fileStub(source);
    expect(stub.metadata_hash).toBe('8a19f7fe3d267661838080bcb741fd4a70d5494397ffd64b8a47cca1c4c06a4b');
    expect(stub.object_hash).toBe('7d8d8e6ed6b81acfff8e62e83572f76c04ad1ee591c648700d092b81f23ea76c');
    expect([stub.content, stub.content_hash, stub.file_hash, stub.char_count]).toEqual([null, null, null, 0]);
  });

  test('match an indexed file', () => {
    const file = indexedFile(source, 'const x = 1;', hashText('const x = 1;'));
    expect(file.file_hash).toBe('3f41cbb303012f33212c92326b27f6cc604fd414e20315cb10f2be7f1f6bb83c');
    expect(file.content_hash).toBe('3f41cbb303012f33212c92326b27f6cc604fd414e20315cb10f2be7f1f6bb83c');
    expect(file.metadata_hash).toBe('e01d4aff2b81c23097e440ba237d6ed9286e0fc7178f3b75b99efa5f605cebe1');
    expect(file.object_hash).toBe('2e5a734c05f986530cb5b5ba212a6f48c75f1c6a6f805afc7131ad452f45b16a');
  });

  test('sort keys at every depth by code units', () => {
    expect(canonicalJson({ b: 1, a: { d: [3, { z: null, y: '\u00e9' }], 10: 1, 9: 2 } })).toBe(
      '{"a":{"10":1,"9":2,"d":[3,{"y":"é","z":null}]},"b":1}',
    );
  });
});
