import { type RecordedCall, wellFormed } from '../client/session/call-report.js';
import type { ContextSession } from '../client/session/context-session.js';
import { canonicalJson } from '../objects/canonical-json.js';
import type { ObjectId } from '../objects/ids.js';
import { defined } from '../values/defined.js';
import type { CallItem } from './history-item.js';
import { nativeCallId, storedHash } from './known-history.js';
import { type ObservationContext, observeCall } from './observe-call.js';

/** How a call came to be known. */
export interface CallExtras {
  /** What the model was shown where that is not the output. */
  readonly shown?: string;
  readonly turnRef?: string;
  readonly startedAt?: number;
}

/** A reported call that is acknowledged. */
export interface ReportedCall {
  readonly callId: ObjectId;
  /** `known`: this very call was recorded before, nothing was written. */
  readonly outcome: 'recorded' | 'known';
  /** Files that were read or mentioned, as far as they were taken up. */
  readonly files: number;
  readonly collapsed: readonly ObjectId[];
  /** What could not be taken up, and why. */
  readonly notes: readonly string[];
  /** What the database makes of it; absent for a known one. */
  readonly applied?: RecordedCall['applied'];
}

/** The recorded call that a report repeats: same id, tool, arguments and output (decision B2). */
export async function findKnownCall(session: ContextSession, call: CallItem): Promise<ObjectId | undefined> {
  const { id } = call;
  if (id === undefined) return undefined;
  const given = id.toWellFormed();
  const used = new Set([given]);
  const candidates = session.state.sets.index.filter(
    (ref) => ref.startsWith(given) && session.state.isToolResult(ref) && nativeCallId(ref, used) === given,
  );
  for (const ref of candidates) {
    const version = (await session.load(ref))?.version;
    if (version?.type !== 'toolcall' || version.tool !== call.tool || version.content_hash !== storedHash(call.content)) continue;
    if (canonicalJson(version.args) === canonicalJson(wellFormed(call.args))) return ref;
  }
  return undefined;
}

/** Records a reported call with what it did to files [§5.1, §5.7]. */
export async function recordItem(
  session: ContextSession,
  call: CallItem,
  context: ObservationContext,
  { shown, turnRef, startedAt }: CallExtras = {},
): Promise<ReportedCall> {
  const { readings, mentions, notes } = await observeCall(call, context);
  const { callId, collapsed, applied } = await session.recordCall({
    tool: call.tool.toWellFormed(),
    args: call.args,
    status: call.status,
    content: call.content,
    readings,
    mentions,
    answer: () => (shown ?? call.content).toWellFormed(),
    ...defined({ callId: call.id, turnRef, startedAt }),
  });
  return { callId, outcome: 'recorded', files: readings.length + mentions.length, collapsed, notes, applied };
}
