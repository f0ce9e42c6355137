import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DocumentError } from '../../../src/objects/errors.js';
import { hashBytes, hashText, metadataHash, objectHash } from '../../../src/objects/hashes.js';
import {
  canonicalPath,
  chatObjectId,
  filesystemId,
  type ObjectId,
  objectId,
  sessionId,
} from '../../../src/objects/ids.js';
import type { Message } from '../../../src/objects/object-type.js';
import { type ObjectVersion, restoreVersion, sealVersion } from '../../../src/objects/seal.js';
import { filesystemSource } from '../../../src/objects/source.js';
import {
  chatVersion,
  deletedFile,
  fileStub,
  indexedFile,
  nonTextFile,
  sessionVersion,
  systemPromptVersion,
  type ToolcallInput,
  toolcallVersion,
} from '../../../src/objects/versions.js';

const HASHES = ['identity_hash', 'file_hash', 'content_hash', 'metadata_hash', 'object_hash'] as const;
type Document = Readonly<Record<string, unknown>>;

function errorOf(act: () => unknown): DocumentError | undefined {
  try {
    act();
  } catch (error) {
    if (error instanceof DocumentError) return error;
    throw error;
  }
  return undefined;
}

const fsSource = (fs: string, path: string) => filesystemSource(filesystemId(fs), canonicalPath(path));
const source = fsSource('fs1', '/a.ts');
const file = indexedFile(source, 'const x = 1;', hashText('const x = 1;'));
const baseCall: ToolcallInput = {
  id: objectId('c1'),
  tool: 'bash',
  args: { command: 'ls' },
  status: 'ok',
  chatRef: chatObjectId(sessionId('s1')),
  content: 'out',
};
const call = (more: Partial<ToolcallInput> = {}) => toolcallVersion({ ...baseCall, ...more });

/** Returns the hashes that differ between two versions. */
const differing = (one: ObjectVersion, two: ObjectVersion) => HASHES.filter((name) => one[name] !== two[name]);

describe('differences between versions [§2.4]', () => {
  test('distinguish missing content, empty content and absent bytes (decision A4)', () => {
    const empty = indexedFile(source, '', hashText(''));
    const stub = fileStub(source);
    expect([empty.content, empty.char_count, empty.content_hash]).toEqual([
      '',
      0,
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    ]);
    expect(differing(empty, stub)).toEqual(['file_hash', 'content_hash', 'object_hash']);
    const binary = nonTextFile(source, hashBytes(new Uint8Array()));
    expect(differing(binary, empty)).toEqual(['content_hash', 'object_hash']);
    expect(differing(binary, stub)).toEqual(['file_hash', 'object_hash']);
    expect(differing(call({ content: null }), call({ content: '' }))).toEqual(['content_hash', 'object_hash']);
  });

  test('do not exist between a deleted file and a stub (decision C3)', () => {
    expect(deletedFile(source)).toStrictEqual(fileStub(source));
  });

  test('are in the object, not the version, for one path on two filesystems (decision A7)', () => {
    const other = indexedFile(fsSource('fs2', '/a.ts'), 'const x = 1;', hashText('const x = 1;'));
    expect(differing(file, other)).toEqual(['identity_hash']);
    expect(file['xt/id']).not.toBe(other['xt/id']);
  });

  test('prevent a path with another filesystem id appended from being another binding of the same text', () => {
    expect(fileStub(fsSource('a', '/b/c'))['xt/id']).not.toBe(fileStub(fsSource('a/b', '/c'))['xt/id']);
  });

  test('ignore the key order of args, but not values, types and places', () => {
    const version = call({ args: { a: 1, b: { c: null } } });
    expect(call({ args: { b: { c: null }, a: 1 } })).toStrictEqual(version);
    for (const args of [
      { a: 1, b: { c: '' } },
      { a: 1, b: {} },
      { a: '1', b: { c: null } },
      { a: 1, c: null, b: {} },
      { a: 1, b: { c: [] } },
      { a: 1, b: [null] },
    ]) {
      expect(differing(call({ args }), version)).toEqual(['metadata_hash', 'object_hash']);
    }
  });

  test('exist for the same text in another field', () => {
    expect(call({ argsDisplay: 'x' }).metadata_hash).not.toBe(call({ tool: 'x' }).metadata_hash);
    expect(objectHash({ file_hash: hashText('x'), content_hash: null, metadata_hash: metadataHash({}) })).not.toBe(
      objectHash({ file_hash: null, content_hash: hashText('x'), metadata_hash: metadataHash({}) }),
    );
  });

  test('treat absent optional fields as omitted, not null (decision A2)', () => {
    expect(Object.keys(call())).not.toEqual(expect.arrayContaining(['args_display']));
    expect(Object.keys(call({ fileRefs: [] }))).not.toContain('file_refs');
    expect(call({ fileRefs: [] })).toStrictEqual(call());
    expect(call({ argsDisplay: '' }).metadata_hash).not.toBe(call().metadata_hash);
    expect(metadataHash({ a: null })).not.toBe(metadataHash({}));
  });

  test('include the order of ids (decision A6)', () => {
    const ids = ['x', 'y'].map(objectId);
    expect(differing(call({ fileRefs: ids }), call({ fileRefs: [...ids].reverse() }))).toEqual([
      'metadata_hash',
      'object_hash',
    ]);
  });

  test('include newline, BOM and Unicode form, because bytes are hashed as they are (decision A3)', () => {
    const bytes = ['a\n', 'a\r\n', 'a', '\ufeffa', 'é', 'e\u0301'].map((text) => hashBytes(Buffer.from(text)));
    expect(new Set(bytes).size).toBe(6);
    expect(hashBytes(Buffer.from('é'))).toBe(hashText('é'));
  });
});

describe('sealing', () => {
  test.each<[string, () => unknown, string]>([
    [
      'a file without a source',
      () =>
        sealVersion({
          type: 'file',
          id: 'x',
          fields: { file_type: 'ts', char_count: 0 },
          content: null,
          file_hash: null,
        }),
      'invalid-value',
    ],
    [
      'a chat with a source',
      () => sealVersion({ type: 'system_prompt', source, fields: {}, content: null, file_hash: null }),
      'invalid-value',
    ],
    [
      'an unsourced object with a file_hash',
      () => sealVersion({ type: 'system_prompt', id: 'x', fields: {}, content: null, file_hash: hashText('') }),
      'invalid-value',
    ],
    [
      'an unknown field',
      () =>
        sealVersion({
          type: 'system_prompt',
          id: 'x',
          fields: { locked: true } as never,
          content: null,
          file_hash: null,
        }),
      'unknown-field',
    ],
    [
      'a missing field',
      () => sealVersion({ type: 'file', source, fields: { file_type: 'ts' } as never, content: null, file_hash: null }),
      'missing-field',
    ],
    ['args that are not JSON', () => call({ args: { at: new Date(0) as never } }), 'invalid-value'],
    ['args that are not finite', () => call({ args: { n: Number.NaN } }), 'not-finite'],
    ['content that cannot be stored', () => call({ content: 'x\udfff' }), 'lone-surrogate'],
    ['an empty id', () => call({ id: '' as ObjectId }), 'invalid-id'],
  ])('refuses %s', (_name, act, code) => {
    expect(errorOf(act)?.code).toBe(code);
  });

  test('deep-freezes a version, also with parts that came frozen', () => {
    const args = Object.freeze({ list: [{ a: 1 }] });
    const version = call({ args });
    expect(() => (version.args.list as unknown[]).push(1)).toThrow(TypeError);
    expect(() => Object.assign((version.args.list as object[])[0] as object, { a: 2 })).toThrow(TypeError);
    expect(() => Object.assign(version, { content: 'y' })).toThrow(TypeError);
    expect(() => Object.assign(file.source as object, { path: '/b' })).toThrow(TypeError);
  });
});

describe('restoring checks every hash', () => {
  const documents: readonly (readonly [string, Document])[] = [
    ['file', { ...file }],
    ['toolcall', { ...call({ fileRefs: [objectId('f')], argsDisplay: 'ls' }) }],
    ['system_prompt', { ...systemPromptVersion(sessionId('s1'), 'P') }],
  ];
  const wrong = 'f'.repeat(64);

  test.each(documents.flatMap(([type, document]) => HASHES.map((name) => [type, name, document] as const)))(
    '%s with a wrong %s',
    (_type, name, document) => {
      const error = errorOf(() => restoreVersion({ ...document, [name]: wrong }));
      // Chooses the named hash. A wrong file_hash is accepted, because another component made it;
      // the hash over it then differs.
      const unsourced = name === 'file_hash' && document.source === null;
      expect(error?.code).toBe(unsourced ? 'invalid-value' : 'hash-mismatch');
      if (!unsourced) expect(error?.message).toContain(name === 'file_hash' ? 'object_hash' : name);
    },
  );

  test.each(
    documents.flatMap(([type, document]) => Object.keys(document).map((key) => [type, key, document] as const)),
  )('refuses %s without %s', (_type, key, document) => {
    const { [key]: _, ...rest } = document;
    expect(errorOf(() => restoreVersion(rest))).toBeInstanceOf(DocumentError);
  });

  test.each<[string, Document]>([
    ['another id', { 'xt/id': wrong }],
    ['another content', { content: 'const x = 2;' }],
    ['no content', { content: null }],
    ['a number as content', { content: 5 }],
    ['another count', { char_count: 13 }],
    ['another path', { source: { type: 'filesystem', filesystemId: 'fs1', path: '/b.ts' } }],
    [
      'an unnormalised path',
      { source: { type: 'filesystem', filesystemId: 'fs1', path: '/x/../a.ts/' }, identity_hash: wrong },
    ],
    ['an unknown type', { type: 'step' }],
    ['a type of the prototype', { type: 'constructor' }],
    ['one field too many', { nickname: 'x' }],
  ])('refuses a file with %s', (_name, change) => {
    expect(errorOf(() => restoreVersion({ ...file, ...change }))).toBeInstanceOf(DocumentError);
  });

  test('names object and hash in the message, but no document', () => {
    const error = errorOf(() =>
      restoreVersion({ ...call({ content: 'y'.repeat(100_000) }), content: 'z'.repeat(100_000) }),
    );
    expect([error?.code, error?.message.includes('content_hash of "c1"'), (error?.message.length ?? 0) < 400]).toEqual([
      'hash-mismatch',
      true,
      true,
    ]);
  });
});

const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map(objectId);
const path = fc
  .array(fc.string({ unit: fc.constantFrom('a', 'B', '.', ' ', 'é', '\n'), minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: 3,
  })
  .map((parts) => canonicalPath(`/${parts.join('/')}`));
const files = fc
  .record({
    fs: fc.constantFrom('fs1', 'fs2').map(filesystemId),
    path,
    content: fc.option(text),
    read: fc.boolean(),
    bytes: text,
  })
  .map(({ fs, path: at, content, read, bytes }) => {
    const from = filesystemSource(fs, at);
    if (content !== null) return indexedFile(from, content, hashText(bytes));
    return read ? nonTextFile(from, hashText(bytes)) : fileStub(from);
  });
/** As JSON writes it, without negative zero. */
const written = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)));
const toolcallInputs: fc.Arbitrary<ToolcallInput> = fc.record(
  {
    id,
    tool: text,
    args: fc.dictionary(text, written, { noNullPrototype: true }) as fc.Arbitrary<ToolcallInput['args']>,
    status: fc.constantFrom('ok' as const, 'fail' as const),
    chatRef: id,
    content: fc.option(text),
    argsDisplay: text,
    fileRefs: fc.array(id, { maxLength: 3 }),
  },
  { requiredKeys: ['id', 'tool', 'args', 'status', 'chatRef', 'content'], noNullPrototype: true },
);
const message: fc.Arbitrary<Message> = fc.record(
  { role: text, text, name: text, toolcall_refs: fc.array(id, { maxLength: 2 }) },
  { requiredKeys: ['role', 'text'], noNullPrototype: true },
);
const turns = fc
  .array(fc.array(message, { maxLength: 3 }), { maxLength: 3 })
  .map((list) => list.map((messages, i) => ({ turn: i + 1, messages })));
const ids = fc.uniqueArray(id, { maxLength: 4 });
const SID = sessionId('s1');
const versions: fc.Arbitrary<ObjectVersion> = fc.oneof(
  files,
  toolcallInputs.map(toolcallVersion),
  turns.map((list) => chatVersion(SID, list)),
  fc.option(text).map((prompt) => systemPromptVersion(SID, prompt)),
  fc.record({ index: ids, active: ids, pinned: ids }).map((sets) => sessionVersion(SID, sets)),
);

describe('random versions', () => {
  test('treat negative zero as the zero that JSON writes, with the same hashes', () => {
    const version = toolcallVersion({
      id: objectId('c'),
      tool: 't',
      args: { n: -0 },
      status: 'ok',
      chatRef: objectId('chat:s'),
      content: null,
    });
    const back = restoreVersion(JSON.parse(JSON.stringify(version)));
    expect(HASHES.map((name) => back[name])).toEqual(HASHES.map((name) => version[name]));
  });

  test('keep every hash through JSON into the database and back', () => {
    fc.assert(
      fc.property(versions, (version) => {
        const stored: Document = JSON.parse(JSON.stringify(version));
        expect(restoreVersion(stored)).toStrictEqual(version);
        expect(HASHES.map((name) => version[name] === null || /^[0-9a-f]{64}$/.test(version[name]))).toEqual([
          true,
          true,
          true,
          true,
          true,
        ]);
      }),
      { numRuns: 300 },
    );
  });

  test('of a tool call differ in exactly the hashes that cover the changed field [§2.4]', () => {
    const covers: Readonly<Record<keyof ToolcallInput, readonly string[]>> = {
      id: ['identity_hash'],
      content: ['content_hash', 'object_hash'],
      tool: ['metadata_hash', 'object_hash'],
      args: ['metadata_hash', 'object_hash'],
      argsDisplay: ['metadata_hash', 'object_hash'],
      status: ['metadata_hash', 'object_hash'],
      chatRef: ['metadata_hash', 'object_hash'],
      fileRefs: ['metadata_hash', 'object_hash'],
    };
    const field = fc.constantFrom(...(Object.keys(covers) as (keyof ToolcallInput)[]));
    fc.assert(
      fc.property(toolcallInputs, toolcallInputs, field, (one, two, name) => {
        const before = toolcallVersion(one);
        const { [name]: _, ...others } = one;
        const after = toolcallVersion(
          (two[name] === undefined ? others : { ...others, [name]: two[name] }) as ToolcallInput,
        );
        const same = JSON.stringify(after) === JSON.stringify(before) || differing(before, after).length === 0;
        if (!same) expect(differing(before, after)).toEqual(covers[name]);
        const normal = (value: unknown) => (Array.isArray(value) && value.length === 0 ? undefined : value);
        if (name !== 'args' && normal(one[name])?.toString() !== normal(two[name])?.toString())
          expect(same).toBe(false);
      }),
      { numRuns: 400 },
    );
  });

  test('of a file differ in exactly the hashes that cover the changed part [§2.4]', () => {
    fc.assert(
      fc.property(path, path, text, text, (one, two, before, after) => {
        fc.pre(before !== after);
        const at = (where: typeof one, content: string, bytes: string) =>
          indexedFile(filesystemSource(filesystemId('fs1'), where), content, hashText(bytes));
        const version = at(one, before, before);
        const counted = before.length === after.length ? [] : ['metadata_hash'];
        expect(differing(version, at(one, before, after))).toEqual(['file_hash', 'object_hash']);
        expect(differing(version, at(one, after, before))).toEqual(['content_hash', ...counted, 'object_hash']);
        const moved = at(two, before, before);
        const typed = version.file_type === moved.file_type ? [] : ['metadata_hash', 'object_hash'];
        expect(differing(version, moved)).toEqual(one === two ? [] : ['identity_hash', ...typed]);
      }),
      { numRuns: 300 },
    );
  });
});
