import { describe, expect, test } from '@jest/globals';
import { SessionRegistry } from '../../../../src/client/session/session-registry.js';

class Session {
  isLost = false;
  closed = 0;

  async close(): Promise<void> {
    this.closed += 1;
  }
}

function registry(): {
  readonly sessions: SessionRegistry<string, Session, string>;
  readonly opened: (readonly [string, Session])[];
} {
  const opened: (readonly [string, Session])[] = [];
  const sessions = new SessionRegistry<string, Session, string>(
    async (id, options) => {
      if (options === 'refused') throw new Error(`${id} is refused`);
      const session = new Session();
      opened.push([options, session]);
      return session;
    },
    (options) => options === 'partial',
  );
  return { sessions, opened };
}

describe('open sessions of a client', () => {
  test('open a session once for concurrent requests', async () => {
    const { sessions, opened } = registry();
    const [a, b] = await Promise.all([sessions.open('s', 'first'), sessions.open('s', 'second')]);
    expect(a).toBe(b);
    expect(opened.map(([options]) => options)).toEqual(['first']);
  });

  test('close a shared session with its last release', async () => {
    const { sessions } = registry();
    const [a, b] = await Promise.all([sessions.borrow('s', ''), sessions.borrow('s', '')]);
    await a.release();
    await a.release();
    expect(a.session.closed).toBe(0);
    expect(sessions.has('s')).toBe(true);
    await b.release();
    expect(a.session.closed).toBe(1);
    expect(sessions.has('s')).toBe(false);
  });

  test('reopen a partly opened session after it closes if a caller needs all of it; share a whole one', async () => {
    const { sessions, opened } = registry();
    const [partial, like] = [await sessions.borrow('s', 'partial'), await sessions.borrow('s', 'partial')];
    expect(like.session).toBe(partial.session);
    let whole: Session | undefined;
    const asked = sessions.borrow('s', 'whole').then((loan) => {
      whole = loan.session;
      return loan;
    });
    await partial.release();
    await new Promise((resolve) => setImmediate(resolve));
    expect(whole).toBeUndefined();
    await like.release();
    const loan = await asked;
    expect([partial.session.closed, loan.session === partial.session]).toEqual([1, false]);
    expect((await sessions.borrow('s', 'partial')).session).toBe(loan.session);
    expect(opened.map(([options]) => options)).toEqual(['partial', 'whole']);
  });

  test('forget a lost session and open a new one, which releases of the lost one do not affect', async () => {
    const { sessions } = registry();
    const lost = await sessions.borrow('s', '');
    lost.session.isLost = true;
    const fresh = await sessions.borrow('s', '');
    expect(fresh.session).not.toBe(lost.session);
    expect(lost.session.closed).toBe(1);
    await lost.release();
    expect(sessions.has('s')).toBe(true);
    expect(fresh.session.closed).toBe(0);
  });

  test('retry a session that failed to open', async () => {
    const { sessions, opened } = registry();
    await expect(sessions.borrow('s', 'refused')).rejects.toThrow('s is refused');
    await (await sessions.borrow('s', 'again')).release();
    expect(opened).toHaveLength(1);
    expect(opened[0]?.[1].closed).toBe(1);
  });

  test('reopen a closing session only after it is closed', async () => {
    const { sessions, opened } = registry();
    const session = await sessions.open('s', '');
    let finish: () => void = () => undefined;
    session.close = () =>
      new Promise((resolve) => {
        finish = resolve;
      });
    const closing = sessions.close('s', session);
    const again = sessions.open('s', 'later');
    await new Promise(setImmediate);
    expect(opened).toHaveLength(1);
    finish();
    await closing;
    expect(await again).not.toBe(session);
  });

  test('give an open session to a borrower during the last release', async () => {
    const { sessions } = registry();
    const a = await sessions.borrow('s', '');
    const [b] = await Promise.all([sessions.borrow('s', ''), a.release()]);
    expect(b.session.closed).toBe(0);
  });

  test('close sessions that are still opening, and report a failure after all are closed', async () => {
    const { sessions, opened } = registry();
    await sessions.open('a', '');
    const failing = await sessions.open('b', '');
    failing.close = () => Promise.reject(new Error('cannot'));
    void sessions.open('c', '');
    await expect(sessions.closeAll()).rejects.toThrow('cannot');
    expect(opened.map(([, session]) => session.closed)).toEqual([1, 0, 1]);
  });
});
