import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ContextClient } from '../../../src/client/session/context-client.js';
import { BUNDLE_PARTS, PART_NAMES } from '../../../src/contracts/agent-context/bundle-parts.js';
import { exportBundle } from '../../../src/contracts/agent-context/export-bundle.js';
import { exportSession } from '../../../src/contracts/cortexfs/export-session.js';
import { ImportClock } from '../../../src/contracts/cortexfs/import-clock.js';
import { importDirectory } from '../../../src/contracts/cortexfs/import-session.js';
import { PALIMPSEST_FILE } from '../../../src/contracts/cortexfs/palimpsest-file.js';
import { nativeId } from '../../../src/contracts/projection/measured-entries.js';
import { readProjection } from '../../../src/contracts/projection/read-projection.js';
import { PastContexts } from '../../../src/history/rebuild/past-context.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { findCorpus } from '../../../src/lab/replay/find-recordings.js';
import { openReplayDatabase, type ReplayDatabase } from '../../../src/lab/replay/replay-database.js';
import { replayFile } from '../../../src/lab/report/replay-file.js';
import { callSuffix, filesystemId, type SessionId, sessionId } from '../../../src/objects/ids.js';
import { publishedValidators } from '../../support/agent-context-schemas.js';
import { effort } from '../../support/effort.js';
import { config, fixtures } from '../../support/replays.js';
import { filesIn } from '../../support/session-directories.js';

/**
 * Returns the folder of recordings, as for `npm run replay:corpus`; default: the small recordings
 * of this repository, one of each format.
 */
async function recordings(): Promise<readonly (readonly [string, string])[]> {
  const folder = process.env.PALIMPSEST_CORPUS;
  if (folder !== undefined && folder !== '')
    return (await findCorpus(folder)).files.map(({ name, path }) => [name, path] as const);
  return Promise.all(
    [...(await fixtures())].map(
      async ([format, [path = '']]) => [format, (await findCorpus(dirname(path))).files[0]?.path ?? ''] as const,
    ),
  );
}

const validators = publishedValidators();

/** The objects of a written bundle that the published schemas refuse. */
function publishedFindings(files: Readonly<Record<string, string>>): readonly string[] {
  const names = PART_NAMES.map((part) => BUNDLE_PARTS[part]);
  expect(Object.keys(files)).toEqual(names.map(({ file }) => file).sort());
  return names.flatMap(({ file, shape }) => {
    const validate = validators.get(shape);
    return (files[file] ?? '')
      .split('\n')
      .filter((line) => line !== '' && validate !== undefined && !validate(JSON.parse(line)))
      .map((line) => `${file}: ${line.slice(0, 200)}`);
  });
}

const all = await recordings();
const cases = all.slice(0, effort(4, all.length));
const opened = (database: ReplayDatabase, clock: () => number): Promise<ContextClient> =>
  ContextClient.create({
    address: database.address,
    roots: [tmpdir()],
    cwd: '/',
    filesystemId: filesystemId('none'),
    track: false,
    shareSessions: true,
    clock,
  });

describe('a recording exported to and imported from a session directory', () => {
  const clock = new ImportClock();
  let [here, there]: (ContextClient | undefined)[] = [];
  let one: ReplayDatabase;
  let other: ReplayDatabase;
  let root = '';

  beforeAll(async () => {
    [one, other] = await Promise.all([openReplayDatabase(undefined), openReplayDatabase(undefined)]);
    here = await opened(one, Date.now);
    there = await opened(other, clock.now);
    root = await mkdtemp(join(tmpdir(), 'palimpsest-corpus-'));
  });
  afterAll(async () => {
    await Promise.all([here?.close(), there?.close()]);
    await Promise.all([one?.close(), other?.close()]);
    await rm(root, { recursive: true, force: true });
  });

  /** Returns a session in a database as its readers see it. */
  const seen = async (client: ContextClient | undefined, session: SessionId) => {
    if (client === undefined) throw new Error('no client');
    const timeline = await Timeline.open(await client.delivered());
    const { digest, sets, turn, seq, running, files } = await readProjection(timeline, session);
    const { text } = await new PastContexts(timeline).assembled(session, {});
    const known = files.map(({ metadata, active, pinned }) => ({ metadata, active, pinned }));
    return { timeline, shown: { digest, sets, turn, seq, running, known, text } };
  };

  test.each(cases)('returns unchanged: %s', async (_name, path) => {
    const variant = `cortexfs-${process.pid}-${Date.now()}`;
    const { sessions } = await replayFile(path, one, { config: config(), variant });
    expect(sessions.length).toBeGreaterThan(0);
    for (const { session: name } of sessions) {
      const session = sessionId(name);
      const before = await seen(here, session);
      const [folder, again, bundle] = ['out', 'again', 'bundle'].map((what) => join(root, `${name}-${what}`)) as [
        string,
        string,
        string,
      ];
      await exportSession(before.timeline, folder, { session });
      await exportBundle({ timeline: before.timeline, session, when: {}, agent: undefined }, bundle);
      expect(publishedFindings(await filesIn(bundle))).toEqual([]);
      expect(await importDirectory(there as ContextClient, folder, { clock })).toMatchObject({
        session,
        outcome: 'created',
      });
      const after = await seen(there, session);
      // A fork has its parent's calls under the harness's ids. No id names another session than
      // that of the call (divergence B2).
      const isOthers = (id: string): boolean => id.includes('@') && !id.endsWith(callSuffix(session));
      const renamed = before.shown.sets.index.filter(isOthers);
      const plain = (text: string): string => renamed.reduce((so, id) => so.replaceAll(id, nativeId(id)), text);
      const same = ({ digest, ...shown }: typeof before.shown) => [
        renamed.length === 0 ? digest : '',
        JSON.parse(plain(JSON.stringify(shown))),
      ];
      expect(same(after.shown)).toEqual(same(before.shown));
      await exportSession(after.timeline, again, { session });
      // Another session of the recording may have changed a file since. Here the file keeps its
      // state of the last step.
      const written = async (from: string) => {
        const files = await filesIn(from);
        const texts = Object.entries(files).map(
          ([name, text]) =>
            [
              name,
              name === PALIMPSEST_FILE ? text.replaceAll(/^\{"file":\{"at":\d+/gm, '{"file":{"at":0') : text,
            ] as const,
        );
        return Object.fromEntries(texts.map(([name, text]) => [name, plain(text)]));
      };
      expect(await written(again)).toEqual(await written(folder));
      expect(await importDirectory(there as ContextClient, folder, { clock })).toMatchObject({ outcome: 'unchanged' });
      expect(await importDirectory(here as ContextClient, folder, { clock })).toMatchObject({ outcome: 'unchanged' });
      await Promise.all([folder, again, bundle].map((made) => rm(made, { recursive: true, force: true })));
    }
  });
});
