import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { transcriptEntries } from '../../../src/history/rebuild/transcript-entries.js';
import { TranscriptReader } from '../../../src/history/rebuild/transcript-parts.js';
import type { SessionId } from '../../../src/objects/ids.js';
import { askRequest } from '../../../src/page/server/request-view.js';
import { sessionStrip } from '../../../src/page/server/session-strip.js';
import { RecordingLines, replay, reviewedRecordings } from '../../support/replays.js';

const AT = '2026-03-01T09:00:00.000Z';
const entry = (type: string, fields: object): string => JSON.stringify({ type, timestamp: AT, ...fields });
const says = (role: string, content: unknown, more: object = {}): string =>
  entry('message', { message: { role, content, ...more } });
const text = (said: string) => [{ type: 'text', text: said }];

describe('the requests behind a compaction that a transcript describes', () => {
  let room: Awaited<ReturnType<typeof reviewedRecordings>>;

  /** Imports a recording and returns the parts of its last request. */
  const lastRequest = async (name: string, lines: readonly string[]) => {
    const path = await room.recordings.write(name, `${lines.join('\n')}\n`);
    const { session = '' } = (await replay(path)).sessions[0] ?? {};
    const timeline = await Timeline.open(room.reviewer.store);
    const steps = await timeline.steps(session as SessionId);
    const reader = new TranscriptReader(timeline.present, session as SessionId, transcriptEntries(steps));
    const parts = await reader.at((steps.at(-1)?.seq ?? 0) - 1);
    return { timeline, session, parts: parts.map(({ kind, text: said }) => [kind, said]) };
  };

  beforeAll(async () => {
    room = await reviewedRecordings();
  });
  afterAll(() => room.close());

  test('have the entries that pi keeps, behind the summary', async () => {
    const { parts } = await lastRequest('pi.jsonl', [
      entry('session', { id: '0c9d5e7e-8b53-4f5f-9d7d-1d6f6a3f0009', cwd: '/p', modelId: 'a-model' }),
      says('user', text('One.')),
      says('assistant', text('The first answer.')),
      says('user', text('Two.')),
      says('assistant', [{ type: 'toolCall', id: 'c1', name: 'bash', arguments: { command: 'pwd' } }]),
      says('toolResult', text('/p'), { toolCallId: 'c1', toolName: 'bash', isError: false }),
      entry('compaction', { summary: 'One was answered.', firstKeptEntryIndex: 3, tokensBefore: 9 }),
      says('user', text('Three.')),
      says('assistant', text('The end.')),
    ]);
    expect(parts).toEqual([
      ['summary', 'One was answered.'],
      ['message', 'user: Two.'],
      ['call', expect.stringContaining('pwd')],
      ['result', '/p'],
      ['message', 'user: Three.'],
    ]);
  });

  test('lack the results that a micro-compaction cleared, and reasoning, which is counted', async () => {
    const lines = new RecordingLines()
      .user('Look.')
      .thinks('Where is it?')
      .calls('c1', 'Bash', { command: 'pwd' })
      .answers('c1', '/p')
      .calls('c2', 'Bash', { command: 'ls' })
      .answers('c2', 'a.ts');
    const cleared = {
      ...JSON.parse(lines.lines.at(-1) ?? '{}'),
      type: 'system',
      parentUuid: lines.place,
      subtype: 'microcompact_boundary',
      uuid: 'cleared',
      content: 'Context microcompacted',
      microcompactMetadata: { trigger: 'auto', preTokens: 9, compactedToolIds: ['c1'], clearedAttachmentUUIDs: [] },
    };
    const before = [...lines.lines];
    const after = lines.user('Go on.').says('The end.').lines.slice(before.length);
    const { timeline, session, parts } = await lastRequest('micro.jsonl', [
      ...before,
      JSON.stringify({ ...cleared, message: undefined }),
      ...after,
    ]);
    expect(parts.map(([kind, said]) => (kind === 'call' ? kind : said))).toEqual([
      'user: Look.',
      'call',
      'call',
      'a.ts',
      'user: Go on.',
    ]);
    const { reasoning } = await sessionStrip(timeline, session, {});
    expect(reasoning).toBe(1);
    const { items } = await askRequest(timeline, session, {});
    const untold = items.find(({ section }) => section === 'untold')?.text;
    expect(untold).toContain('Reasoning is not imported: the transcript has 1 text of it.');
    expect(untold).not.toMatch(/does not have [^.]*reasoning/);
  });
});
