import { describe, expect, test } from '@jest/globals';
import { QuestionQueue } from '../../../src/http/question-queue.js';
import { ALL_OPERATIONS } from '../../support/contracts.js';

/** Requests that are answered on the test's command. */
function desk(running: number, waiting: number) {
  const queue = new QuestionQueue({ running, waiting });
  const asked: string[] = [];
  const answers = new Map<string, Pending>();
  const ask = (name: string, gone: AbortSignal = new AbortController().signal) =>
    queue.run(
      () =>
        new Promise<string>((resolve, reject) => {
          asked.push(name);
          answers.set(name, { resolve: () => resolve(name), reject });
        }),
      gone,
    );
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    ask,
    asked,
    turn,
    answer: (name: string) => answers.get(name)?.resolve(),
    fail: (name: string, error: Error) => answers.get(name)?.reject(error),
  };
}

interface Pending {
  resolve(): void;
  reject(error: Error): void;
}

describe('the request queue', () => {
  test('runs and queues a limited number in order, and asks one more to retry', async () => {
    const { ask, asked, turn, answer } = desk(2, 2);
    const all = ['a', 'b', 'c', 'd'].map((name) => ask(name));
    await expect(ask('e')).rejects.toMatchObject({
      code: 'too-many-questions',
      message: expect.stringContaining('2 are waiting'),
    });
    await turn();
    expect(asked).toEqual(['a', 'b']);
    answer('b');
    await turn();
    expect(asked).toEqual(['a', 'b', 'c']);
    const later = ask('f');
    for (const name of ['a', 'c']) answer(name);
    await turn();
    for (const name of ['d', 'f']) answer(name);
    expect(await Promise.all([...all, later])).toEqual(['a', 'b', 'c', 'd', 'f']);
  });

  test('drops a waiting client that leaves and frees its place at once', async () => {
    const { ask, asked, turn, answer } = desk(1, 1);
    const gone = new AbortController();
    const first = ask('a');
    const left = ask('b', gone.signal);
    await expect(ask('c')).rejects.toMatchObject({ code: 'too-many-questions' });
    gone.abort();
    const next = ask('d');
    await expect(ask('e')).rejects.toMatchObject({ code: 'too-many-questions' });
    await turn();
    answer('a');
    await turn();
    answer('d');
    expect(await Promise.all([first, left, next])).toEqual(['a', undefined, 'd']);
    expect(asked).toEqual(['a', 'd']);
  });

  test('keeps the place of a running client that leaves until its work ends, and counts it once', async () => {
    const { ask, turn, answer } = desk(1, 0);
    const gone = new AbortController();
    const first = ask('a', gone.signal);
    await turn();
    gone.abort();
    await expect(ask('b')).rejects.toMatchObject({ code: 'too-many-questions' });
    answer('a');
    await first;
    const second = ask('c');
    await expect(ask('d')).rejects.toMatchObject({ code: 'too-many-questions' });
    await turn();
    answer('c');
    expect(await second).toBe('c');
  });

  test('frees the place of a failed request', async () => {
    const { ask, turn, answer, fail } = desk(1, 0);
    const first = ask('a');
    await turn();
    fail('a', new Error('no answer'));
    await expect(first).rejects.toThrow('no answer');
    const second = ask('b');
    await turn();
    answer('b');
    expect(await second).toBe('b');
  });
});

test('queues requests that read a whole session', () => {
  const whole: readonly (keyof typeof ALL_OPERATIONS)[] = [
    'listSessions',
    'getAmplifierMessages',
    'viewAmplifierMessages',
    'promptOfTyrum',
    'getTyrumState',
  ];
  const queued = Object.entries(ALL_OPERATIONS).flatMap(([id, operation]) =>
    'kind' in operation && operation.kind !== undefined ? [id] : [],
  );
  expect(queued).toEqual(whole);
});
