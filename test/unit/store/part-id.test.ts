import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DocumentError } from '../../../src/objects/errors.js';
import {
  callSuffix,
  isInfrastructureId,
  isPartId,
  isReservedCallId,
  objectId,
  sessionId,
  sessionOfStepCall,
  stepCallId,
} from '../../../src/objects/ids.js';
import { toolcallVersion } from '../../../src/objects/versions.js';
import { formerId, partId, renewedPart } from '../../../src/store/part-id.js';
import { anyText } from '../../support/any-text.js';

const session = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,30}$/).map(sessionId);
const digest = fc.stringMatching(/^[0-9a-f]{64}$/);
const part = fc.oneof(
  fc.tuple(session, fc.nat()).map(([of, seq]) => partId('step', of, seq)),
  fc.tuple(session, fc.nat()).map(([of, seq]) => partId('snapshot', of, seq)),
  fc.tuple(session, fc.nat(), digest).map(([of, seq, hash]) => partId('assembly', of, seq, hash)),
  fc.tuple(session, digest).map(([of, hash]) => partId('record', 'report', `session:${of}`, hash)),
  digest.map((hash) => partId('chunk', hash)),
  digest.map((hash) => partId('chunks', hash)),
);
/** Texts that resemble the ids of parts. */
const given = fc.oneof(
  anyText(),
  part,
  part.map(formerId),
  fc.tuple(part, anyText()).map(([id, more]) => `${id}${more}`),
  fc.tuple(anyText(), part).map(([more, id]) => `${more}${id}`),
  fc
    .tuple(fc.constantFrom('step', 'chunk', 'chunks', 'snapshot', 'assembly', 'record'), anyText())
    .map(([kind, rest]) => `${kind}:${rest}~`),
);

function accepted(id: string): string | undefined {
  try {
    return objectId(id);
  } catch (error) {
    if (error instanceof DocumentError) return undefined;
    throw error;
  }
}

describe('the id of a part', () => {
  test('never equals an object id, for any input', () => {
    fc.assert(
      fc.property(given, part, (id, other) => accepted(id) !== other && (accepted(id) === undefined || !isPartId(id))),
    );
    fc.assert(fc.property(part, (id) => isPartId(id) && accepted(id) === undefined && !isPartId(formerId(id))));
  });

  test('cannot be sealed into a version', () => {
    const chatRef = objectId('chat:s');
    fc.assert(
      fc.property(part, (id) => {
        expect(() =>
          toolcallVersion({ id: id as never, tool: 't', args: {}, status: 'ok', chatRef, content: null }),
        ).toThrow(/names a part/);
      }),
    );
  });

  test('is unique to its part', () => {
    fc.assert(
      fc.property(
        session,
        session,
        fc.nat(),
        fc.nat(),
        (a, b, m, n) => (partId('step', a, m) === partId('step', b, n)) === (a === b && m === n),
      ),
    );
  });

  test('is upgraded from the journal of an earlier version', () => {
    fc.assert(
      fc.property(
        part,
        (id) => renewedPart({ 'xt/id': formerId(id) })['xt/id'] === id && renewedPart({ 'xt/id': id })['xt/id'] === id,
      ),
    );
  });
});

describe('call ids of a session', () => {
  test('differ from those of any other session', () => {
    fc.assert(
      fc.property(session, session, given, fc.nat(), (one, other, id, seq) => {
        fc.pre(one !== other);
        return (
          !`${id}${callSuffix(one)}`.endsWith(callSuffix(other)) && !stepCallId(one, seq).endsWith(callSuffix(other))
        );
      }),
    );
    fc.assert(fc.property(session, fc.nat(), (one, seq) => sessionOfStepCall(stepCallId(one, seq)) === one));
  });

  test.each(['session:vic', 'chat:vic', 'system_prompt:vic', 'a'.repeat(64), '/etc/passwd', 'call_1@vic', 'chunk:0~'])(
    'are replaced for %s, which could name another object',
    (id) => {
      expect(isReservedCallId(id)).toBe(true);
      expect(isInfrastructureId(`${id}${callSuffix(sessionId('s'))}~1`)).toBe(false);
    },
  );

  test.each(['call_1', 'step:vic:2', 'chunk:0', 'session:', 'functions.bash:0', 'toolu_01A'])(
    'keep the harness’s own %s',
    (id) => {
      expect(isReservedCallId(id)).toBe(false);
    },
  );
});
