import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { text as streamText } from 'node:stream/consumers';
import { printJson, printLines, tell } from '../cli/output.js';
import { settleJournals } from '../cli/review/settle-journals.js';
import { type OpenStore, openStore } from '../host/open-store.js';
import { settingsOfPast } from '../host/past-settings.js';
import { readSettings, type Settings } from '../host/settings.js';
import {
  acquireSessionLock,
  IMPORTER,
  LeaseError,
  type SessionLock,
  sessionLockOwners,
} from '../journal/session-lock.js';
import { ERASURE_LOCK } from '../node/erasure-sign.js';
import { readSharedLog } from '../node/shared-log.js';
import { TIME_LIMITS } from '../node/time-limits.js';
import { type Forgetter, formsOf } from '../objects/forgotten.js';
import { LockError, withNamedLock } from '../process/lock.js';
import { replaceFile, textOf } from '../process/owned-file.js';
import type { ObjectStore } from '../store/object-store.js';
import { carryOut, forgottenBy, sweep } from './carry-out.js';
import { ErasureError } from './erasure-error.js';
import { holdsText } from './inventory.js';
import { makePlan } from './make-plan.js';
import { markedDocument } from './mark-documents.js';
import { erasuresFolder, type PendingOrder, pendingOrder, recordOrder } from './order-file.js';
import { type ErasurePlan, extentOf, readExtent, requireWithin } from './plan.js';
import { planJson, planLines, selectionText } from './plan-lines.js';
import { readRetention } from './retention.js';
import { readSelection, type Selection, type SelectionFlags, selectionName } from './selection.js';

/** Flags of `palimpsest erase`. */
export interface EraseFlags extends SelectionFlags {
  readonly shared?: boolean;
  readonly plan?: boolean;
  readonly apply?: boolean;
  readonly reason?: string;
  readonly resume?: boolean;
  readonly sweep?: boolean;
  readonly data?: string;
  readonly json?: boolean;
}

const planFile = (dataDir: string, selection: Selection): string =>
  join(erasuresFolder(dataDir), `plan-${selectionName(selection)}.json`);

/** @throws {ErasureError} `not-here` */
function requireOwn({ nodeUrl }: Settings): void {
  if (nodeUrl === undefined) return;
  throw new ErasureError(
    'not-here',
    `XTDB_URL names ${nodeUrl}, whose files are on another host. Run palimpsest erase on that host, without XTDB_URL`,
  );
}

async function planFor(
  { store, log }: OpenStore,
  {
    settings,
    selection,
    shared,
  }: { readonly settings: Settings; readonly selection: Selection; readonly shared: boolean },
): Promise<ErasurePlan> {
  const rules = await readRetention(settings.node.dataDir);
  return makePlan({ log, store, selection, rules, shared });
}

/** Locks sessions, so that no process opens them during the erasure. */
async function lockSessions(dataDir: string, { sessions, unproved }: ErasurePlan): Promise<readonly SessionLock[]> {
  const locks: SessionLock[] = [];
  try {
    for (const session of [...sessions, ...unproved.map((one) => one.session)])
      locks.push(await acquireSessionLock(dataDir, session, { what: 'palimpsest erase' }));
    return locks;
  } catch (error) {
    for (const lock of locks) lock.release();
    if (!(error instanceof LeaseError) || error.code !== 'held') throw error;
    throw new ErasureError('session-open', `${error.message}: nothing was erased`, { cause: error });
  }
}

/**
 * Throws while an import runs, because no document names the import's texts yet, so a plan would
 * miss them.
 * @throws {ErasureError} `importing`
 */
async function refuseImports(dataDir: string): Promise<void> {
  const running = (await sessionLockOwners(dataDir)).find(({ what }) => what === IMPORTER);
  if (running === undefined) return;
  throw new ErasureError(
    'importing',
    `process ${running.pid} imports session ${running.session}: nothing was erased. ` +
      'Repeat the command once the import is complete',
  );
}

/** Returns the documents to store again with marks in place of the erased texts. */
async function markedOf(store: ObjectStore, plan: ErasurePlan): Promise<PendingOrder['marked']> {
  const { documents } = await store.latest();
  const found = await documents.dated(plan.marked);
  const forms = plan.texts.flatMap(formsOf);
  const digests = new Set(plan.evict.flatMap((id) => /^chunks?:([0-9a-f]{64})~?$/.exec(id)?.[1] ?? []));
  return [...found.values()].map(({ document, validTime }) => {
    const marked = markedDocument(document, { texts: plan.texts, digests });
    if (holdsText(marked, forms))
      throw new ErasureError(
        'wrong-kind',
        `the path or name of ${document['xt/id']} contains the text and cannot be changed: erase its sessions. ` +
          'Nothing was erased',
      );
    return { document: marked, validTime: validTime.getTime() };
  });
}

async function givenOrder(
  { store }: OpenStore,
  { plan, reason }: { readonly plan: ErasurePlan; readonly reason: string },
): Promise<PendingOrder> {
  const order = { order: randomBytes(4).toString('hex'), at: Date.now(), by: userInfo().username, reason };
  return {
    version: 1,
    order,
    txId: plan.txId,
    what: selectionText(plan.selection),
    evict: [...plan.evict],
    buried: plan.buried.map(({ id, type, hashes }) => ({ id, type, hashes: [...hashes] })),
    sessions: [...plan.sessions],
    unproved: plan.unproved.map(({ session, from }) => ({ session, from })),
    marked: await markedOf(store, plan),
    texts: [...plan.texts],
  };
}

interface Asked {
  readonly settings: Settings;
  readonly selection: Selection;
  readonly flags: EraseFlags;
  readonly forgetters: readonly Forgetter[];
}

async function showPlan({ settings, selection, flags, forgetters }: Asked): Promise<void> {
  const { dataDir } = settings.node;
  const open = await openStore(settings, tell);
  try {
    const plan = await planFor(open, { settings, selection, shared: flags.shared === true });
    const { evict, sessions, texts } = plan;
    const forgotten = forgottenBy({ evict: [...evict], sessions: [...sessions], texts: [...texts] });
    const copies = (await Promise.all(forgetters.map((one) => one.find(dataDir, forgotten)))).flat();
    const shared = await readSharedLog(dataDir);
    await mkdir(erasuresFolder(dataDir), { recursive: true, mode: 0o700 });
    await replaceFile(planFile(dataDir, selection), `${JSON.stringify(extentOf(plan))}\n`);
    if (flags.json === true) printJson(planJson(plan, { copies, profile: shared?.profile }));
    else printLines(planLines(plan, { copies, profile: shared?.profile }));
  } finally {
    await open.close();
  }
}

async function applyPlan({ settings, selection, flags, forgetters }: Asked): Promise<void> {
  const { dataDir } = settings.node;
  const { reason } = flags;
  if (reason === undefined || reason.trim() === '')
    throw new ErasureError('usage', 'an erasure needs a reason for its tombstones: add --reason TEXT');
  const path = planFile(dataDir, selection);
  const text = await textOf(path);
  if (text === undefined)
    throw new ErasureError(
      'no-plan',
      'there is no plan for this erasure yet: first run this command with --plan instead of --apply',
    );
  const extent = readExtent(text, path);
  if ((await readSharedLog(dataDir)) !== undefined)
    throw new ErasureError(
      'not-here',
      'other nodes share the log of this data folder. There, XTDB would also remove documents that are written later ' +
        'with the same content as an erased one. Nothing was erased. Export the sessions to keep, and import them ' +
        'into a new data folder',
    );
  await refuseImports(dataDir);
  await settleJournals(settings);
  const open = await openStore(settings, tell);
  let locks: readonly SessionLock[] = [];
  let pending: PendingOrder;
  try {
    const first = await planFor(open, { settings, selection, shared: flags.shared === true });
    requireWithin(first, extent);
    locks = await lockSessions(dataDir, first);
    // Plans again, because another process may have written before the locks were taken.
    const plan = await planFor(open, { settings, selection, shared: flags.shared === true });
    requireWithin(plan, extent);
    if (plan.texts.some((one) => reason.includes(one)))
      throw new ErasureError(
        'usage',
        'the reason contains the text to erase, and tombstones keep the reason: give another',
      );
    pending = await givenOrder(open, { plan, reason });
    await recordOrder(dataDir, pending);
  } catch (error) {
    for (const lock of locks) lock.release();
    throw error;
  } finally {
    await open.close();
  }
  try {
    await carryOut(pending, { settings, forgetters, onProgress: tell });
    await rm(path, { force: true });
  } finally {
    for (const lock of locks) lock.release();
  }
  report(pending, flags);
}

function report({ order, what, evict, sessions, unproved }: PendingOrder, flags: EraseFlags): void {
  if (flags.json === true) {
    printJson({ ...order, what, documents: evict.length, sessions, unproved });
    return;
  }
  printLines([
    `Erased ${what}: ${evict.length} documents, on order ${order.order}.`,
    'No file of the data folder holds them. Backups, exports in other folders and the recordings of the agents ' +
      'themselves remain.',
  ]);
}

async function resume(
  settings: Settings,
  { flags, forgetters }: Pick<Asked, 'flags' | 'forgetters'>,
): Promise<boolean> {
  const pending = await pendingOrder(settings.node.dataDir);
  if (pending === undefined) return false;
  tell(`Resuming the erasure ${pending.order.order}: ${pending.what}`);
  await settleJournals(settings);
  await carryOut(pending, { settings, forgetters, onProgress: tell });
  if (flags.resume === true) report(pending, flags);
  return true;
}

/** `palimpsest erase` */
export async function eraseAction(flags: EraseFlags, forgetters: readonly Forgetter[]): Promise<void> {
  const given = readSettings(process.env, flags);
  requireOwn(given);
  const settings = await settingsOfPast(given);
  const { dataDir } = settings.node;
  await mkdir(erasuresFolder(dataDir), { recursive: true, mode: 0o700 });
  try {
    // The starting node may be resuming the order, so `--resume` waits for its lock.
    const limitMs = flags.resume === true ? TIME_LIMITS.lockMs : 0;
    await withNamedLock(join(dataDir, ERASURE_LOCK), { limitMs }, async () => {
      const isResumed = await resume(settings, { flags, forgetters });
      if (flags.sweep === true) {
        await sweep(settings, tell);
        return;
      }
      if (flags.resume === true) {
        if (!isResumed && flags.json === true) printJson({ order: null });
        else if (!isResumed) printLines(['No erasure is unfinished.']);
        return;
      }
      if ((flags.plan === true) === (flags.apply === true))
        throw new ErasureError(
          'usage',
          'add --plan to see what would be erased, or --apply to erase what the plan lists',
        );
      const selection = await readSelection(flags, () => streamText(process.stdin));
      const asked = { settings, selection, flags, forgetters };
      await (flags.plan === true ? showPlan(asked) : applyPlan(asked));
    });
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
    throw new ErasureError('unfinished', `another process is erasing in this data folder: ${error.message}`, {
      cause: error,
    });
  }
}
