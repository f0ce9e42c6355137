import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type LedgerCall, UseLedger } from '../../../../src/client/session/use-ledger.js';
import { type ObjectId, objectId, sessionId } from '../../../../src/objects/ids.js';
import { applyStep, emptySession, type SessionState } from '../../../../src/session/session-state.js';

const KINDS = { file: 1, read: 1, command: 1, search: 1, edit: 1, other: 1 };
const LIFETIMES = { shown: 4, used: 4, request: 1_000, mostStretch: 1, sizePower: 0, kinds: KINDS };
const call = (id: string, content: string, more: Partial<LedgerCall> = {}): LedgerCall => ({
  id: objectId(id),
  tool: 'bash',
  args: {},
  content,
  files: [],
  ...more,
});
const text = (name: string): string => [1, 2, 3].map((n) => `line ${n} of what ${name} said to us`).join('\n');

/** A ledger and the session that follows it. */
class Session {
  readonly uses = new UseLedger(LIFETIMES);
  state: SessionState = emptySession(sessionId('a-session'));

  /** Makes one request, and the call that the model made in it. */
  take(made: LedgerCall, says = ''): void {
    this.uses.handedOut(1_000);
    if (says !== '') this.uses.spoke(says);
    this.uses.called(made);
    const read = made.files.flatMap(({ id, whole }) => (whole ? [id] : []));
    this.#step({ index: [...read, made.id], activate: [...read, made.id] }, made.id);
    const { leave, back } = this.uses.turnover(this.state);
    this.#step({ deactivate: leave, activate: back });
  }

  rest(count: number): void {
    for (let i = 0; i < count; i++) this.take(call(`rest_${this.state.seq}`, 'ok'));
  }

  active(): readonly string[] {
    return this.state.activeIds.filter((id) => !id.startsWith('rest'));
  }

  #step(
    changes: {
      readonly index?: readonly ObjectId[];
      readonly activate?: readonly ObjectId[];
      readonly deactivate?: readonly ObjectId[];
    },
    id?: ObjectId,
  ) {
    const { id: session, seq } = this.state;
    const opens = seq === 0 ? { opens: { rule: 'first-step' } as const } : {};
    this.state = applyStep(this.state, {
      session,
      seq: seq + 1,
      turn: 1,
      at: seq,
      ...opens,
      changes,
      ...(id === undefined ? {} : { call: { id } }),
    });
  }
}

describe('the ledger of uses', () => {
  test('drops a result that was not shown or quoted lately, and restores it on a quote while it is visible', () => {
    const session = new Session();
    session.take(call('one', text('one')));
    session.take(call('two', text('two')));
    session.rest(1);
    session.take(call('said', 'ok'), `I see:\n  line 2 of what one said to us`);
    session.rest(2);
    expect(session.active()).toEqual(['one', 'said']);
    session.take(call('edited', 'ok', { args: { edits: [{ oldText: 'line 3 of what two said to us' }] } }));
    expect(session.active()).toContain('two');
    session.rest(4);
    expect(session.active()).toEqual([]);
    // A new base shows active content only. A later quote comes from another source.
    session.uses.settled(session.state);
    session.take(call('late', 'ok'), text('one'));
    expect(session.active()).toEqual(['late']);
  });

  test('counts a quote of lines that a search showed after path and line number', () => {
    const session = new Session();
    const found = text('one')
      .split('\n')
      .map((line, i) => `src/a.ts:${i + 1}: ${line}`);
    session.take(call('one', found.join('\n')));
    session.rest(2);
    session.take(call('said', 'ok'), 'line 2 of what one said to us');
    session.rest(3);
    expect(session.active()).toEqual(['one', 'said']);
  });

  test('counts model calls by requests: several results of one answer have one age', () => {
    const session = new Session();
    session.take(call('one', text('one')));
    for (let i = 0; i < 20; i++) session.uses.called(call(`more_${i}`, 'ok'));
    session.rest(3);
    expect(session.active()).toEqual(['one']);
  });

  test('counts the model’s messages as calls while the harness sends its own list', () => {
    for (const kind of ['paused', 'bypassed', 'resumed'] as const) {
      const session = new Session();
      session.take(call('one', text('one')));
      session.uses.changed(kind);
      for (let i = 0; i < 4; i++) session.uses.spoke('said without our context');
      session.rest(1);
      expect([kind, session.active()]).toEqual([kind, kind === 'resumed' ? ['one'] : []]);
      // A handed-out request counts by itself again.
      session.take(call('two', text('two')));
      for (let i = 0; i < 4; i++) session.uses.spoke('said with our context');
      session.rest(1);
      expect(session.active()).toContain('two');
    }
  });

  test('drops texts twice as early after a compaction; later ones and held ones stay', () => {
    const session = new Session();
    session.take(call('old', text('old')));
    session.take(call('held', 'ok', { held: [{ id: objectId('old'), text: text('old') }] }));
    session.take(call('one', text('one')));
    session.rest(1);
    session.take(call('two', text('two')));
    session.uses.changed('compacted');
    session.take(call('three', text('three')));
    expect(session.active()).toEqual(['old', 'two', 'three']);
  });

  test('drops text that a later text repeats, unless the later one goes first', () => {
    const session = new Session();
    session.take(call('one', text('one')));
    session.take(call('again', `${text('one')}\nand a fourth line that is new`));
    expect(session.active()).toEqual(['again']);
    session.take(call('gone', 'ok', { tool: 'deactivate', dismissed: [objectId('again')] }));
    expect(session.active()).toContain('one');
    session.take(call('short', 'the same short line of output'));
    session.take(call('short_2', 'the same short line of output'));
    expect(session.active()).toEqual(expect.arrayContaining(['short', 'short_2']));
  });

  test('keeps what a verb activated, and never restores what a verb deactivated', () => {
    const session = new Session();
    session.take(call('one', text('one')));
    session.take(call('two', text('two')));
    session.take(call('held', 'ok', { tool: 'activate', held: [{ id: objectId('one'), text: text('one') }] }));
    session.take(call('gone', 'ok', { tool: 'deactivate', dismissed: [objectId('two')] }));
    session.rest(10);
    session.take(call('said', 'ok'), text('two'));
    expect(session.active()).toEqual(['one', 'said']);
  });

  test('counts a whole read or write as a display of a file, and a partial read or edit as a use', () => {
    const session = new Session();
    const file = (name: string, whole: boolean) => ({ files: [{ id: objectId('file'), text: text(name), whole }] });
    session.take(call('read', text('file'), { tool: 'read', ...file('file', true) }));
    // The file repeats the text of the read.
    expect(session.active()).toEqual(['file']);
    session.rest(2);
    session.take(call('edit', 'ok', { tool: 'edit', ...file('edited', false) }));
    session.rest(3);
    expect(session.active()).toEqual(['file', 'edit']);
    session.rest(1);
    expect(session.active()).toEqual([]);
  });

  test('leaves no trace of a step that could not be recorded', async () => {
    const texts = fc.constantFrom('one', 'two', 'three', 'four').map(text);
    const made = fc.record({
      content: texts,
      says: fc.option(texts, { nil: undefined }),
      args: fc.option(texts, { nil: {} }),
      file: fc.option(fc.constantFrom('f', 'g'), { nil: undefined }),
      whole: fc.boolean(),
      tool: fc.constantFrom('bash', 'read', 'write'),
      dismissed: fc.boolean(),
      isRefused: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(made, { minLength: 5, maxLength: 40 }), async (calls) => {
        const [session, other] = [new Session(), new Session()];
        for (const [at, { says = '', file, whole, dismissed, isRefused, ...one }] of calls.entries()) {
          const files = file === undefined ? [] : [{ id: objectId(file), text: one.content, whole }];
          const known = session.state.sets.index.slice(-1);
          const report = call(`call_${at}`, one.content, {
            ...one,
            files,
            ...(dismissed ? { dismissed: known } : { held: [] }),
          });
          if (isRefused) {
            const refused = session.uses.during(
              (uses) => {
                uses.spoke(says);
                uses.called(report);
              },
              async () => {
                session.uses.turnover(session.state);
                throw new Error('full');
              },
            );
            await expect(refused).rejects.toThrow('full');
            continue;
          }
          session.take(report, says);
          other.take(report, says);
          expect(session.state.sets).toEqual(other.state.sets);
        }
      }),
    );
  });
});
