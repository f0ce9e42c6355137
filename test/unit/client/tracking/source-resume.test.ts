import { describe, expect, test } from '@jest/globals';
import type { KnownFile } from '../../../../src/client/tracking/reconcile-sources.js';
import { SourceResume, type SourceResumeOptions } from '../../../../src/client/tracking/source-resume.js';
import { canonicalPath, filesystemId, type ObjectId } from '../../../../src/objects/ids.js';
import { filesystemSource } from '../../../../src/objects/source.js';

const host = filesystemId('host');
const fileOf = (id: ObjectId): KnownFile => ({
  id,
  source: filesystemSource(host, canonicalPath(`/${id}`)),
  fileHash: null,
  gone: false,
});
const ids = (...names: readonly string[]) => names as readonly string[] as readonly ObjectId[];

interface Part {
  readonly names: readonly string[];
  readonly signal: AbortSignal;
  progress(done: number): void;
  end(error?: Error): void;
}

/** A resume whose parts the test ends by hand. Ids that begin with `call` are not files. */
function resumeByHand(options: Partial<SourceResumeOptions> = {}) {
  const parts: Part[] = [];
  const progress: (readonly [number, number])[] = [];
  const failures: unknown[] = [];
  let ends = 0;
  const resume = new SourceResume({
    filesOf: (wanted) => wanted.filter((id) => !id.startsWith('call')).map(fileOf),
    indexChanges: (known, { signal, onProgress }) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error): void => (error === undefined ? resolve() : reject(error));
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        parts.push({ names: known.map(({ id }) => id), signal, progress: onProgress, end });
      }),
    onProgress: (done, total) => progress.push([done, total]),
    onFailure: (error) => failures.push(error),
    onEnd: () => {
      ends += 1;
    },
    ...options,
  });
  return { resume, parts, progress, failures, ends: () => ends };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the sources of a session that is resumed [§3.6]', () => {
  test('are taken in part by part as they become known; progress is reported once their number is known', async () => {
    const { resume, parts, progress, ends } = resumeByHand();
    resume.take(ids('a', 'call-1', 'b'));
    await turn();
    expect(parts.map(({ names }) => names)).toEqual([['a', 'b']]);
    parts[0]?.progress(1);
    resume.take(ids('c', 'd'));
    await turn();
    expect(parts).toHaveLength(1);
    expect(progress).toEqual([]);
    const inTime = resume.within(10_000);
    expect(progress).toEqual([[1, 4]]);
    parts[0]?.progress(2);
    parts[0]?.end();
    await turn();
    parts[1]?.progress(2);
    expect(ends()).toBe(0);
    parts[1]?.end();
    expect(await inTime).toBe(true);
    expect(progress).toEqual([
      [1, 4],
      [2, 4],
      [4, 4],
    ]);
    expect(ends()).toBe(1);
  });

  test('are complete at once if there are none', async () => {
    const { resume, parts, progress, ends } = resumeByHand();
    resume.take(ids('call-1'));
    expect(await resume.within(10_000)).toBe(true);
    expect([parts, progress, ends()]).toEqual([[], [], 1]);
  });

  test('continue in the background after the limit', async () => {
    const { resume, parts, ends } = resumeByHand();
    resume.take(ids('a'));
    expect(await resume.within(5)).toBe(false);
    expect(ends()).toBe(0);
    parts[0]?.end();
    await resume.ended;
    await turn();
    expect(ends()).toBe(1);
  });

  test('are taken in despite a failing part, whose failure is reported', async () => {
    const { resume, parts, failures } = resumeByHand();
    resume.take(ids('a'));
    resume.take(ids('b'));
    const inTime = resume.within(10_000);
    await turn();
    parts[0]?.end(new Error('no database'));
    await turn();
    parts[1]?.end();
    expect(await inTime).toBe(true);
    expect(failures).toEqual([new Error('no database')]);
  });

  test('are dropped silently when the session closes, also before all of them are known', async () => {
    const { resume, parts, failures, ends } = resumeByHand();
    resume.take(ids('a'));
    resume.take(ids('b'));
    await turn();
    resume.stop(new Error('closed'));
    resume.take(ids('c'));
    await resume.ended;
    expect(parts.map(({ names, signal }) => [names, signal.aborted])).toEqual([[['a'], true]]);
    expect(failures).toEqual([]);
    expect(ends()).toBe(1);
  });
});
