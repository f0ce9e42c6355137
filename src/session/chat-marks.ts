import { List } from 'immutable';
import type { ObjectId } from '../objects/ids.js';
import type { Step } from '../objects/step.js';
import { defined } from '../values/defined.js';

/** What one step brought into the chat: what a harness's own history is compared with (decision F1). */
export type ChatMark = Pick<Step, 'seq' | 'turn' | 'message' | 'native' | 'event'> & { readonly call?: ObjectId };

/** The marks of a session before its first message. */
export const NO_MARKS: List<ChatMark> = List();

/** The marks after one more step; a step that only changes sets leaves none. */
export function marksAfter(marks: List<ChatMark>, { seq, turn, message, native, event, call }: Step): List<ChatMark> {
  if (message === undefined && call === undefined && event === undefined) return marks;
  return marks.push({
    seq,
    turn,
    ...defined({ message, native, event }),
    ...(call === undefined ? {} : { call: call.id }),
  });
}
