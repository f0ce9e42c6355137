import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { importedSessions } from '../../../../src/host/imported-sessions.js';
import { noteReplayed } from '../../../../src/lab/cli/run-replay.js';
import type { ReplayReport } from '../../../../src/lab/report/replay-report.js';
import { withTemporaryFolder } from '../../../support/temporary-folder.js';

const recordings = join(import.meta.dirname, '..', '..', '..', 'recordings');

test.each([
  ['claude-code', 'coding.jsonl', 'Claude Code', '/home/mira/shelf'],
  ['codex', 'coding.jsonl', 'Codex', '/home/mira/shelf'],
  ['cline', 'session.messages.json', 'Cline', undefined],
])('a replayed session of %s is listed with the agent and folder of its recording', (format, file, agent, folder) =>
  withTemporaryFolder(async (dataDir) => {
    const recording = { formats: [format], bytes: 1 } as unknown as ReplayReport['recording'];
    const sessions = [{ session: 'replayed' }] as unknown as ReplayReport['sessions'];
    await noteReplayed(dataDir, join(recordings, format, file), { recording, sessions });
    const noted = (await importedSessions(dataDir)).get('replayed');
    expect([noted?.agent, noted?.folder]).toEqual([agent, folder]);
  }),
);
