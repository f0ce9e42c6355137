import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { conversation } from '../../../src/page/server/conversation.js';
import { fileAuthors, staleCalls } from '../../../src/page/server/file-authors.js';
import { RecordingLines, replay, reviewedRecordings } from '../../support/replays.js';

describe('a file whose lines two reads show differently', () => {
  let room: Awaited<ReturnType<typeof reviewedRecordings>>;
  let timeline: Timeline;
  let session: string;

  beforeAll(async () => {
    room = await reviewedRecordings();
    const edit = { file_path: '/p/a.ts', old_string: 'none', new_string: 'some' };
    const lines = new RecordingLines()
      .user('Mend it.')
      .calls('c1', 'Bash', { command: "sed -n '1,3p' a.ts" })
      .answers('c1', 'one\ntwo\nthree')
      .calls('c2', 'Bash', { command: "sed -n '2,4p' a.ts" })
      .answers('c2', 'zwei\nthree\nfour')
      .calls('c3', 'Edit', edit)
      .answers('c3', 'String to replace not found in file.', { failed: true })
      .calls('c4', 'Bash', { command: "sed -n '1,2p' b.ts" })
      .answers('c4', 'one\ntwo')
      .calls('c5', 'Edit', { ...edit, file_path: '/p/missing.ts' })
      .answers('c5', 'File does not exist.', { failed: true })
      .says('I give up.');
    ({ session = '' } = (await replay(await room.recordings.write('outside.jsonl', lines.text))).sessions[0] ?? {});
    timeline = await Timeline.open(room.reviewer.store);
  });
  afterAll(() => room.close());

  test('has a change by an unknown author before the read of the new text', async () => {
    const { unrecorded } = await fileAuthors(timeline, session, '/p/a.ts');
    expect(unrecorded.map(({ is_sure: isSure, by }) => [isSure, by.kind, by.why])).toEqual([
      [
        true,
        'unknown',
        expect.stringMatching(/^Line 2 had another text when it was .* read the new text in turn 1\.$/),
      ],
    ]);
    expect((await fileAuthors(timeline, session, '/p/b.ts')).unrecorded).toEqual([]);
  });

  test('has no call on a stale copy if none edited it between the two reads', async () => {
    const { calls, outside, verdict } = await staleCalls(timeline, session);
    expect([calls, verdict]).toEqual([[], expect.stringContaining('No call acted on a stale copy of them')]);
    expect(outside).toMatchObject([{ name: expect.stringContaining('a.ts'), lines: { from: 2, to: 2 } }]);
    const { rows } = await conversation(timeline, { session, limit: 100 });
    const notes = rows.flatMap((row) => (row.kind === 'call' ? row.notes : []));
    expect(notes).toEqual([expect.stringMatching(/^\/p\/a\.ts: lines 2–2 had another text/)]);
  });

  test('lists a failed edit among its calls, and no file that only a failed edit names', async () => {
    const { calls } = await fileAuthors(timeline, session, '/p/a.ts');
    expect(calls.map(({ effect, failed }) => [effect, failed])).toEqual([
      ['read', false],
      ['read', false],
      ['tried to change', true],
    ]);
    const { rows } = await conversation(timeline, { session, limit: 100 });
    const files = rows.flatMap((row) => (row.kind === 'call' && row.failed ? row.files : []));
    expect(files[0]).toMatchObject({ name: '/p/a.ts', effect: 'tried to change' });
    await expect(fileAuthors(timeline, session, '/p/missing.ts')).rejects.toThrow('missing.ts');
  });
});

test('a call that tried to edit a file between two such reads may have acted on a stale copy', async () => {
  const room = await reviewedRecordings();
  try {
    const lines = new RecordingLines()
      .user('Mend it.')
      .calls('c1', 'Bash', { command: "sed -n '1,3p' a.ts" })
      .answers('c1', 'one\ntwo\nthree')
      .calls('c2', 'Edit', { file_path: '/p/a.ts', old_string: 'none', new_string: 'some' })
      .answers('c2', 'String to replace not found in file.', { failed: true })
      .calls('c3', 'Bash', { command: "sed -n '2,4p' a.ts" })
      .answers('c3', 'zwei\nthree\nfour');
    const { session = '' } = (await replay(await room.recordings.write('tried.jsonl', lines.text))).sessions[0] ?? {};
    const { verdict } = await staleCalls(await Timeline.open(room.reviewer.store), session);
    expect(verdict).toMatch(/stale copy of them is not recorded:$/);
  } finally {
    await room.close();
  }
});

describe('a file that a command put back, and whose lines are read before its whole text', () => {
  let room: Awaited<ReturnType<typeof reviewedRecordings>>;
  beforeAll(async () => {
    room = await reviewedRecordings();
  });
  afterAll(() => room.close());

  /**
   * Replays an edit and a command. Then one read shows lines of the earlier text, and another shows
   * all of it.
   */
  async function timelineAfter(command: string) {
    const lines = new RecordingLines()
      .user('Mend it.')
      .reads('c1', '/p/a.ts', 'one\ntwo\n')
      .calls('c2', 'Edit', { file_path: '/p/a.ts', old_string: 'two', new_string: 'zwei' })
      .answers('c2', 'The file has been updated.')
      .calls('c3', 'Bash', { command: "sed -n '1,2p' a.ts" })
      .answers('c3', 'one\nzwei')
      .calls('c4', 'Bash', { command })
      .answers('c4', '')
      .calls('c5', 'Bash', { command: "sed -n '1,2p' a.ts" })
      .answers('c5', 'one\ntwo')
      .reads('c6', '/p/a.ts', 'one\ntwo\n');
    const { session = '' } = (await replay(await room.recordings.write('back.jsonl', lines.text))).sessions[0] ?? {};
    return [await Timeline.open(room.reviewer.store), session] as const;
  }

  test('is the change of that command alone, for the file and for the session', async () => {
    const [timeline, session] = await timelineAfter('git checkout -q .');
    const { versions, unrecorded } = await fileAuthors(timeline, session, '/p/a.ts');
    expect([versions.at(-1)?.by.why, unrecorded]).toEqual([
      expect.stringMatching(/^Back to version 1 by bash git/),
      [],
    ]);
    const { outside, verdict } = await staleCalls(timeline, session);
    expect([outside, verdict]).toEqual([[], expect.stringMatching(/^No call acted on a stale copy/)]);
  });

  test('is one change from outside without such a command', async () => {
    const [timeline, session] = await timelineAfter('npm run format');
    const { versions, unrecorded } = await fileAuthors(timeline, session, '/p/a.ts');
    expect([versions.at(-1)?.by.kind, unrecorded]).toEqual(['unknown', []]);
    expect((await staleCalls(timeline, session)).outside).toMatchObject([{ lines: { from: 2, to: 2 } }]);
  });
});
