import pLimit from 'p-limit';
import { CANONICAL } from '../../assembly/metadata.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { ofSession } from '../../store/session-line.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { describe } from '../ask/described-objects.js';
import { versionState } from '../ask/object-log.js';
import { type SessionCall, sessionCalls } from '../ask/session-calls.js';
import { askedChange, putTexts } from './asked-change.js';

/** A tool call with its step. */
interface MadeCall {
  readonly step: Step;
  readonly call: SessionCall;
}

/** A file with its versions, oldest first. */
interface FileHistory {
  readonly name: string;
  readonly versions: readonly HistoryHead[];
}

const AT_ONCE = 8;

/** Returns the whole text of a version; undefined if it was not recorded. */
export async function textOfVersion(
  snapshot: StoreSnapshot,
  head: HistoryHead | undefined,
): Promise<string | undefined> {
  const { document, marks } = head ?? {};
  if (document === undefined || marks === undefined) return undefined;
  const [found] = await snapshot.versionsIn([{ document, marks }]);
  return found === undefined ? undefined : (await snapshot.wholeText(found))?.text;
}

/** Returns whether the next recorded text of a file has the texts of a call without a result. */
export async function isShownLater(
  snapshot: StoreSnapshot,
  { step, call }: MadeCall,
  { name, versions }: FileHistory,
): Promise<boolean> {
  const change = askedChange(call, name);
  const next = versions.find((one) => one.validTime.getTime() > step.at && versionState(one) === 'text');
  const text = change === undefined || next === undefined ? undefined : await textOfVersion(snapshot, next);
  const put = change === undefined ? [] : putTexts(change);
  return put.length > 0 && put.every((one) => text?.includes(one) === true);
}

/**
 * Returns the files that some calls of a session changed, each with the number of these calls. A
 * call without a recorded result counts if a later text of the file shows its change.
 */
export async function changedFiles(
  snapshot: StoreSnapshot,
  session: SessionId,
  steps: readonly Step[],
): Promise<ReadonlyMap<ObjectId, number>> {
  const calls = await sessionCalls(snapshot, steps);
  const changed = new Map<ObjectId, number>();
  const add = (id: ObjectId): unknown => changed.set(id, (changed.get(id) ?? 0) + 1);
  for (const { changes, failed, fileRefs } of calls.values()) if (changes && !failed) new Set(fileRefs).forEach(add);
  const open = steps.flatMap((step): readonly MadeCall[] => {
    const call = step.call === undefined ? undefined : calls.get(step.call.id);
    return call?.changes === true && call.unanswered ? [{ step, call }] : [];
  });
  if (open.length === 0) return changed;
  const present = await ofSession(snapshot, session);
  const names = await describe({ present, paths: CANONICAL }, [...new Set(open.flatMap(({ call }) => call.fileRefs))]);
  await pLimit(AT_ONCE).map(open, async (made) => {
    for (const id of new Set(made.call.fileRefs)) {
      const file = { name: names.get(id)?.name ?? '', versions: await present.historyOfHeads(id) };
      if (await isShownLater(present, made, file)) add(id);
    }
  });
  return changed;
}
