import { makeFiles, makeFolders, settleDisk } from '../fixtures.js';
import { type Contender, interleave } from '../interleave.js';
import type { CaseResult } from '../results.js';
import { runTool } from '../run-tool.js';
import type { Workshop } from '../workshop.js';
import type { Readers } from './reading.js';

const COUNTS = [20, 200, 1_000];
const ACTIVE = 5;

/** `assemble()` of sessions that know so many files, five of them in context, each time after a step. */
export async function measureAssembling(workshop: Workshop, { library }: Readers): Promise<CaseResult> {
  workshop.tell('assemble');
  const contenders: Contender[] = [];
  for (const count of COUNTS) {
    const mark = `assembled-${count}`;
    const [folder = ''] = await makeFolders(workshop.files, mark, 1, count - ACTIVE);
    const paths = await makeFiles(`${workshop.files}/${mark}-active`, mark, ACTIVE, { bytes: 4_000, lineLength: 80 });
    settleDisk();
    const session = await library.client.openSession({ id: `bench-${mark}` });
    const context = { ...library, session };
    await runTool('ls', { path: folder }, context);
    for (const path of paths) await runTool('read', { path }, context);
    contenders.push({
      name: `${count} files known`,
      prepare: async (round) => {
        await session.reportMessage({ role: 'user', text: `Question ${round}: what does this line mean?` });
        return async () => {
          const { text } = await session.assemble();
          return { bytes: Buffer.byteLength(text) };
        };
      },
    });
  }
  const { assemblies, limitMs } = workshop.sizes;
  const samples = await interleave(contenders, { warmUp: 3, measured: assemblies, limitMs });
  return {
    cases: [
      { kind: 'timed', title: 'assemble() after a step, five files of 4 KB active', samples, yardsticks: [contenders[0]?.name ?? ''] },
    ],
    goals: [],
  };
}
