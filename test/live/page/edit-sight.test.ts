import { utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { SessionId } from '../../../src/objects/ids.js';
import { conversation } from '../../../src/page/server/conversation.js';
import { fileAuthors, staleCalls } from '../../../src/page/server/file-authors.js';
import { askRequest } from '../../../src/page/server/request-view.js';
import { editSights } from '../../../src/review/authors/edit-sights.js';
import { sessionFigures } from '../../../src/review/money/session-figures.js';
import { askHere } from '../../support/ask-here.js';
import { mentions, openClient, wholeRead } from '../../support/context.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { RecordingLines, replay, reviewedRecordings } from '../../support/replays.js';
import { callReport } from '../../support/tracked-project.js';

const FAILED = { failed: true };
const missing = 'String to replace not found in file.';
const edit = (path: string, from: string, to: string) => ({ file_path: path, old_string: from, new_string: to });

describe('the edits of an imported session', () => {
  let room: Awaited<ReturnType<typeof reviewedRecordings>>;
  let timeline: Timeline;
  let session: string;

  beforeAll(async () => {
    room = await reviewedRecordings();
    const part = {
      type: 'text',
      file: { filePath: '/p/b.ts', content: 'b1\nb2', numLines: 2, startLine: 1, totalLines: 9 },
    };
    const lines = new RecordingLines()
      .user('Mend it.')
      .reads('c0', '/p/c.ts', 'b8\nc9\n')
      .reads('c0a', '/p/d.ts', 'd1\n')
      .reads('c1', '/p/a.ts', 'one\ntwo\n')
      .calls('c2', 'Edit', edit('/p/a.ts', 'three', 'drei'))
      .answers('c2', missing, FAILED)
      .edits('c3', '/p/a.ts', 'one\ntwo\n', 'two', 'zwei')
      .calls('c4', 'Edit', edit('/p/a.ts', 'two', 'deux'))
      .answers('c4', missing, FAILED)
      .calls('c5', 'Read', { file_path: '/p/b.ts', limit: 2 })
      .answers('c5', '     1→b1\n     2→b2', { twin: part })
      .calls('c6', 'Edit', edit('/p/b.ts', 'b8', 'B8'))
      .answers('c6', missing, FAILED)
      .calls('c6a', 'Edit', edit('/p/a.ts', 'b2', 'B2'))
      .answers('c6a', missing, FAILED)
      .calls('c7', 'Edit', edit('/p/b.ts', 'b1\nb2', 'B'))
      .answers('c7', 'The file has been updated.')
      .calls('c8', 'Edit', edit('/p/a.ts', 'one', 'eins\nneu'))
      .calls('c8a', 'Edit', edit('/p/d.ts', 'd1', 'd2'))
      .compacts('We mended it.')
      .reads('c8b', '/p/d.ts', 'd2\n')
      .edits('c9', '/p/a.ts', 'eins\nneu\nzwei\n', 'zwei', 'zwo')
      .user('Put it back.')
      .calls('c10', 'Bash', { command: 'git stash -q' })
      .answers('c10', '')
      .reads('c11', '/p/a.ts', 'one\nzwei\n')
      .says('Done.');
    ({ session = '' } = (await replay(await room.recordings.write('edits.jsonl', lines.text))).sessions[0] ?? {});
    timeline = await Timeline.open(room.reviewer.store);
  });
  afterAll(() => room.close());

  const calls = async () => {
    const { rows } = await conversation(timeline, { session, limit: 100 });
    return rows.flatMap((row) => (row.kind === 'call' ? [row] : []));
  };

  test('say which version or lines the context had, and whether it had the replaced text', async () => {
    const sights = (await calls()).flatMap(({ tool, files }) =>
      tool === 'edit' ? [[files[0]?.sight?.is_doubtful, files[0]?.sight?.sentence]] : [],
    );
    const whole = 'The context had all of version 1';
    const own = `${whole}, with the agent's own edits up to version 2`;
    const lines = 'The context had only lines 1–2 of version 1.';
    expect(sights).toEqual([
      [true, `${whole}. The replaced text is not in version 1.`],
      [false, `${whole}. The replaced text is in version 1.`],
      [true, `${own}. The replaced text is not in version 2.`],
      [true, `${lines} The replaced text is not in these lines. It is in version 1 of c.ts.`],
      [true, `${own}. The replaced text is not in version 2. It is in the lines of b.ts that the agent had read.`],
      [false, `${lines} The replaced text is in these lines.`],
      [false, `${own}. The replaced text is in version 2.`],
      [false, `${whole}. The replaced text is in version 1.`],
      [
        true,
        'The context no longer had any part of it. ' +
          'The agent had last seen it at call 11: version 2 with later changes whose text is not recorded.',
      ],
    ]);
  });

  test('say the same on the page of the file, at the call, and in the log', async () => {
    const sentence = 'The context had all of version 1. The replaced text is not in version 1.';
    const { calls: named } = await fileAuthors(timeline, session, '/p/a.ts');
    const failed = named.find(({ effect }) => effect === 'tried to change');
    expect(failed?.sight).toEqual({ sentence, is_doubtful: true });
    const view = await askRequest(timeline, session, { at: `step:${(failed?.step ?? 0) - 1}` });
    expect(view.edits).toEqual([expect.objectContaining({ step: failed?.step, name: 'edit /p/a.ts' })]);
    const { stdout } = await askHere(['log', session, '--data', suiteData()]);
    expect(stdout).toContain(sentence);
    const { turns } = JSON.parse((await askHere(['log', session, '--json', '--data', suiteData()])).stdout);
    const sighted = turns.flatMap((turn: { calls: object[] }) => turn.calls);
    expect(sighted.find(({ step }: { step: number }) => step === failed?.step)).toMatchObject({
      sights: [{ sentence, is_doubtful: true }],
    });
    expect(sighted.find(({ status }: { status: string }) => status === 'ok')).toMatchObject({ sights: [] });
  });

  test('count without a result if a later text shows them, where they were made', async () => {
    const made = await calls();
    const at = made.findIndex(({ unanswered }) => unanswered);
    expect(made[at]).toMatchObject({ number: 11, files: [{ name: '/p/a.ts', effect: 'changed' }] });
    const { versions, unrecorded } = await fileAuthors(timeline, session, '/p/a.ts');
    expect(unrecorded).toMatchObject([{ step: made[at]?.step, by: { kind: 'agent' } }]);
    expect(versions[2]?.by).toMatchObject({ kind: 'agent', step: made[at + 3]?.step });
    const { changed, calls: stale } = await staleCalls(timeline, session);
    expect([changed.map((one) => one.calls).sort(), stale]).toEqual([[1, 1, 3], []]);
    expect((await sessionFigures(timeline.present, session as SessionId)).filesChanged).toBe(3);
  });

  test('are undone by a command that names the files that it put back', async () => {
    const stash = (await calls()).find(({ tool }) => tool === 'bash');
    expect(stash?.files).toMatchObject([{ name: '/p/a.ts', effect: 'put back', version: { number: 4 } }]);
  });
});

describe('the edits of an imported session whose texts are known in part', () => {
  let room: Awaited<ReturnType<typeof reviewedRecordings>>;
  beforeAll(async () => {
    room = await reviewedRecordings();
  });
  afterAll(() => room.close());

  const patch = (path: string, body: string) => ({
    command: `apply_patch <<'EOF'\n*** Begin Patch\n${body.replace('FILE', `File: ${path}`)}\n*** End Patch\nEOF`,
  });
  const bash = (id: string, lines: RecordingLines, command: string, output: string): RecordingLines =>
    lines.calls(id, 'Bash', { command }).answers(id, output);

  /** Returns what the page says of each change of a file, with the mark of a doubt. */
  async function sightsOf(lines: RecordingLines, path: string) {
    const { session = '' } = (await replay(await room.recordings.write('parts.jsonl', lines.text))).sessions[0] ?? {};
    const { calls } = await fileAuthors(await Timeline.open(room.reviewer.store), session, path);
    return calls.flatMap(({ sight }) => (sight === null ? [] : [[sight.is_doubtful, sight.sentence]]));
  }

  test('count the lines that a search printed, and doubt only what is certain', async () => {
    const found = 'a.ts:3:const a = one;\nb.ts:9:const b = one;';
    const lines = bash('c1', new RecordingLines().user('Mend it.'), 'rg -n one a.ts b.ts', found);
    bash('c2', lines, 'ls -l a.ts b.ts c.ts', 'a.ts\nb.ts\nc.ts');
    lines
      .calls('c3', 'Bash', patch('/p/a.ts', '*** Update FILE\n@@\n-const a = one;\n+const a = two;'))
      .answers('c3', 'Done!')
      .calls('c4', 'Bash', patch('/p/b.ts', '*** Update FILE\n@@\n-unseen\n+seen'))
      .answers('c4', 'Done!');
    expect(await sightsOf(lines, '/p/a.ts')).toEqual([
      [false, 'The context had only lines of version 1 that a search printed. The replaced text is in these lines.'],
    ]);
    expect(await sightsOf(lines, '/p/b.ts')).toEqual([
      [
        false,
        'The context had only lines of version 1 that a search printed. ' +
          'Whether the context had the replaced text is not recorded.',
      ],
    ]);
  });

  test('say that nothing is recorded if a command may have printed a part', async () => {
    const lines = bash('c1', new RecordingLines().user('Mend it.'), 'ls -l a.ts b.ts', 'a.ts\nb.ts');
    bash('c2', lines, 'wc -l a.ts', '9 a.ts');
    lines.calls('c3', 'Bash', patch('/p/a.ts', '*** Update FILE\n@@\n-unseen\n+seen')).answers('c3', 'Done!');
    expect(await sightsOf(lines, '/p/a.ts')).toEqual([
      [false, 'Whether the context had any part of the file is not recorded.'],
    ]);
  });

  test('count what the agent itself wrote, and name no version after a change without a text', async () => {
    const lines = new RecordingLines()
      .user('Write it.')
      .calls('c1', 'Bash', patch('/p/a.ts', '*** Add FILE\n+one\n+two'))
      .answers('c1', 'Done!')
      // The recording does not show the line that this patch replaces.
      .calls('c2', 'Bash', patch('/p/a.ts', '*** Update FILE\n@@\n-unseen\n+three\n+four'))
      .answers('c2', 'Done!')
      .calls('c3', 'Bash', patch('/p/a.ts', '*** Update FILE\n@@\n-three\n+drei'))
      .answers('c3', 'Done!')
      .calls('c4', 'Edit', edit('/p/a.ts', 'drei\nfour', 'drei'))
      .answers('c4', missing, FAILED)
      .calls('c5', 'Edit', edit('/p/a.ts', 'two', 'zwei'))
      .answers('c5', 'The file has been updated.');
    const had =
      'The context had all of version 1. ' +
      'The agent edited the file later, and its whole text since then is not recorded.';
    expect((await sightsOf(lines, '/p/a.ts')).slice(1)).toEqual([
      [false, `${had} The replaced text is in the new lines of the agent's own edit at call 2.`],
      [false, `${had} The replaced text is in the new lines of the agent's own edit at call 3.`],
      [false, `${had} The replaced text is in version 1.`],
    ]);
  });

  test('name no version for lines that were read after a change without a text', async () => {
    const lines = new RecordingLines().user('Mend it.').reads('c1', '/p/a.ts', 'one\ntwo\n').compacts('We read it.');
    bash('c2', lines, 'gofmt -w a.ts', '');
    bash('c3', lines, "sed -n '1,1p' a.ts", 'eins');
    lines
      .calls('c4', 'Bash', patch('/p/a.ts', '*** Update FILE\n@@\n-eins\n+uno'))
      .answers('c4', 'Done!')
      .calls('c5', 'Edit', edit('/p/a.ts', 'uno', 'ein'))
      .answers('c5', 'The file has been updated.');
    const had = (changes: string) =>
      `The context had only line 1 of version 1 with ${changes} whose text is not recorded.`;
    expect(await sightsOf(lines, '/p/a.ts')).toEqual([
      [false, `${had('possible later changes')} The replaced text is in this line.`],
      [false, `${had('later changes')} The replaced text is in the new lines of the agent's own edit at call 4.`],
    ]);
  });
});

test('an edit has the version of its request, although an earlier one was stored later', async () => {
  const { root, remove } = await temporaryRoot();
  const client = await openClient(root);
  try {
    const session = await client.openSession();
    const write = async (text: string, secondsAgo: number): Promise<void> => {
      const at = Date.now() / 1_000 - secondsAgo;
      await writeFile(join(root, 'a.ts'), text);
      await utimes(join(root, 'a.ts'), at, at);
    };
    const args = { path: 'a.ts' };
    const read = async (content: string): Promise<unknown> => {
      const readings = [await wholeRead(client, 'a.ts')];
      return (await session.recordCall(callReport({ args, content, readings }))).applied;
    };
    await write('one\n', 60);
    await read('one\n');
    await session.assemble({ deliver: 'library' });
    await write('two\n', 30);
    const change = { ...args, oldText: 'two', newText: 'three' };
    const failed = { tool: 'edit', args: change, status: 'fail', content: missing } as const;
    await (await session.recordCall(callReport({ ...failed, mentions: await mentions(client, ['a.ts']) }))).applied;
    await read('two\n');
    const timeline = await Timeline.open(await client.delivered());
    const [edit] = (await editSights(timeline, session.id, () => true)).values();
    expect([...(edit?.files.values() ?? [])].map(({ sentence }) => sentence)).toEqual([
      'The context had all of version 1. The replaced text is not in version 1.',
    ]);
  } finally {
    await client.close();
    await remove();
  }
});
