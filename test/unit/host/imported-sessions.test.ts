import { expect, test } from '@jest/globals';
import { importedSessions, noteImported } from '../../../src/host/imported-sessions.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const SESSIONS = 400;

test('keeps the entries of many imports that end at the same time', () =>
  withTemporaryFolder(async (dir) => {
    const note = { agent: 'Claude Code', title: '', path: '/a', size: 1, mtime: 1 };
    const ids = Array.from({ length: SESSIONS }, (_, i) => `s-${i}`);
    await Promise.all(ids.map((id) => noteImported(dir, id, note)));
    expect([...(await importedSessions(dir)).keys()].sort()).toEqual(ids.sort());
  }));
