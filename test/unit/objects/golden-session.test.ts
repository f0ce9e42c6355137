import { describe, expect, test } from '@jest/globals';
import { hashText } from '../../../src/objects/hashes.js';
import { canonicalPath, chatObjectId, filesystemId, objectId, sessionId } from '../../../src/objects/ids.js';
import type { ObjectType } from '../../../src/objects/object-type.js';
import { restoreVersion } from '../../../src/objects/seal.js';
import { filesystemSource } from '../../../src/objects/source.js';
import {
  chatVersion,
  fileStub,
  indexedFile,
  sessionVersion,
  systemPromptVersion,
  toolcallVersion,
} from '../../../src/objects/versions.js';

const SID = sessionId('s1');
const sourceOf = (path: string) => filesystemSource(filesystemId('fs1'), canonicalPath(path));
const a = indexedFile(sourceOf('/a.ts'), 'const x = 1;', hashText('const x = 1;'));
const b = fileStub(sourceOf('/b.ts'));
const call = toolcallVersion({
  id: objectId('call_1'),
  tool: 'read',
  args: { path: 'a.ts' },
  status: 'ok',
  chatRef: chatObjectId(SID),
  fileRefs: [a['xt/id']],
  content: 'const x = 1;',
});
const turns = [
  {
    turn: 1,
    messages: [
      { role: 'user', text: 'read a.ts' },
      { role: 'assistant', text: 'Reading it.', toolcall_refs: [objectId('call_1')] },
      { role: 'assistant', text: 'Done.' },
    ],
  },
];
const chat = chatVersion(SID, turns);
const prompt = systemPromptVersion(SID, 'You are a coding agent.');
const session = sessionVersion(SID, {
  index: [a['xt/id'], b['xt/id'], call['xt/id']],
  active: [a['xt/id'], call['xt/id']],
  pinned: [],
});

const A = 'df286d6f3405ac80750af3171e32ba4d250254c2001afb07d849a4db12c35c78';
const B = '38b2344838a560b7665f9dbff4fd674f269e396312c0c768382d3e2a7a930f5a';
const TEXT = '3f41cbb303012f33212c92326b27f6cc604fd414e20315cb10f2be7f1f6bb83c';

/** Sealed by hand, without this project (decision A8). */
const GOLDEN: readonly Readonly<Record<string, unknown>>[] = [
  {
    'xt/id': A,
    type: 'file',
    source: { type: 'filesystem', filesystemId: 'fs1', path: '/a.ts' },
    content: 'const x = 1;',
    file_type: 'ts',
    char_count: 12,
    identity_hash: A,
    file_hash: TEXT,
    content_hash: TEXT,
    metadata_hash: 'e01d4aff2b81c23097e440ba237d6ed9286e0fc7178f3b75b99efa5f605cebe1',
    object_hash: '2e5a734c05f986530cb5b5ba212a6f48c75f1c6a6f805afc7131ad452f45b16a',
  },
  {
    'xt/id': B,
    type: 'file',
    source: { type: 'filesystem', filesystemId: 'fs1', path: '/b.ts' },
    content: null,
    file_type: 'ts',
    char_count: 0,
    identity_hash: B,
    file_hash: null,
    content_hash: null,
    metadata_hash: '8a19f7fe3d267661838080bcb741fd4a70d5494397ffd64b8a47cca1c4c06a4b',
    object_hash: '7d8d8e6ed6b81acfff8e62e83572f76c04ad1ee591c648700d092b81f23ea76c',
  },
  {
    'xt/id': 'call_1',
    type: 'toolcall',
    source: null,
    content: 'const x = 1;',
    tool: 'read',
    args: { path: 'a.ts' },
    status: 'ok',
    chat_ref: 'chat:s1',
    file_refs: [A],
    identity_hash: 'c3520a009f3454b6637455892278752769a4a87bcb73548e1bbdd76fe8550c23',
    file_hash: null,
    content_hash: TEXT,
    metadata_hash: '8206336e36b472af507e14673fb059156b1be1940c3f629637663faec827ca00',
    object_hash: '204ae555a5e949fc873ef83ba8204e4e7c077b910a48daa96197d3875010872f',
  },
  {
    'xt/id': 'chat:s1',
    type: 'chat',
    source: null,
    content: null,
    turns,
    session_ref: 'session:s1',
    turn_count: 1,
    toolcall_refs: ['call_1'],
    identity_hash: 'c2ab302b647648812a4ab1350f6671e7be7e6bdd6d955a3fcf762b1d41564e9c',
    file_hash: null,
    content_hash: null,
    metadata_hash: '280b50f65c1a06a852d0ab88c36f13c6ad7e88527b5a8bb577599e9b9a7cbe3b',
    object_hash: '65efeafb78e76ae404e14e8c405fc61f4ae2367f589c94727f00bafeecf13fe6',
  },
  {
    'xt/id': 'system_prompt:s1',
    type: 'system_prompt',
    source: null,
    content: 'You are a coding agent.',
    identity_hash: '8697f12c9c441ea1ce8413b7994ec3a86690af00269e849143e1c6729b35ea9d',
    file_hash: null,
    content_hash: 'f415869f0b9f0c8d57a4e51f5e23b472403bda4bf24962262d73aae09068367d',
    metadata_hash: '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
    object_hash: '08ab9f61266d1ab6d3ca4e69a29689e51860a8b4f044fff26ba253749fc4f44d',
  },
  {
    'xt/id': 'session:s1',
    type: 'session',
    source: null,
    content: null,
    session_id: 's1',
    chat_ref: 'chat:s1',
    system_prompt_ref: 'system_prompt:s1',
    session_index: [A, B, 'call_1'],
    metadata_pool: [A, B, 'call_1'],
    active_set: [A, 'call_1'],
    pinned_set: [],
    identity_hash: '6a98747f00c06d6e071635d2c40e6868d3a087b4f9312802f9f7148e56939826',
    file_hash: null,
    content_hash: null,
    metadata_hash: '40276447e56f423fa57500bf28e7a73d1d9ca5e524a8ad5b80f81a4108ed8f51',
    object_hash: '9b428fa4e20859a34f567a8bbbb0aff4335a6f9cc51d050e2411bc1da20ba405',
  },
];

const MADE: readonly (readonly [ObjectType | 'stub', unknown, Readonly<Record<string, unknown>>])[] = [
  ['file', a, GOLDEN[0] ?? {}],
  ['stub', b, GOLDEN[1] ?? {}],
  ['toolcall', call, GOLDEN[2] ?? {}],
  ['chat', chat, GOLDEN[3] ?? {}],
  ['system_prompt', prompt, GOLDEN[4] ?? {}],
  ['session', session, GOLDEN[5] ?? {}],
];

describe('the golden session (decision A8)', () => {
  test.each(MADE)('has exactly the golden keys and hashes in its %s', (_type, made, golden) => {
    expect(made).toStrictEqual(golden);
  });

  test.each(MADE)('restores the golden %s as the built version', (_type, made, golden) => {
    expect(restoreVersion(golden)).toStrictEqual(made);
  });
});
