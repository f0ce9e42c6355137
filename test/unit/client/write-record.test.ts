import { describe, expect, test } from '@jest/globals';
import type { SessionWrite } from '../../../src/client/delivery/session-write.js';
import { headsAt } from '../../../src/client/delivery/turn-heads.js';
import { decodeWrite, encodeWrite } from '../../../src/client/delivery/write-record.js';
import { decodePayload, encodePayload } from '../../../src/journal/payload.js';
import type { Json } from '../../../src/objects/canonical-json.js';
import { sessionId } from '../../../src/objects/ids.js';
import { chatVersion, sessionVersion, systemPromptVersion } from '../../../src/objects/versions.js';
import { DEFAULT_POLICY, planMessage } from '../../../src/session/plan-step.js';
import { applyStep, emptySession } from '../../../src/session/session-state.js';
import { storedPut } from '../../../src/store/object-store.js';

const SID = sessionId('s1');
const SECRET = 'a message that belongs to its step alone';
const step = planMessage(emptySession(SID), { role: 'user', text: SECRET }, 1_000, DEFAULT_POLICY);
const state = applyStep(emptySession(SID), step);
const prompt = storedPut({ version: systemPromptVersion(SID, 'p'.repeat(600_000)), validTime: new Date(7) });
const write: SessionWrite = { session: SID, lease: null, files: [], heads: [...headsAt(state, undefined, 5, 1).puts, prompt], at: 5 };

const bytesOf = (value: Json): Uint8Array => Buffer.concat(encodePayload(value));
type Record1 = { heads: { head: Record<string, unknown>; texts?: { text?: string }[] }[] };

describe('the record of a write', () => {
  test('gives an equal write back, a prompt of several chunks included', () => {
    expect(decodeWrite(decodePayload(bytesOf(encodeWrite(write))))).toEqual(write);
  });

  test('holds nothing of the chat that its steps hold', () => {
    expect(Buffer.from(bytesOf(encodeWrite(write))).includes(SECRET)).toBe(false);
  });

  test('is still read in its first format, whole versions with their turns', () => {
    const { heads, ...rest } = write;
    const versions = [
      { version: chatVersion(SID, state.turns), marks: { upto: 1 }, validTime: 5 },
      { version: sessionVersion(SID, state.sets), marks: { epoch: 1, upto: 1 }, validTime: 5 },
      { version: systemPromptVersion(SID, 'p'.repeat(600_000)), validTime: 7 },
    ];
    const old = { ...rest, format: 1, heads: versions } as unknown as Json;
    expect(decodeWrite(decodePayload(bytesOf(old)))).toEqual({ ...rest, heads });
  });

  test.each<[string, (record: Record1) => void]>([
    ['a hash', ({ heads: [chat] }) => Object.assign(chat?.head ?? {}, { metadata_hash: 'f'.repeat(64) })],
    ['a text', ({ heads }) => Object.assign(heads[2]?.texts?.[1] ?? {}, { text: 'q' })],
  ])('is refused with %s changed', (_what, change) => {
    const record = structuredClone(decodePayload(bytesOf(encodeWrite(write)))) as unknown as Record1;
    change(record);
    expect(() => decodeWrite(record as unknown as Json)).toThrow(expect.objectContaining({ code: 'hash-mismatch' }));
  });

  test('is refused in a format that is not known', () => {
    expect(() => decodeWrite({ ...(encodeWrite(write) as { [key: string]: Json }), format: 99 })).toThrow(TypeError);
  });
});
