import { stopNode } from '../../src/index.js';
import type { SharedLog } from '../../src/node/shared-log.js';
import { defined } from '../../src/values/defined.js';
import { makeProject, settleDisk } from '../fixtures.js';
import { storeBytes } from '../folder-size.js';
import type { CaseResult } from '../results.js';
import { runTool } from '../run-tool.js';
import { script } from '../script.js';
import type { Workshop } from '../workshop.js';
import { LogClient, type WrittenTransaction, writtenAfter } from '../written-documents.js';

const STEP_BYTES = 12 * 1_024;

/** Returns the number of steps in a log, and the bytes of its distinct texts. */
export function contentOf(transactions: readonly WrittenTransaction[]): {
  readonly bytes: number;
  readonly steps: number;
  readonly puts: number;
} {
  const counted = new Set<unknown>();
  let bytes = 0;
  let steps = 0;
  let puts = 0;
  for (const { doc } of transactions.flatMap((transaction) => transaction.puts)) {
    puts += 1;
    if (doc.type === 'step') {
      steps += 1;
      const { message } = doc.body as { readonly message?: { readonly text?: string } };
      bytes += Buffer.byteLength(message?.text ?? '');
      continue;
    }
    const text = doc.type === 'chunk' ? doc.text : doc.content;
    const hash = doc.type === 'chunk' ? doc['xt/id'].slice('chunk:'.length, -1) : doc.content_hash;
    if (typeof text !== 'string' || counted.has(hash)) continue;
    counted.add(hash);
    bytes += Buffer.byteLength(text);
  }
  return { bytes, steps, puts };
}

/**
 * Writes the scripted session to the node of a data folder, and returns the documents of its
 * transactions.
 */
export async function runScript(
  workshop: Workshop,
  dataDir: string,
  { calls, log }: { readonly calls: number; readonly log?: SharedLog },
): Promise<readonly WrittenTransaction[]> {
  const folders = await makeProject(`${workshop.files}/stored`);
  settleDisk();
  const node = await workshop.node(dataDir, defined({ log }));
  const xtdb = new LogClient(node.address);
  try {
    // Skips the first transaction of a shared log, which identifies the log.
    const before = await xtdb.latestSubmittedTx();
    const client = await workshop.client(node, dataDir);
    const session = await client.openSession({ id: 'bench-stored' });
    const context = { client, session, signal: new AbortController().signal };
    for (const action of script(folders, calls)) {
      if (action.kind === 'message') await session.reportMessage({ role: action.role, text: action.text });
      else await runTool(action.tool, action.args, context);
    }
    await client.close();
    return await writtenAfter(xtdb, before);
  } finally {
    await xtdb.close();
    await node.release();
  }
}

/** Measures the disk space of a scripted session against the limit of decision G10. */
export async function measureStoring(workshop: Workshop): Promise<CaseResult> {
  const { sessionCalls } = workshop.sizes;
  workshop.tell(`storage of a session of ${sessionCalls} calls`);
  const dataDir = workshop.dataDir('stored-data');
  const { bytes, steps, puts } = contentOf(await runScript(workshop, dataDir, { calls: sessionCalls }));
  await stopNode(dataDir);
  const stopped = await storeBytes(dataDir);
  // Opening a store flushes its write-ahead log into files.
  await (await workshop.node(dataDir)).release();
  await stopNode(dataDir);
  const flushed = await storeBytes(dataDir);
  const bar = 2 * bytes + STEP_BYTES * steps;
  const rows = [
    { name: 'calls', value: sessionCalls, unit: '' },
    { name: 'steps', value: steps, unit: '' },
    { name: 'documents put', value: puts, unit: '' },
    { name: 'content, each text once', value: bytes, unit: 'B' },
    { name: 'golden store, stopped', value: stopped.golden, unit: 'B' },
    { name: 'index store, stopped', value: stopped.index, unit: 'B' },
    { name: 'golden store, flushed', value: flushed.golden, unit: 'B' },
    { name: 'index store, flushed', value: flushed.index, unit: 'B' },
    { name: 'both, flushed, beyond twice the content, a step', value: (flushed.total - 2 * bytes) / steps, unit: 'B' },
    { name: 'limit: twice the content and 12 KB a step', value: bar, unit: 'B' },
  ];
  return {
    cases: [
      {
        kind: 'counted',
        title: `Storage of a session of ${sessionCalls} calls with messages`,
        remark:
          'Flushed: stopped, started once more and stopped. A text shared by a file and its call counts once, ' +
          'which makes the limit lower.',
        rows,
      },
    ],
    goals: [{ what: 'storage, flushed, over the limit of G10', measured: flushed.total / bar, bar: 1, unit: '×' }],
  };
}
