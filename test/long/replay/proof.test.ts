import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ReplayReport } from '../../../src/lab/report/replay-report.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { effort } from '../../support/effort.js';
import { fixtures, RecordingLines, replay, reviewedRecordings } from '../../support/replays.js';

const files = [...(await fixtures())].map(([format, paths]) => [format, paths] as const);

let reviewed: Awaited<ReturnType<typeof reviewedRecordings>>;
let recordings: typeof reviewed.recordings;
let reviewer: typeof reviewed.reviewer;
beforeEach(async () => {
  reviewed = await reviewedRecordings();
  ({ recordings, reviewer } = reviewed);
});
afterEach(() => reviewed.close());

async function verified(report: ReplayReport) {
  const found = [];
  for (const { session } of report.sessions) found.push(await verifySession(reviewer.store, session));
  return found;
}

/**
 * Returns the interleaved lines of two sub-agents of one session. A file that one reads is in the
 * other's pool a moment later.
 */
function interleaved(): string {
  const lines = new RecordingLines()
    .user('look at both')
    .lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const side = (agentId: string, build: (lines: RecordingLines) => RecordingLines) =>
    build(new RecordingLines()).lines.map((line) => ({
      ...(JSON.parse(line) as Record<string, unknown>),
      isSidechain: true,
      agentId,
    }));
  const paths = Array.from({ length: 12 }, (_, i) => `/p/file-${i}.ts`);
  const reads = (own: readonly string[], name: string) => (all: RecordingLines) =>
    own.reduce(
      (so, path, i) => so.reads(`toolu_${name}${i}`, path, `text of ${path}\n`),
      all
        .user(`agent ${name}`)
        .calls(`toolu_${name}ls`, 'Glob', { pattern: '*.ts' })
        .answers(`toolu_${name}ls`, paths.join('\n')),
    );
  const one = side('one', reads(paths, 'a'));
  const two = side('two', reads([...paths].reverse(), 'b'));
  const rename = (entry: Record<string, unknown>, who: string) => ({
    ...entry,
    uuid: `${who}-${String(entry.uuid)}`,
    parentUuid: entry.parentUuid === null ? null : `${who}-${String(entry.parentUuid)}`,
  });
  const mixed = one.flatMap((entry, i) => [
    rename(entry, 'one'),
    ...(two[i] === undefined ? [] : [rename(two[i], 'two')]),
  ]);
  return [...lines, ...mixed].map((line) => `${JSON.stringify(line)}\n`).join('');
}

describe('the contexts of a replay', () => {
  test.each(files)('of %s are rebuilt byte for byte from the database alone', async (_format, paths) => {
    for (const path of paths.slice(0, effort(2, paths.length))) {
      const report = await replay(path).catch((error: unknown) => error);
      // Some fixtures hold no session, which other tests check.
      if (report instanceof Error) continue;
      const found = await verified(report as ReplayReport);
      expect(found.filter(({ ok }) => !ok)).toEqual([]);
      // The contexts that a branch shares are rebuilt too.
      const { sessions } = report as ReplayReport;
      for (const [i, { contexts, relation }] of sessions.entries()) {
        if (relation === 'branch') expect(found[i]?.contexts.equal).toBeGreaterThanOrEqual(contexts);
        else expect(found[i]?.contexts.equal).toBe(contexts);
      }
    }
  });

  test('are rebuilt too with sub-agents that alternate on the same files', async () => {
    const report = await replay(await recordings.write('both.jsonl', interleaved()));
    expect(report.sessions.length).toBeGreaterThan(1);
    const found = await verified(report);
    expect(found.filter(({ ok }) => !ok)).toEqual([]);
    expect(found.reduce((sum, { contexts }) => sum + contexts.equal, 0)).toBe(report.contexts.count);
  });
});
