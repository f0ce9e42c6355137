import { chatObjectId, type ObjectId, objectId, type SessionId } from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import { toolcallVersion } from '../../objects/versions.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { SessionWrite } from './session-write.js';

type Rename = (id: ObjectId) => ObjectId;

function renamed(changes: SetChanges, rename: Rename): SetChanges {
  return Object.fromEntries(Object.entries(changes).map(([what, ids]) => [what, (ids as readonly ObjectId[]).map(rename)]));
}

/** The id that a fork shares with what it was cut from, so that every reader sees where it comes from. */
export function rescueId(session: SessionId, firstStep: number, epoch: number): string {
  return `${session.slice(0, 150)}.fork-${epoch}-${firstStep}`;
}

/**
 * A write of a session that another writer took over in the meantime, as a step of a fork (decision F6): content and order stay, the call's object gets
 * an id of the fork's own, since the other writer may have used the old one. Nothing acknowledged is dropped.
 */
export function rescuedWrite(write: SessionWrite, fork: SessionId, lease: StoredDocument, renames: Map<ObjectId, ObjectId>): SessionWrite {
  const { step, call, files, at } = write;
  const rename: Rename = (id) => renames.get(id) ?? id;
  if (call !== undefined) renames.set(call.version['xt/id'], objectId(`${call.version['xt/id']}@${fork}`));
  const moved: SessionWrite = { session: fork, lease, files, heads: [], at };
  if (step === undefined) return moved;
  const movedStep = {
    ...step,
    session: fork,
    changes: renamed(step.changes, rename),
    ...(step.call === undefined ? {} : { call: { ...step.call, id: rename(step.call.id) } }),
    ...(step.fresh === undefined ? {} : { fresh: step.fresh.map(rename) }),
  };
  if (call === undefined) return { ...moved, step: movedStep };
  const { tool, args, args_display, status, file_refs, content } = call.version;
  const version = toolcallVersion({
    id: rename(call.version['xt/id']),
    tool,
    args,
    ...defined({ argsDisplay: args_display }),
    status,
    chatRef: chatObjectId(fork),
    ...(file_refs === undefined ? {} : { fileRefs: file_refs.map(rename) }),
    content,
  });
  return { ...moved, step: movedStep, call: { ...call, version } };
}
