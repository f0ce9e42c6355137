import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { sessionId } from '../../../src/objects/ids.js';
import { compared } from '../../../src/page/server/compared.js';
import { sessionStrip } from '../../../src/page/server/session-strip.js';
import { openClient } from '../../support/context.js';
import { RecordingLines, recordingFolder, replay } from '../../support/replays.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
let client: ContextClient;

beforeAll(async () => {
  recordings = await recordingFolder();
  client = await openClient(recordings.folder, { shareSessions: true });
});
afterAll(async () => {
  await client?.close();
  await recordings?.remove();
});

test('a fork of an imported session shares the calls before the fork with its parent', async () => {
  const lines = new RecordingLines()
    .user('Mend it.')
    .reads('c1', '/p/a.ts', 'one\n')
    .calls('c2', 'Bash', { command: 'npm test' })
    .answers('c2', 'fine')
    .calls('c3', 'Bash', { command: 'npm run build' })
    .answers('c3', 'built')
    .says('It is mended.');
  const { session = '' } = (await replay(await recordings.write('forked.jsonl', lines.text))).sessions[0] ?? {};
  const { calls } = await sessionStrip(await Timeline.open(client.store), session, {});
  const fork = sessionId(`${session}-fork`);
  await client.forkSession(session, { id: fork, at: `step:${calls[2]?.step}` });
  const timeline = await Timeline.open(client.store);
  for (const names of [[session, fork] as const, [fork, session] as const])
    expect((await compared(timeline, { list: undefined }, names)).shared).toEqual({ steps: calls[2]?.step, calls: 2 });
});
