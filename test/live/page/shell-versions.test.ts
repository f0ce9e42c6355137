import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { SessionId } from '../../../src/objects/ids.js';
import { conversation } from '../../../src/page/server/conversation.js';
import { fileAuthors, staleCalls } from '../../../src/page/server/file-authors.js';
import { sessionFigures } from '../../../src/review/money/session-figures.js';
import { askHere } from '../../support/ask-here.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { RecordingLines, replay, reviewedRecordings } from '../../support/replays.js';

const patchOf = (path: string, from: string, to: string): string =>
  `*** Begin Patch\n*** Update File: ${path}\n@@\n-${from}\n+${to}\n*** End Patch`;
const texts = ['one\nshared\n', 'two\nshared\n', 'three\nshared\n'] as const;

test('a restore writes no text that is older than the last recorded change', async () => {
  const room = await reviewedRecordings();
  const { root, remove } = await temporaryRoot();
  try {
    const lines = new RecordingLines()
      .user('Rename them.')
      .reads('c1', '/p/a.ts', texts[0])
      .reads('c2', '/p/b.ts', texts[0])
      // The recording does not show the lines that this patch replaces.
      .calls('c3', 'Bash', { command: `apply_patch <<'EOF'\n${patchOf('a.ts', 'unseen', 'five')}\nEOF` })
      .answers('c3', 'Done!')
      .reads('c4', '/p/b.ts', texts[0])
      .reads('c5', '/p/a.ts', 'five\nshared\n');
    const made = await replay(await room.recordings.write('unseen.jsonl', lines.text));
    const session = made.sessions[0]?.session ?? '';
    const restored = async (at: string, to: string) => {
      const ask = ['restore', `${session}@${at}`, '--apply', '--to', join(root, to), '--json', '--data', suiteData()];
      const { code, stdout, stderr } = await askHere(ask);
      expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
      const { files, written, not_kept: left } = JSON.parse(stdout);
      return [files.map(({ path, state }: { path: string; state: string }) => [path, state]), written, left];
    };
    const steps = await (await Timeline.open(room.reviewer.store)).steps(session as SessionId);
    const [first, second, patched, , read] = steps.flatMap(({ seq, call }) => (call === undefined ? [] : [seq]));
    expect([first, second, patched, read].includes(undefined)).toBe(false);
    const [known, unread] = [
      ['/p/a.ts', 'unreachable'],
      ['/p/b.ts', 'unreachable'],
    ];
    const both = ['p/a.ts', 'p/b.ts'];
    expect(await restored(`step:${second}`, 'before')).toEqual([[known, unread], both, []]);
    const lost = [[['/p/a.ts', 'not-recorded'], unread], ['p/b.ts'], ['/p/a.ts']];
    expect(await restored(`step:${patched}`, 'after')).toEqual(lost);
    expect(await restored(`step:${read}`, 'read')).toEqual([[known, unread], both, []]);
    expect(await readFile(join(root, 'read', 'p', 'a.ts'), 'utf8')).toBe('five\nshared\n');
  } finally {
    await remove();
    await room.close();
  }
});

describe('an imported session whose commands change files', () => {
  let room: Awaited<ReturnType<typeof reviewedRecordings>>;
  let session: string;
  const authors = async (path: string) => fileAuthors(await Timeline.open(room.reviewer.store), session, path);

  beforeAll(async () => {
    room = await reviewedRecordings();
    const lines = new RecordingLines()
      .user('Mend it.')
      .reads('c1', '/p/a.ts', texts[0])
      .calls('c2', 'Bash', { command: `apply_patch <<'EOF'\n${patchOf('a.ts', 'one', 'two')}\nEOF` })
      .answers('c2', 'Done!')
      .calls('c3', 'Bash', { command: "sed -i 's/two/three/' a.ts" })
      .answers('c3', '')
      .calls('c4', 'Bash', { command: 'git stash -q' })
      .answers('c4', '')
      .reads('c5', '/p/a.ts', texts[0])
      .calls('c6', 'Bash', { command: 'npm run format' })
      .answers('c6', '')
      .reads('c7', '/p/a.ts', texts[1])
      .calls('c8', 'Bash', { command: "sed -i 's/tw./four/' a.ts" })
      .answers('c8', '')
      .reads('c9', '/p/a.ts', 'four\nshared\n')
      .calls('c10', 'Bash', { command: "sed -i 's/f.*/five/' a.ts" })
      .answers('c10', '')
      .calls('c11', 'Bash', { command: 'npm test' })
      .answers('c11', 'Exit code 1', { failed: true })
      .calls('c12', 'Edit', { file_path: '/p/a.ts', old_string: 'a', new_string: 'b' });
    ({ session = '' } = (await replay(await room.recordings.write('shell.jsonl', lines.text))).sessions[0] ?? {});
  });
  afterAll(() => room.close());

  test('has the texts of a patch and a substitution, and the command that put a file back', async () => {
    const { versions, unrecorded, calls } = await authors('/p/a.ts');
    expect(versions.map(({ by, back }) => [by.kind, back, by.why])).toEqual([
      ['unknown', null, expect.stringMatching(/^It was there when read/)],
      ['agent', null, 'The call bash apply_patch a.ts wrote it in turn 1.'],
      ['agent', null, "The call bash sed -i 's/two/three/' a.ts wrote it in turn 1."],
      ['agent', 1, 'Back to version 1 by bash git stash -q in turn 1.'],
      // No command that restores files ran. Only the texts are equal.
      ['unknown', 2, expect.stringMatching(/^It changed on the disk before read/)],
      ['agent', null, expect.stringMatching(/^bash sed -i 's\/tw\.\/four\/' a\.ts changed it .* recorded later/)],
    ]);
    expect(unrecorded.map(({ by }) => [by.kind, by.name])).toEqual([['agent', "bash sed -i 's/f.*/five/' a.ts"]]);
    const withEffect = (wanted: string) => calls.filter(({ effect }) => effect === wanted).map(({ name }) => name);
    const edits = withEffect('changed');
    expect(edits).toEqual(['bash apply_patch a.ts']);
    expect(withEffect('changed by a command')).toEqual([
      "bash sed -i 's/two/three/' a.ts",
      expect.stringMatching(/four/),
    ]);
    expect(withEffect('perhaps changed')).toEqual(["bash sed -i 's/f.*/five/' a.ts"]);
    const { changed, outside } = await staleCalls(await Timeline.open(room.reviewer.store), session);
    expect(changed).toMatchObject([{ calls: edits.length }]);
    // The version whose author is not known on the file's page.
    expect(outside.map(({ lines, why }) => [lines, why])).toEqual([
      [null, expect.stringMatching(/^It changed on the disk before read/)],
    ]);
  });

  test('does not count a call without a result as failed', async () => {
    const timeline = await Timeline.open(room.reviewer.store);
    expect(await sessionFigures(timeline.present, session as SessionId)).toMatchObject({ toolCalls: 12, failures: 1 });
    const { rows } = await conversation(timeline, { session, limit: 100 });
    expect(rows.flatMap((row) => (row.kind === 'call' ? [[row.failed, row.unanswered]] : [])).slice(-2)).toEqual([
      [true, false],
      [true, true],
    ]);
  });
});
