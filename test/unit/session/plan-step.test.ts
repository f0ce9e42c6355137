import { describe, expect, test } from '@jest/globals';
import { DocumentError } from '../../../src/objects/errors.js';
import { hashText } from '../../../src/objects/hashes.js';
import { objectId, sessionId } from '../../../src/objects/ids.js';
import { SessionError } from '../../../src/session/errors.js';
import { type CallPlan, planCall, planMessage, planPersonStep, type SetVerbs } from '../../../src/session/plan-step.js';
import { applyStep, emptySession, type SessionState } from '../../../src/session/session-state.js';
import { collapse, DEFAULT_POLICY, type StepPolicy } from '../../../src/session/step-policy.js';

const SID = sessionId('s1');
const ids = (...names: string[]) => names.map(objectId);

/** A session that tests drive by events. */
class Story {
  state: SessionState = emptySession(SID);
  constructor(readonly policy: StepPolicy = DEFAULT_POLICY) {}

  call(name: string, more: Partial<CallPlan> = {}): this {
    const plan: CallPlan = { call: objectId(name), at: this.state.lastAt + 1, activateFiles: [], index: [], ...more };
    this.state = applyStep(this.state, planCall(this.state, plan, this.policy));
    return this;
  }
  calls(...names: string[]): this {
    for (const name of names) this.call(name);
    return this;
  }
  user(text = 'go'): this {
    this.state = applyStep(
      this.state,
      planMessage(this.state, { message: { role: 'user', text }, at: this.state.lastAt + 1 }, this.policy),
    );
    return this;
  }
  verbs(verbs: SetVerbs): this {
    this.state = applyStep(this.state, planPersonStep(this.state, { verbs, at: this.state.lastAt + 1 }));
    return this;
  }
  get active(): string {
    return this.state.sets.active.join(' ');
  }
}

describe('a tool call as a step [§5.6, §5.7]', () => {
  test('puts its files before it in index and active set; mentioned ones stay inactive', () => {
    const [a, b, c] = ids('a', 'b', 'c1');
    const step = planCall(
      emptySession(SID),
      { call: c as never, at: 5, activateFiles: [a as never], index: [a as never, b as never] },
      DEFAULT_POLICY,
    );
    expect(step).toEqual({
      session: 's1',
      seq: 1,
      turn: 1,
      at: 5,
      opens: { rule: 'first-step' },
      call: { id: 'c1' },
      changes: { index: ['a', 'b', 'c1'], activate: ['a', 'c1'] },
    });
  });

  test('lists only its changes, and carries the proof of its answer', () => {
    const { state } = new Story().call('c1', { activateFiles: ids('a'), index: ids('a', 'b') });
    const answer = { sha256: hashText('x'), chars: 1 };
    const step = planCall(
      state,
      { call: objectId('c2'), at: 9, activateFiles: ids('a'), index: ids('b', 'a'), answer },
      DEFAULT_POLICY,
    );
    expect([step.changes, step.call]).toEqual([
      { index: ['c2'], activate: ['c2'] },
      { id: 'c2', answer },
    ]);
    expect(planPersonStep(state, { verbs: { unpin: ids('a'), deactivate: ids('b') }, at: 10 }).changes).toEqual({});
  });

  test('refuses a repeated id, and keeps infrastructure objects out of the sets', () => {
    const { state } = new Story().call('c1', { index: ids('a') });
    const codeOf = (act: () => unknown) => {
      try {
        act();
      } catch (error) {
        return (error as SessionError).code;
      }
      return undefined;
    };
    const call = (name: string, index: string[] = []) =>
      planCall(state, { call: objectId(name), at: 9, activateFiles: [], index: ids(...index) }, DEFAULT_POLICY);
    expect(codeOf(() => call('c1'))).toBe('repeated-call');
    expect(codeOf(() => call('a'))).toBe('repeated-call');
    expect(codeOf(() => call('session:s1'))).toBe('infrastructure-object');
    expect(codeOf(() => call('c2', ['chat:s1']))).toBe('infrastructure-object');
    expect(codeOf(() => planPersonStep(state, { verbs: { pin: ids('system_prompt:s1') }, at: 9 }))).toBe(
      'infrastructure-object',
    );
    expect(codeOf(() => planPersonStep(state, { verbs: { activate: ids('missing') }, at: 9 }))).toBe('unknown-object');
  });

  test('never moves time back, even if the clock does; numbers order steps of one millisecond (decision F7)', () => {
    const { state } = new Story().call('c1', { at: 100 });
    const at = (moment: number) =>
      planCall(state, { call: objectId('c2'), at: moment, activateFiles: [], index: [] }, DEFAULT_POLICY).at;
    expect([at(100), at(7), at(101), at(500)]).toEqual([100, 100, 101, 500]);
  });

  test('applies removals before additions', () => {
    const story = new Story().call('c1', { activateFiles: ids('a', 'b'), index: ids('a', 'b') });
    expect(story.verbs({ activate: ids('a'), deactivate: ids('a') }).active).toBe('b c1 a');
  });
});

describe('messages as steps (decision B6)', () => {
  test('refuse text that cannot be stored exactly, and lists of calls', () => {
    const state = emptySession(SID);
    expect(() => planMessage(state, { message: { role: 'user', text: 'a\ud800' }, at: 1 }, DEFAULT_POLICY)).toThrow(
      DocumentError,
    );
    expect(() =>
      planMessage(state, { message: { role: 'assistant', text: '', toolcall_refs: ids('c1') }, at: 1 }, DEFAULT_POLICY),
    ).toThrow(SessionError);
  });
});

describe('the start of a turn (decision B7)', () => {
  const rules = (story: Story) => [story.state.turn, story.state.turnRule, story.state.turnRef];

  test('is every user message; after the first one, nothing else starts a turn', () => {
    const story = new Story().user().call('c1').call('c2', { at: 1e9 }).call('c3', { at: 2e9, turnRef: 't9' });
    expect(rules(story)).toEqual([1, 'user-message', undefined]);
    expect(rules(story.user())).toEqual([2, 'user-message', undefined]);
  });

  test("follows the client's turn id if it sends one", () => {
    const story = new Story().call('c1', { turnRef: 't1' }).call('c2', { turnRef: 't1', at: 1e9 });
    expect(rules(story)).toEqual([1, 'client-turn', 't1']);
    expect(rules(story.call('c3', { turnRef: 't2' }))).toEqual([2, 'client-turn', 't2']);
    expect(rules(story.call('c4'))).toEqual([2, 'client-turn', 't2']);
  });

  test('is otherwise the first call after a pause; a call that runs for minutes is not a pause', () => {
    const story = new Story().call('c1', { at: 1000 }).call('c2', { at: 60_999 });
    expect(rules(story)).toEqual([1, 'first-step', undefined]);
    expect(rules(story.call('c3', { at: 500_000, startedAt: 61_000 }))).toEqual([1, 'first-step', undefined]);
    expect(rules(story.call('c4', { at: 560_000 }))).toEqual([2, 'pause', undefined]);
  });

  test('is never an assistant message, except as the very first step', () => {
    const first = planMessage(
      emptySession(SID),
      { message: { role: 'assistant', text: 'hello' }, at: 1 },
      DEFAULT_POLICY,
    );
    expect(first.opens).toEqual({ rule: 'first-step' });
    const { state } = new Story().user();
    expect(
      planMessage(state, { message: { role: 'assistant', text: 'hello' }, at: 9 }, DEFAULT_POLICY).opens,
    ).toBeUndefined();
  });
});

describe('the window of auto-collapse (§4.3, decision D4)', () => {
  test('keeps the newest five results of a turn', () => {
    const story = new Story().user().calls('r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7');
    expect(story.active).toBe('r3 r4 r5 r6 r7');
  });

  test('reaches three turns back, the running one included, with five of each', () => {
    const story = new Story();
    for (const turn of ['a', 'b', 'c']) story.user().calls(...[1, 2, 3, 4, 5, 6].map((n) => turn + n));
    expect(story.active).toBe('a2 a3 a4 a5 a6 b2 b3 b4 b5 b6 c2 c3 c4 c5 c6');
    expect(story.user().active).toBe('b2 b3 b4 b5 b6 c2 c3 c4 c5 c6');
  });

  test('never drops files or pinned results, drops unpinned ones, and counts pinned results in their turn', () => {
    const story = new Story()
      .user()
      .call('r1', { activateFiles: ids('f'), index: ids('f') })
      .verbs({ pin: ids('r1') });
    story.calls('r2', 'r3', 'r4', 'r5', 'r6', 'r7');
    expect(story.active).toBe('f r1 r3 r4 r5 r6 r7');
    // A person's change leaves the window unchanged. The agent's next step applies the window.
    expect(story.verbs({ unpin: ids('r1') }).active).toBe('f r1 r3 r4 r5 r6 r7');
    expect(story.call('r8').active).toBe('f r4 r5 r6 r7 r8');
  });

  test('never restores what the agent deactivated, and counts it', () => {
    const story = new Story()
      .user()
      .calls('r1', 'r2', 'r3', 'r4', 'r5')
      .verbs({ deactivate: ids('r5') });
    expect(story.active).toBe('r1 r2 r3 r4');
    expect(story.call('r6').active).toBe('r2 r3 r4 r6');
  });

  test('treats an explicit activation as fresh in the running turn', () => {
    const story = new Story().user().calls('old').user().user().user();
    expect(story.active).toBe('');
    story.verbs({ activate: ids('old') }).calls('n1', 'n2', 'n3', 'n4');
    expect(story.active).toBe('old n1 n2 n3 n4');
    expect(story.call('n5').active).toBe('n1 n2 n3 n4 n5');
    story.verbs({ activate: ids('n1') }).calls('n6', 'n7', 'n8', 'n9');
    expect(story.active).toBe('n1 n6 n7 n8 n9');
  });

  test('keeps other numbers if configured, and nothing if all are zero', () => {
    const two = new Story({ ...DEFAULT_POLICY, window: { perTurn: 2, turns: 1 } }).user().calls('r1', 'r2', 'r3');
    expect([two.active, two.user().active]).toEqual(['r2 r3', '']);
    const none = new Story({ ...DEFAULT_POLICY, window: { perTurn: 0, turns: 3 } })
      .user()
      .call('r1', { activateFiles: ids('f'), index: ids('f') });
    expect(none.active).toBe('f');
    expect(new Story({ ...DEFAULT_POLICY, window: { perTurn: 5, turns: 0 } }).user().call('r1').active).toBe('');
  });

  test('is applied after each planned step', () => {
    const story = new Story().user().calls('r1', 'r2', 'r3', 'r4', 'r5', 'r6').user().user();
    expect(collapse(story.state, DEFAULT_POLICY.window)).toEqual([]);
    expect(collapse(story.state, { perTurn: 4, turns: 3 })).toEqual(['r2']);
  });
});
