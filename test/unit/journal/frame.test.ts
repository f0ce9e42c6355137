import { expect, test } from '@jest/globals';
import { encodeFrameHeader, frameAt, frameSalt } from '../../../src/journal/frame.js';

test.each([[['a', '']], [['', 'a']], [['a', '', 'b']], [['']]])(
  'reads a frame whose payload has the parts %j',
  (texts) => {
    // Decoders return an empty result as a view of an empty buffer.
    const parts = texts.map((text) => (text === '' ? Buffer.from(new ArrayBuffer(0)) : Buffer.from(text)));
    const salt = frameSalt('a.journal');
    const length = Buffer.concat(parts).length;
    const header = { kind: 'record', length, sequence: 1, acknowledged: 0, done: 0, at: 1 } as const;
    const frame = Buffer.concat([encodeFrameHeader(header, parts, salt), ...parts]);
    expect(frameAt(frame, 0, salt)).toEqual(header);
  },
);
