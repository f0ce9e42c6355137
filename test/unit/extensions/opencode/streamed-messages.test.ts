import { describe, expect, test } from '@jest/globals';
import type { OpencodeInfo, OpencodeMessage, OpencodePart } from '../../../../src/extensions/opencode/opencode1-api.js';
import { answeredList, StreamedMessages } from '../../../../src/extensions/opencode/opencode1-messages.js';

const info = (id: string, role: OpencodeInfo['role'], rest: object = {}): OpencodeInfo => ({
  id,
  sessionID: 's',
  role,
  ...rest,
});
const said = (id: string, role: OpencodeInfo['role'], rest: object = {}): OpencodeMessage => ({
  info: info(id, role, rest),
  parts: [],
});
const part = (messageID: string, id: string, text: string): OpencodePart => ({
  id,
  messageID,
  sessionID: 's',
  type: 'text',
  text,
});

describe('messages of OpenCode’s model, read from its events', () => {
  test('appear once, when the model has finished them, with their current parts', () => {
    const heard = new StreamedMessages();
    for (const text of ['Be', 'Begun.']) heard.part(part('m1', 'p1', text));
    expect(heard.completed(info('m1', 'assistant', { time: {} }))).toBeUndefined();
    const done = info('m1', 'assistant', { time: { completed: 1 } });
    expect(heard.completed(done)).toEqual({ info: done, parts: [part('m1', 'p1', 'Begun.')] });
    expect(heard.completed(done)).toBeUndefined();
  });

  test('are appended only to the list that they answer', () => {
    const own = [said('u1', 'user'), said('m1', 'assistant', { parentID: 'u1' })];
    const answer = said('m2', 'assistant', { parentID: 'u1' });
    expect(answeredList(own, answer)).toEqual([...own, answer]);
    expect(answeredList([...own, answer], answer)).toEqual([...own, answer]);
    // The user ran a command, so OpenCode inserted the user message `u2`. The list of the last
    // model call lacks it.
    expect(answeredList(own, said('m3', 'assistant', { parentID: 'u2' }))).toBeUndefined();
  });
});
