import { describe, expect, test } from '@jest/globals';
import { headsAt } from '../../../../src/client/delivery/session-heads.js';
import type { SessionWrite } from '../../../../src/client/delivery/session-write.js';
import { StoredCall } from '../../../../src/client/delivery/stored-call.js';
import { decodeWrite, encodeWrite } from '../../../../src/client/delivery/write-record.js';
import { decodePayload, encodePayload } from '../../../../src/journal/payload.js';
import type { Json } from '../../../../src/objects/canonical-json.js';
import { hashText } from '../../../../src/objects/hashes.js';
import { canonicalPath, chatObjectId, filesystemId, objectId, sessionId } from '../../../../src/objects/ids.js';
import { EMPTY_SETS } from '../../../../src/objects/sets.js';
import { chatVersion, sessionVersion, systemPromptVersion, toolcallVersion } from '../../../../src/objects/versions.js';
import { planMessage } from '../../../../src/session/plan-step.js';
import { applyStep, emptySession } from '../../../../src/session/session-state.js';
import { DEFAULT_POLICY } from '../../../../src/session/step-policy.js';
import { storedPut } from '../../../../src/store/object-store.js';
import { toSnapshotPart } from '../../../../src/store/step-part.js';

const SID = sessionId('s1');
const SECRET = 'a message that belongs to its step alone';
const step = planMessage(emptySession(SID), { message: { role: 'user', text: SECRET }, at: 1_000 }, DEFAULT_POLICY);
const state = applyStep(emptySession(SID), step);
const prompt = storedPut({ version: systemPromptVersion(SID, 'p'.repeat(600_000)), validTime: new Date(7) });
const write: SessionWrite = {
  session: SID,
  lease: null,
  files: [],
  heads: [...headsAt(state, { at: 5, term: 1 }).puts, prompt],
  at: 5,
};

const bytesOf = (value: Json): Uint8Array => Buffer.concat(encodePayload(value));
type Record1 = { heads: { head: Record<string, unknown>; texts?: { text?: string }[] }[] };

describe('the record of a write', () => {
  test('reads back as an equal write, also with a prompt of several chunks', () => {
    expect(decodeWrite(decodePayload(bytesOf(encodeWrite(write))))).toEqual(write);
  });

  test('restores what a context showed of files, with the chunks of large ones', () => {
    const source = { type: 'filesystem', filesystemId: filesystemId('fs'), path: canonicalPath('/a') } as const;
    const large = {
      kind: 'large-text',
      fileHash: hashText('ab'),
      size: 2,
      mtimeMs: 1,
      content: 'ab',
      length: 2,
    } as const;
    const shown = [
      { file: { kind: 'read', source, reading: { kind: 'missing' } }, at: 3 },
      { file: { kind: 'read', source, reading: { ...large, chunks: () => ['a', 'b'] } }, at: 4 },
    ] as const;
    const [gone, whole] = decodeWrite(decodePayload(bytesOf(encodeWrite({ ...write, shown })))).shown ?? [];
    expect(gone).toEqual(shown[0]);
    expect(whole).toMatchObject({ at: 4, file: { reading: large } });
    const read = whole?.file as (typeof shown)[1]['file'];
    expect([...read.reading.chunks()]).toEqual(['a', 'b']);
  });

  describe('the write record of a call', () => {
    const made = {
      id: objectId('c1'),
      tool: 'read',
      args: { path: 'a' },
      argsDisplay: 'a',
      status: 'ok',
      chatRef: chatObjectId(SID),
      fileRefs: [objectId('f'.repeat(64))],
      content: 'x'.repeat(5_000),
    } as const;
    const wholeText = { hash: hashText('whole'), text: 'whole' };
    const call = new StoredCall({ made, wholeText });

    test('stores no hash that follows from the call, and restores an equal version', () => {
      const bytes = Buffer.from(bytesOf(encodeWrite({ ...write, call })));
      const { content_hash, identity_hash, metadata_hash, object_hash } = call.version;
      for (const hash of [content_hash, identity_hash, metadata_hash, object_hash])
        expect(bytes.includes(String(hash))).toBe(false);
      expect(encodeWrite({ ...write, call })).toMatchObject({ format: 3 });
      expect(encodeWrite(write)).toMatchObject({ format: 2 });
      const decoded = decodeWrite(decodePayload(bytes)).call;
      expect(decoded?.record).toEqual({ made, wholeText });
      expect(decoded?.version).toEqual(toolcallVersion(made));
    });

    test('reads the previous format, which stored the version, and refuses it with a changed hash', () => {
      const version = toolcallVersion(made);
      const old = {
        ...(encodeWrite(write) as { [key: string]: Json }),
        format: 2,
        call: { version, wholeText },
      } as unknown as Json;
      const decoded = decodeWrite(decodePayload(bytesOf(old))).call;
      expect(decoded?.record).toEqual({ made, wholeText });
      expect(decoded?.version).toEqual(version);
      const damaged = {
        ...(old as object),
        call: { version: { ...version, content_hash: 'f'.repeat(64) } },
      } as unknown as Json;
      expect(() => decodeWrite(damaged)).toThrow(expect.objectContaining({ code: 'hash-mismatch' }));
    });

    test.each<[string, Json, string]>([
      ['neither a call nor a version', {}, 'call'],
      ['a status that no call has', { made: { ...made, status: 'late' } }, 'call.made.status'],
    ])('is refused with %s', (_what, odd, place) => {
      const record = { ...(encodeWrite(write) as { [key: string]: Json }), call: odd };
      expect(() => decodeWrite(record)).toThrow(
        expect.objectContaining({ code: 'bad-payload', message: expect.stringContaining(`(${place}: `) }),
      );
    });
  });

  test('stores no chat text that its steps store', () => {
    expect(Buffer.from(bytesOf(encodeWrite(write))).includes(SECRET)).toBe(false);
  });

  test('reads its first format: whole versions with their turns', () => {
    const { heads, ...rest } = write;
    const versions = [
      { version: chatVersion(SID, state.turns), marks: { upto: 1 }, validTime: 5 },
      { version: sessionVersion(SID, state.sets), marks: { epoch: 1, upto: 1 }, validTime: 5 },
      { version: systemPromptVersion(SID, 'p'.repeat(600_000)), validTime: 7 },
    ];
    const old = { ...rest, format: 1, heads: versions } as unknown as Json;
    expect(decodeWrite(decodePayload(bytesOf(old)))).toEqual({ ...rest, heads });
  });

  test('uses today’s part ids for a record from before data format 2', () => {
    const snapshot = toSnapshotPart({ session: SID, seq: 100, sets: EMPTY_SETS, indexedBefore: 0 });
    const now = { ...write, snapshot };
    const text = JSON.stringify(encodeWrite(now));
    const former = text.replaceAll(/((?:snapshot|chunks?):[^"]*)~"/g, '$1"');
    expect(former.length).toBeLessThan(text.length);
    expect(decodeWrite(JSON.parse(former) as Json)).toEqual(now);
  });

  test.each<[string, (record: Record1) => void]>([
    ['a hash', ({ heads: [chat] }) => Object.assign(chat?.head ?? {}, { metadata_hash: 'f'.repeat(64) })],
    ['a text', ({ heads }) => Object.assign(heads[2]?.texts?.[1] ?? {}, { text: 'q' })],
  ])('is refused with %s changed', (_what, change) => {
    const record = structuredClone(decodePayload(bytesOf(encodeWrite(write)))) as unknown as Record1;
    change(record);
    expect(() => decodeWrite(record as unknown as Json)).toThrow(expect.objectContaining({ code: 'hash-mismatch' }));
  });

  const fields = encodeWrite(write) as { [key: string]: Json };

  test('is refused in the format of a later version', () => {
    expect(() => decodeWrite({ ...fields, format: 99 })).toThrow(
      expect.objectContaining({ name: 'JournalError', code: 'newer-format' }),
    );
  });

  test.each<[string, { [key: string]: Json }, string]>([
    ['no format', { format: null }, 'format'],
    ['a step without a number', { step: { session: 's1', turn: 1, at: 1, changes: {} } }, 'step.seq'],
    ['a file of an unknown kind', { files: [{ kind: 'heard-of' }] }, 'files.0.kind'],
    ['a head that is none', { heads: [{ head: 'h' }] }, 'heads.0.head'],
  ])('is refused with %s and names the place', (_what, change, place) => {
    const refused = expect.objectContaining({
      name: 'JournalError',
      code: 'bad-payload',
      message: expect.stringContaining(`(${place}: `),
    });
    expect(() => decodeWrite({ ...fields, ...change })).toThrow(refused);
  });

  test('keeps every field of a step, also unknown ones', () => {
    const odd = { ...step, later: { a: 1 } } as unknown as NonNullable<SessionWrite['step']>;
    expect(decodeWrite(decodePayload(bytesOf(encodeWrite({ ...write, step: odd }))))).toEqual({ ...write, step: odd });
  });
});
