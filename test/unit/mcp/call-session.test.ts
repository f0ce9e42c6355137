import { describe, expect, test } from '@jest/globals';
import { callHints } from '../../../src/mcp/call-session.js';

describe('what a client says of a call in its _meta (decisions B2, B7)', () => {
  test('Codex names thread, call and turn', () => {
    const meta = { threadId: 't-1', callId: 'call_7', 'x-codex-turn-metadata': { turn_id: 'u-2', model: 'm' }, progressToken: 3 };
    expect(callHints(meta)).toEqual({ thread: 't-1', callId: 'call_7', turnRef: 'u-2' });
  });

  test('turn metadata may come as JSON text', () => {
    expect(callHints({ 'x-codex-turn-metadata': '{"turn_id":"u-2","thread_id":"t-1"}' })).toEqual({ thread: 't-1', turnRef: 'u-2' });
  });

  test.each([
    [{}],
    [{ threadId: 5, callId: '', turnId: null }],
    [{ 'x-codex-turn-metadata': 'no json' }],
    [{ 'x-codex-turn-metadata': '[1]' }],
    [{ threadId: 'x'.repeat(181) }],
    [{ callId: '\ud800' }],
  ])('anything else says nothing: %j', (meta) => {
    expect(callHints(meta)).toEqual({});
  });
});
