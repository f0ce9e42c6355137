import { posix } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DocumentError } from '../../../src/objects/errors.js';
import {
  agentPath,
  type CanonicalPath,
  canonicalPath,
  chatObjectId,
  type FilesystemId,
  filesystemId,
  isInfrastructureId,
  type ObjectId,
  objectId,
  type SessionId,
  type Sha256,
  sessionId,
  sessionObjectId,
  sha256,
  systemPromptObjectId,
} from '../../../src/objects/ids.js';
import { filesystemSource, parseSource } from '../../../src/objects/source.js';
import { fileType } from '../../../src/objects/versions.js';

function codeOf(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    return error instanceof DocumentError ? error.code : String(error);
  }
  return undefined;
}

describe('kinds of ids', () => {
  test('are incompatible with each other and with plain text', () => {
    const takesObject = (id: ObjectId): string => id;
    const takesSession = (id: SessionId): string => id;
    const takesHash = (hash: Sha256): string => hash;
    const takesCanonical = (path: CanonicalPath): string => path;
    const takesFilesystem = (id: FilesystemId): string => id;
    // @ts-expect-error plain text is not an object id
    takesObject('call_1');
    // @ts-expect-error a session id is not an object id
    takesObject(sessionId('s1'));
    // @ts-expect-error a hash names an object only once it was made its id
    takesObject(sha256('0'.repeat(64)));
    // @ts-expect-error an object id is not a session id
    takesSession(sessionObjectId(sessionId('s1')));
    // @ts-expect-error plain text is not a hash
    takesHash('0'.repeat(64));
    // @ts-expect-error a path as the agent sees it is not canonical
    takesCanonical(agentPath('/a.ts'));
    // @ts-expect-error a path is not a filesystem id
    takesFilesystem(canonicalPath('/a.ts'));
    // @ts-expect-error a source takes a canonical path
    filesystemSource(filesystemId('fs1'), agentPath('/a.ts'));
    expect(takesObject(objectId('x')) + takesCanonical(canonicalPath('/x'))).toBe('x/x');
  });

  test('include the three infrastructure ids of a session (decision B1)', () => {
    const id = sessionId('s1');
    expect([sessionObjectId(id), chatObjectId(id), systemPromptObjectId(id)]).toEqual([
      'session:s1',
      'chat:s1',
      'system_prompt:s1',
    ]);
    expect(
      ['session:s1', 'chat:x', 'system_prompt:', 'sessions:1', 'call_1', 'xchat:1'].map(isInfrastructureId),
    ).toEqual([true, true, false, false, false, false]);
  });

  test.each<[string, () => unknown, string]>([
    ['a short digest', () => sha256('abc'), 'invalid-id'],
    ['a digest in capitals', () => sha256('A'.repeat(64)), 'invalid-id'],
    ['a digest with a newline', () => sha256(`${'a'.repeat(64)}\n`), 'invalid-id'],
    ['an empty object id', () => objectId(''), 'invalid-id'],
    ['a long object id', () => objectId('x'.repeat(1_025)), 'invalid-id'],
    ['half a pair in an object id', () => objectId('x\ud800'), 'lone-surrogate'],
    ['an empty filesystem id', () => filesystemId(''), 'invalid-id'],
    ['a session id with a space', () => sessionId('a b'), 'invalid-id'],
    ['a session id with a newline', () => sessionId('a\n'), 'invalid-id'],
    ['a session id that begins with a dash', () => sessionId('-a'), 'invalid-id'],
    ['a session id of 201 characters', () => sessionId('a'.repeat(201)), 'invalid-id'],
    ['an empty path', () => agentPath(''), 'invalid-path'],
    ['a path with a NUL', () => agentPath('/a\0b'), 'invalid-path'],
    ['a relative canonical path', () => canonicalPath('a/b'), 'invalid-path'],
    ['a long path', () => canonicalPath(`/${'a'.repeat(4096)}`), 'invalid-path'],
    ['half a pair in a path', () => canonicalPath('/\udc00'), 'lone-surrogate'],
  ])('refuse %s', (_name, act, code) => {
    expect(codeOf(act)).toBe(code);
  });

  test('never show the whole refused value in a message', () => {
    expect(() => sha256('y'.repeat(100_000))).toThrow(/^.{0,300}$/s);
  });

  test('normalise canonical paths by POSIX rules only (decision C9)', () => {
    const cases = ['/a/../b/./c/', '//a', '/', '/A/É', '/A/E\u0301', '/a b'].map((path) => canonicalPath(path));
    expect(cases).toEqual(['/b/c', '/a', '/', '/A/É', '/A/E\u0301', '/a b']);
  });

  test('normalise canonical paths with names of any characters', () => {
    const names = fc.array(
      fc.oneof(
        fc.constantFrom('', '.', '..', '...', '.a', 'a.', '..a', '\n', ' ', '\\'),
        fc.string({ unit: 'grapheme' }),
      ),
    );
    fc.assert(
      fc.property(names, (parts) => {
        const path = `/${parts.join('/')}`;
        const normal = posix.normalize(path);
        expect(canonicalPath(path)).toBe(normal === '/' ? '/' : normal.replace(/\/$/, ''));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('file types (decision A5)', () => {
  test.each([
    ['/a.ts', 'ts'],
    ['/A.TS', 'ts'],
    ['/a.tar.gz', 'gz'],
    ['/Makefile', 'none'],
    ['/.gitignore', 'none'],
    ['/.eslintrc.json', 'json'],
    ['/a.', 'none'],
    ['/dir.d/file', 'none'],
  ])('include %s as %s', (path, type) => {
    expect(fileType(path)).toBe(type);
  });
});

describe('sources (decision B3)', () => {
  test('refuse an unknown type, a missing or extra field, and a non-map by name', () => {
    expect(codeOf(() => parseSource({ type: 's3', bucket: 'b', key: 'k' }))).toBe('unknown-source-type');
    expect(() => parseSource({ type: 's3' })).toThrow(/s3.*filesystem/);
    expect(codeOf(() => parseSource({ type: 'toString' }))).toBe('unknown-source-type');
    expect(codeOf(() => parseSource({}))).toBe('unknown-source-type');
    expect(codeOf(() => parseSource({ type: 'filesystem', path: '/a' }))).toBe('missing-field');
    expect(codeOf(() => parseSource({ type: 'filesystem', filesystemId: 'f', path: '/a', inode: 3 }))).toBe(
      'unknown-field',
    );
    expect(codeOf(() => parseSource('filesystem'))).toBe('invalid-value');
    expect(parseSource(null)).toBeNull();
  });
});
