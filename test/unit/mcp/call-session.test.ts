import { describe, expect, test } from '@jest/globals';
import { callHints } from '../../../src/mcp/call-session.js';

describe('a client’s data on a call in its _meta (decisions B2, B7)', () => {
  test('names thread, call and turn for Codex', () => {
    const meta = {
      threadId: 't-1',
      callId: 'call_7',
      'x-codex-turn-metadata': { turn_id: 'u-2', model: 'm' },
      progressToken: 3,
    };
    expect(callHints(meta)).toEqual({ thread: 't-1', callId: 'call_7', turnRef: 'u-2' });
  });

  test('names sandbox and workspaces for Codex', () => {
    const sandbox = (turn: object): unknown => callHints({ 'x-codex-turn-metadata': turn }).sandbox;
    expect(sandbox({ sandbox_mode: 'read-only', workspaces: { '/p': {}, relative: {} } })).toEqual({
      program: 'Codex',
      mode: 'read-only',
      workspaces: ['/p'],
    });
    expect(sandbox({ sandbox_mode: 'workspace-write', workspaces: ['/p', 5] })).toMatchObject({ workspaces: ['/p'] });
    expect(callHints({ 'codex/sandbox-state-meta': { sandboxPolicy: { type: 'read-only' } } }).sandbox).toMatchObject({
      mode: 'read-only',
    });
    expect(sandbox({ sandbox_mode: 5 })).toBeUndefined();
  });

  test('may hold turn metadata as JSON text', () => {
    expect(callHints({ 'x-codex-turn-metadata': '{"turn_id":"u-2","thread_id":"t-1"}' })).toEqual({
      thread: 't-1',
      turnRef: 'u-2',
    });
  });

  test.each([
    [{}],
    [{ threadId: 5, callId: '', turnId: null }],
    [{ 'x-codex-turn-metadata': 'no json' }],
    [{ 'x-codex-turn-metadata': '[1]' }],
    [{ threadId: 'x'.repeat(181) }],
    [{ callId: '\ud800' }],
  ])('is ignored in any other form: %j', (meta) => {
    expect(callHints(meta)).toEqual({});
  });
});
