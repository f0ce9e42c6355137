import { rm, truncate, utimes } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { importedSessions } from '../../../src/host/imported-sessions.js';
import { ownId } from '../../../src/host/own-id.js';
import { RecordingLines } from '../../support/replays.js';
import { until } from '../../support/until.js';
import { saidIn, WatchedMachine } from '../../support/watched.js';

let watched: WatchedMachine;
beforeEach(async () => {
  watched = await WatchedMachine.create();
});
afterEach(() => watched.remove());

const at = (name: string): string => `.claude/projects/-p/${name}.jsonl`;
/** The lines of a recording of the session `id`. */
const linesOf = (recording: RecordingLines, id: string): readonly string[] =>
  recording.lines.map((line) => `${line.replaceAll('"s-1"', JSON.stringify(id))}\n`);
const works = (): RecordingLines =>
  new RecordingLines()
    .user('look')
    .reads('t1', '/p/a.ts', 'one\ntwo\n')
    .says('read')
    .user('again')
    .calls('t2', 'Bash', { command: 'true' })
    .answers('t2', 'done')
    .says('all done');
const SAID = ['look', '', 't1', 'read', 'again', '', 't2', 'all done'];

describe('a transcript of Claude Code that grows', () => {
  test('is recorded line by line, each part as soon as it is written', async () => {
    const id = watched.prefix;
    await watched.start();
    const counts: number[] = [];
    const lines = linesOf(works(), id);
    // After each line: the steps that a reader finds, without waiting for the next line.
    const expected = [1, 2, 3, 4, 5, 6, 7, 8];
    for (const [i, line] of lines.entries()) {
      await watched.append(at(id), line);
      counts.push((await watched.reached(id, expected[i] ?? 0)).length);
    }
    expect(counts).toEqual(expected);
    expect(saidIn(await watched.steps(id), id)).toEqual(SAID);
  });

  test('is recorded up to its current end when a companion asks', async () => {
    const id = watched.prefix;
    await watched.start({ restMs: 60_000 });
    const lines = linesOf(works(), id);
    await watched.append(at(id), lines.slice(0, 3).join(''));
    const session = await watched.followed.session('claude-code', id, { transcript: watched.path(at(id)) });
    expect([session.native, session.session.id, session.session.state.seq]).toEqual([id, id, 3]);
    await watched.append(at(id), lines.slice(3).join(''));
    await session.catchUp();
    expect(session.session.state.seq).toBe(8);
  });

  test('is waited for while it has only the session’s id', async () => {
    const id = watched.prefix;
    await watched.start();
    const queued = { type: 'queue-operation', operation: 'enqueue', content: 'look', sessionId: id };
    await watched.append(at(id), `${JSON.stringify(queued)}\n`);
    const followed = watched.followed.session('claude-code', id, { transcript: watched.path(at(id)) });
    followed.catch(() => undefined);
    await until(
      () => importedSessions(watched.dataDir),
      (noted) => noted.size > 0,
    );
    expect(await watched.followed.running('claude-code')).toEqual([]);
    await watched.append(at(id), linesOf(works(), id).join(''));
    const { session } = await followed;
    expect(session.state.seq).toBeGreaterThan(0);
  });

  test('is found by the session’s id alone', async () => {
    const id = watched.prefix;
    await watched.start();
    await watched.append(at(id), linesOf(works(), id).join(''));
    const { session } = await watched.followed.session('claude-code', id, {});
    expect(session.state.seq).toBe(8);
  });

  test('is not found by a part of its id', async () => {
    const id = watched.prefix;
    await watched.start();
    await watched.append(at(id), linesOf(works(), id).join(''));
    await watched.reached(id, 8);
    const parts = [id.slice(0, -1), id.slice(1), 'jsonl', '.'];
    const found = await Promise.allSettled(parts.map((part) => watched.followed.session('claude-code', part, {})));
    expect(found).toEqual(
      parts.map(() => ({ status: 'rejected', reason: expect.objectContaining({ code: 'no-transcript' }) })),
    );
  });

  test('gives access to files of its own folder only, wherever the agent works', async () => {
    const id = watched.prefix;
    await watched.start();
    await watched.write('project/a.ts', 'inside');
    await watched.write('outside.txt', 'outside');
    const cwd = watched.path('project');
    const lines = linesOf(works(), id).map((line) => `${JSON.stringify({ ...JSON.parse(line), cwd })}\n`);
    await watched.append(at(id), lines.join(''));
    const place = { transcript: watched.path(at(id)) };
    const { client } = await watched.followed.session('claude-code', id, place);
    await client.files.locate(watched.path('project/a.ts'));
    await expect(client.files.locate(watched.path('outside.txt'))).rejects.toMatchObject({ code: 'outside-roots' });
  });

  test('gives access to no file if its folder contains the home folder, and says so once', async () => {
    const id = watched.prefix;
    await watched.start();
    await watched.write('outside.txt', 'outside');
    const file = watched.path('outside.txt');
    const work = new RecordingLines()
      .user('look')
      .reads('t1', file, 'outside')
      .reads('t2', file, 'outside')
      .says('done');
    const timestamp = new Date().toISOString();
    const lines = linesOf(work, id).map((line) => `${JSON.stringify({ ...JSON.parse(line), cwd: '/', timestamp })}\n`);
    await watched.append(at(id), lines.join(''));
    const { client } = await watched.followed.session('claude-code', id, { transcript: watched.path(at(id)) });
    expect((await client.files.locate(file)).location).toMatchObject({ reachable: false });
    const state = await until(watched.state, (found) => (found?.notices.length ?? 0) > 0);
    expect(state?.notices.map(({ line }) => line)).toEqual([expect.stringContaining('/, which is too wide')]);
  });

  test('is not read from a file that an event names if the file has another session', async () => {
    const [mine, other] = [`${watched.prefix}-mine`, `${watched.prefix}-other`];
    await watched.start();
    await watched.append('notes/other.jsonl', linesOf(works(), other).join(''));
    await watched.append('notes/large.json', `{"sessionId":${JSON.stringify(mine)}}`);
    await truncate(watched.path('notes/large.json'), 65 * 1_048_576);
    for (const name of ['other.jsonl', 'large.json'])
      await expect(
        watched.followed.session('claude-code', mine, { transcript: watched.path(`notes/${name}`) }),
      ).rejects.toMatchObject({ code: 'no-transcript', message: expect.stringContaining(`and not ${mine}`) });
    expect((await watched.state())?.followed).toEqual([]);
    const place = { transcript: watched.path('notes/other.jsonl') };
    expect((await watched.followed.session('claude-code', other, place)).native).toBe(other);
  });

  test('is ignored if it did not change since the first start, and followed once it grows', async () => {
    const id = watched.prefix;
    const lines = linesOf(works(), id);
    await watched.append(at(id), lines.slice(0, 4).join(''));
    const past = new Date(Date.now() - 120_000);
    await utimes(watched.path(at(id)), past, past);
    await watched.start();
    await watched.append(at('other'), linesOf(works(), `${id}-other`).join(''));
    await watched.reached(`${id}-other`, 8);
    expect(await watched.steps(id)).toEqual([]);
    await watched.append(at(id), lines.slice(4).join(''));
    await watched.reached(id, 8);
    expect(saidIn(await watched.steps(id), id)).toEqual(SAID);
  });

  test('is recorded if it ended while its hook started the process', async () => {
    const id = watched.prefix;
    await watched.append(at(id), linesOf(works(), id).join(''));
    await watched.start();
    await watched.reached(id, 8);
    expect(saidIn(await watched.steps(id), id)).toEqual(SAID);
  });

  test('continues in the same session after a pause, and after the process restarts', async () => {
    const id = watched.prefix;
    const lines = linesOf(works(), id);
    await watched.start({ idleMs: 100 });
    await watched.append(at(id), lines.slice(0, 3).join(''));
    await watched.reached(id, 3);
    await watched.rests();
    await watched.append(at(id), lines.slice(3, 6).join(''));
    await watched.reached(id, 5);
    await watched.stop();
    await watched.append(at(id), lines.slice(6).join(''));
    await watched.start();
    await watched.reached(id, 8);
    expect(saidIn(await watched.steps(id), id)).toEqual(SAID);
  });

  test('becomes a second session if it was rewritten, and the first one stays', async () => {
    const id = watched.prefix;
    await watched.start();
    await watched.append(at(id), linesOf(works(), id).join(''));
    await watched.reached(id, 8);
    const other = new RecordingLines().user('look').reads('t1', '/p/a.ts', 'one\ntwo\n').says('otherwise');
    await watched.write(at(id), linesOf(other, id).join(''));
    const steps = await watched.reached(`${id}+2`, 4);
    expect(saidIn(steps, `${id}+2`)).toEqual(['look', '', 't1', 'otherwise']);
    expect(saidIn(await watched.steps(id), id)).toEqual(SAID);
  });

  test('keeps its whole session if it is deleted', async () => {
    const id = watched.prefix;
    await watched.start();
    await watched.append(at(id), linesOf(works(), id).join(''));
    await watched.reached(id, 8);
    await rm(watched.path(at(id)));
    await watched.rests();
    expect(saidIn(await watched.steps(id), id)).toEqual(SAID);
    expect((await watched.state())?.failed).toEqual([]);
  });
});

describe('the process', () => {
  test('ends when its data folder is deleted', async () => {
    await watched.start();
    await rm(watched.dataDir, { recursive: true });
    await expect(watched.ended()).resolves.toBeUndefined();
  });
});

describe('a sub-agent with its own file', () => {
  test('is a separate session', async () => {
    const id = watched.prefix;
    await watched.start();
    const sidechain = linesOf(new RecordingLines().user('count the files').says('three'), id).map((line) =>
      JSON.stringify({ ...JSON.parse(line), isSidechain: true, agentId: 'a1' }),
    );
    await watched.append(`.claude/projects/-p/${id}/subagents/agent-a1.jsonl`, `${sidechain.join('\n')}\n`);
    const own = ownId(`${id}/agent-a1`);
    expect(saidIn(await watched.reached(own, 2), own)).toEqual(['count the files', 'three']);
  });
});
