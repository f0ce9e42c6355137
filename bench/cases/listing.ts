import { readdir } from 'node:fs/promises';
import { makeFolders, settleDisk } from '../fixtures.js';
import { type Contender, interleave, type Outcome } from '../interleave.js';
import { type CaseResult, medianOf, type TimedCase } from '../results.js';
import { callOf } from '../stdio-server.js';
import type { Workshop } from '../workshop.js';
import { captureWrite, freshCopy, untilStored } from '../written-documents.js';
import { describeWrite, type Readers } from './reading.js';

const FILES = 1_000;
const WARM_UP = 1;
const OURS = 'palimpsest ls';
const PEER = 'server-filesystem list_directory';
const BARE = 'bare XTDB transaction of its documents';
const DISK = 'fs.readdir';

async function list(
  workshop: Workshop,
  readers: Readers,
  kind: {
    readonly title: string;
    readonly salt: string;
    readonly probe: string;
    readonly folderOf: (contender: string, round: number) => string;
  },
): Promise<TimedCase> {
  const { ours, peer, xtdb } = readers;
  const template = await captureWrite(xtdb, () => ours.call('ls', { path: kind.probe }));
  const over = (name: string, work: (folder: string) => Promise<Outcome>): Contender => ({
    name,
    prepare: async (round) => () => work(kind.folderOf(name, round)),
    settle: ({ call }) => untilStored(xtdb, call),
  });
  const contenders: readonly Contender[] = [
    over(OURS, async (path) => {
      const answer = await ours.call('ls', { path });
      const call = callOf(answer);
      return { bytes: answer.bytes, ...(call === undefined ? {} : { call }) };
    }),
    over(PEER, async (path) => ({ bytes: (await peer.call('list_directory', { path })).bytes })),
    over(DISK, async (path) => {
      await readdir(path, { withFileTypes: true });
      return {};
    }),
    {
      name: BARE,
      prepare: async (round) => {
        const ops = freshCopy(template, ['list-probe', 'bench-ours'], `${kind.salt}${round}`);
        return async () => {
          await xtdb.execute(ops);
          return {};
        };
      },
    },
  ];
  const { lists, limitMs } = workshop.sizes;
  return {
    kind: 'timed',
    title: kind.title,
    remark: describeWrite(template),
    samples: await interleave(contenders, { warmUp: WARM_UP, measured: lists, limitMs }),
    yardsticks: [PEER, BARE, DISK],
  };
}

/** Measures `ls` of a folder of 1,000 files, unseen and seen. */
export async function measureListing(workshop: Workshop, readers: Readers): Promise<CaseResult> {
  workshop.tell(`ls of ${FILES} files`);
  const [probe = ''] = await makeFolders(workshop.files, 'list-probe', 1, FILES);
  const folders = await makeFolders(workshop.files, 'list-of', workshop.sizes.lists + WARM_UP, FILES);
  settleDisk();
  const unseen = await list(workshop, readers, {
    title: 'ls of 1,000 files, an unseen folder each time',
    salt: 'l',
    probe,
    folderOf: (_, round) => folders[round] ?? '',
  });
  const seen = await list(workshop, readers, {
    title: 'ls of 1,000 files, the same folder again and again',
    salt: 'm',
    probe,
    folderOf: () => probe,
  });
  const measured = medianOf(unseen.samples, OURS) / medianOf(unseen.samples, BARE);
  return {
    cases: [unseen, seen],
    goals: [{ what: `${unseen.title}: times the bare transaction`, measured, bar: 0.5, unit: '×' }],
  };
}
