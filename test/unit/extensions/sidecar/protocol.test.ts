import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { LoopContext } from '../../../../src/extensions/loop/loop-context.js';
import { withoutRepeats, withRepeats } from '../../../../src/extensions/sidecar/protocol.js';

const long = fc.constantFrom('x'.repeat(80), 'y'.repeat(100), `x${'z'.repeat(90)}`);
const text = fc.oneof(
  fc.string(),
  long,
  fc.tuple(long, fc.string()).map(([one, two]) => one + two),
);
const message = fc.record({
  section: fc.constantFrom('pool', 'chat', 'active'),
  role: fc.constant('user'),
  parts: fc.array(fc.record({ id: fc.string(), text }), { maxLength: 6 }),
});
const context = fc.record({
  session: fc.constant('s'),
  from: fc.nat(),
  before: fc.array(message, { maxLength: 3 }),
  inserts: fc.array(fc.record({ index: fc.nat(), message }), { maxLength: 3 }),
  after: fc.array(message, { maxLength: 3 }),
  references: fc.constant([]),
  pool: fc.nat(),
  active: fc.nat(),
});

describe('contexts on the pipe', () => {
  test('a list comes out as it went in, with any repetition of the previous one', () => {
    fc.assert(
      fc.property(fc.array(context, { maxLength: 6 }), (contexts) => {
        let [here, there]: (readonly string[])[] = [[], []];
        for (const one of contexts) {
          const { sent, texts } = withoutRepeats(one as unknown as LoopContext, here ?? []);
          const received = withRepeats(JSON.parse(JSON.stringify(sent)), there ?? []);
          expect(received.context).toEqual(one);
          expect(received.texts).toEqual(texts);
          [here, there] = [texts, received.texts];
        }
      }),
    );
  });

  test('does not send again the parts of the previous list, or of one that was only extended', () => {
    const of = (pool: string, ...blocks: readonly string[]): LoopContext =>
      ({
        before: [{ section: 'pool', role: 'user', parts: [{ text: pool }] }],
        inserts: [],
        after: [{ section: 'active', role: 'user', parts: blocks.map((one) => ({ text: one })) }],
      }) as never;
    const [pool, block] = ['line\n'.repeat(50), 'content\n'.repeat(500)];
    const { texts } = withoutRepeats(of(pool, block), []);
    const { sent } = withoutRepeats(of(`${pool}more`, block, 'new'), texts);
    expect(sent.before[0]?.parts[0]?.text).toEqual([0, 'more']);
    expect(sent.after[0]?.parts.map((part) => part.text)).toEqual([[1], 'new']);
  });

  test('an answer that continues a missing answer is refused', () => {
    const sent = {
      before: [{ section: 'pool', role: 'user', parts: [{ text: [3] }] }],
      inserts: [],
      after: [],
    } as never;
    expect(() => withRepeats(sent, [])).toThrow(RangeError);
  });
});
