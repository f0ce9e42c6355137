import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hashText } from '../../../src/objects/hashes.js';
import {
  canonicalPath,
  chatObjectId,
  filesystemId,
  type ObjectId,
  objectId,
  sessionId,
  sessionObjectId,
} from '../../../src/objects/ids.js';
import { EMPTY_SETS, foldSets } from '../../../src/objects/sets.js';
import { filesystemSource } from '../../../src/objects/source.js';
import type { Step } from '../../../src/objects/step.js';
import {
  chatVersion,
  fileStub,
  indexedFile,
  sessionVersion,
  systemPromptVersion,
  toolcallVersion,
} from '../../../src/objects/versions.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { toStepParts } from '../../../src/store/step-part.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { testAddress } from '../../support/context.js';
import { withStep } from '../../support/plain-folds.js';

const s1 = sessionId('s1');
const fs1 = filesystemId('fs1');
const a = indexedFile(filesystemSource(fs1, canonicalPath('/a.ts')), 'const x = 1;', hashText('const x = 1;'));
const b = fileStub(filesystemSource(fs1, canonicalPath('/b.ts')));
const aId = a['xt/id'];
const bId = b['xt/id'];
const callId = objectId('call_1');
const call = toolcallVersion({
  id: callId,
  tool: 'read',
  args: { path: 'a.ts' },
  status: 'ok',
  chatRef: chatObjectId(s1),
  fileRefs: [aId],
  content: 'const x = 1;',
});

const at = Date.UTC(2026, 0, 1);
const steps: readonly Step[] = [
  {
    session: s1,
    seq: 1,
    turn: 1,
    at: at + 1,
    opens: { rule: 'user-message' },
    message: { role: 'user', text: 'read a.ts' },
    changes: {},
  },
  { session: s1, seq: 2, turn: 1, at: at + 2, message: { role: 'assistant', text: 'Reading it.' }, changes: {} },
  {
    session: s1,
    seq: 3,
    turn: 1,
    at: at + 3,
    call: { id: callId },
    changes: { index: [aId, bId, callId], activate: [aId, callId] },
  },
  { session: s1, seq: 4, turn: 1, at: at + 4, message: { role: 'assistant', text: 'Done.' }, changes: {} },
];

const HASHES: Readonly<Record<string, readonly [string, string]>> = {
  [aId]: [
    'e01d4aff2b81c23097e440ba237d6ed9286e0fc7178f3b75b99efa5f605cebe1',
    '2e5a734c05f986530cb5b5ba212a6f48c75f1c6a6f805afc7131ad452f45b16a',
  ],
  [bId]: [
    '8a19f7fe3d267661838080bcb741fd4a70d5494397ffd64b8a47cca1c4c06a4b',
    '7d8d8e6ed6b81acfff8e62e83572f76c04ad1ee591c648700d092b81f23ea76c',
  ],
  call_1: [
    '8206336e36b472af507e14673fb059156b1be1940c3f629637663faec827ca00',
    '204ae555a5e949fc873ef83ba8204e4e7c077b910a48daa96197d3875010872f',
  ],
  'chat:s1': [
    '280b50f65c1a06a852d0ab88c36f13c6ad7e88527b5a8bb577599e9b9a7cbe3b',
    '65efeafb78e76ae404e14e8c405fc61f4ae2367f589c94727f00bafeecf13fe6',
  ],
  'system_prompt:s1': [
    '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
    '08ab9f61266d1ab6d3ca4e69a29689e51860a8b4f044fff26ba253749fc4f44d',
  ],
  'session:s1': [
    '40276447e56f423fa57500bf28e7a73d1d9ca5e524a8ad5b80f81a4108ed8f51',
    '9b428fa4e20859a34f567a8bbbb0aff4335a6f9cc51d050e2411bc1da20ba405',
  ],
};

describe('the golden session comes back from the database as SSOT documents [decision G1]', () => {
  let xtdb: XtdbClient;
  let store: ObjectStore;

  beforeAll(async () => {
    xtdb = new XtdbClient(testAddress());
    store = new ObjectStore(xtdb);
    const turns = steps.reduce(withStep, [] as ReturnType<typeof withStep>);
    const sets = foldSets(
      EMPTY_SETS,
      steps.map(({ changes }) => changes),
    );
    await store.putMany([
      { version: a },
      { version: b },
      { version: call },
      { version: systemPromptVersion(s1, 'You are a coding agent.') },
    ]);
    const parts = steps.map(
      (step) => ({ op: 'put', doc: toStepParts(step).part, validTime: new Date(step.at) }) as const,
    );
    const heads = [
      { version: chatVersion(s1, turns), marks: { upto: 4 } },
      { version: sessionVersion(s1, sets), marks: { upto: 4, epoch: 1 } },
    ].flatMap((put) => store.putOps(put));
    expect((await xtdb.execute([...parts, ...heads])).outcome).toBe('committed');
  });

  afterAll(async () => {
    await store.close();
    await xtdb.close();
  });

  test.each(Object.entries(HASHES))('%s has the hashes sealed by hand', async (id, [metadata, object]) => {
    const found = await (await store.now()).get(id);
    expect(found?.version.metadata_hash).toBe(metadata);
    expect(found?.version.object_hash).toBe(object);
  });

  test('chat and session have exactly the keys of the SSOT and their folded fields [§2.2, §2.6]', async () => {
    const found = await (await store.now()).getMany(['chat:s1', 'session:s1']);
    expect(found.get(chatObjectId(s1))?.version).toEqual({
      'xt/id': 'chat:s1',
      type: 'chat',
      source: null,
      content: null,
      turns: [
        {
          turn: 1,
          messages: [
            { role: 'user', text: 'read a.ts' },
            { role: 'assistant', text: 'Reading it.', toolcall_refs: ['call_1'] },
            { role: 'assistant', text: 'Done.' },
          ],
        },
      ],
      session_ref: 'session:s1',
      turn_count: 1,
      toolcall_refs: ['call_1'],
      identity_hash: 'c2ab302b647648812a4ab1350f6671e7be7e6bdd6d955a3fcf762b1d41564e9c',
      file_hash: null,
      content_hash: null,
      metadata_hash: HASHES['chat:s1']?.[0],
      object_hash: HASHES['chat:s1']?.[1],
    });
    const session = found.get(sessionObjectId(s1))?.version;
    expect(session).toMatchObject({
      session_index: [aId, bId, 'call_1'],
      metadata_pool: [aId, bId, 'call_1'],
      active_set: [aId, 'call_1'],
      pinned_set: [],
    });
    expect(Object.keys(session ?? {})).toHaveLength(16);
  });

  test('an unknown id is a value, not an error', async () => {
    expect(await (await store.now()).get('nothing:here' as ObjectId)).toBeUndefined();
  });

  test('parts are not objects [decision G6]', async () => {
    expect(await (await store.now()).get('step:s1:1')).toBeUndefined();
  });
});
