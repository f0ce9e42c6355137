import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { ContextClient } from '../client/session/context-client.js';
import { localFilesystemId } from '../filesystem/access/filesystem-id.js';
import { parseMount } from '../filesystem/access/mounts.js';
import { HistoryError } from '../history/rebuild/history-error.js';
import { Timeline } from '../history/rebuild/timeline.js';
import { type InspectedJournal, inspectJournals } from '../journal/journals.js';
import { ensureNode } from '../node/ensure-node.js';
import { nodeStatus } from '../node/node-status.js';
import { clientFolder } from '../process/data-folder.js';
import { systemCode } from '../process/system-error.js';
import { type NodeAddress, parseNodeUrl } from '../xtdb/address.js';
import type { ReviewFlags } from './review-flags.js';
import { nodeOptions, readSettings, type Settings } from './settings.js';
import { readGiven } from './usage-error.js';

/** What a question is answered from. Whoever opens it closes it. */
export interface Review {
  readonly timeline: Timeline;
  /** What the answer may lack, in sentences. */
  readonly notes: readonly string[];
  readonly dataDir: string;
  close(): Promise<void>;
}

/** How long acknowledged steps of other processes are waited for, milliseconds. */
const WAIT_MS = 2_000;
const LOOK_EVERY_MS = 50;

async function addressOf(settings: Settings): Promise<{ readonly address: NodeAddress; release(): Promise<void> }> {
  if (settings.xtdbUrl !== undefined) return { address: parseNodeUrl(settings.xtdbUrl), release: async () => undefined };
  const { dataDir } = settings;
  const isThere = await stat(dataDir).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (isThere === undefined)
    throw new HistoryError('unknown-session', `there is no data folder ${dataDir}: nothing was recorded there (--data, PALIMPSEST_DATA)`);
  // Questions change nothing, so they take the node that runs as it is.
  const status = await nodeStatus(dataDir);
  const options = { ...nodeOptions(settings), ...(status.running ? { profile: status.profile } : {}) };
  const tell = (message: string): void => {
    if (process.stderr.isTTY) process.stderr.write(`${message}\n`);
  };
  const node = await ensureNode({ ...options, onProgress: tell });
  return { address: node.address, release: () => node.release() };
}

const isWaiting = ({ pending }: InspectedJournal): boolean => pending > 0;

/** Waits, within a limit, until what living processes acknowledged is in the database; says what is not. */
async function waitForJournals(folder: string): Promise<readonly string[]> {
  const end = Date.now() + WAIT_MS;
  let waiting = (await inspectJournals(folder)).filter(isWaiting);
  while (waiting.some(({ holder }) => holder !== undefined) && Date.now() < end) {
    // Another process delivers; all that can be seen of it is its journal.
    await delay(LOOK_EVERY_MS);
    waiting = (await inspectJournals(folder)).filter(isWaiting);
  }
  return waiting.map(({ holder, pending }) =>
    holder === undefined
      ? `${pending} acknowledged steps of a process that ended are not in the database yet; the next agent that uses this data folder delivers them`
      : `${pending} acknowledged steps of process ${holder.pid} are not in the database yet`,
  );
}

/** Opens the database of a data folder for reading; its node is started where it does not run. Throws NodeError, XtdbError, HistoryError, UsageError. */
export async function openReview(flags: ReviewFlags): Promise<Review> {
  const settings = readSettings(process.env, flags);
  const { address, release } = await addressOf(settings);
  let client: ContextClient | undefined;
  try {
    client = await ContextClient.create({
      address,
      roots: ['/'],
      cwd: '/',
      mounts: (flags.mount ?? []).map((mount) => readGiven(() => parseMount(mount))),
      filesystemId: await localFilesystemId(settings.dataDir),
      track: false,
    });
    const notes = await waitForJournals(clientFolder(settings.dataDir, settings.xtdbUrl));
    const opened = client;
    return {
      timeline: await Timeline.open(client.store, client.files),
      notes,
      dataDir: settings.dataDir,
      close: async () => {
        await opened.close();
        await release();
      },
    };
  } catch (error) {
    await client?.close();
    await release();
    throw error;
  }
}
