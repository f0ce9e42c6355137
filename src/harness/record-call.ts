import type { RecordedCall, VerbEntry } from '../client/session/call-report.js';
import type { ContextSession } from '../client/session/context-session.js';
import { canonicalJson } from '../objects/canonical-json.js';
import type { ObjectId } from '../objects/ids.js';
import { keptArgs } from '../objects/kept-args.js';
import type { Verb } from '../session/verb-outcome.js';
import { DEFAULT_OUTPUT_LIMITS } from '../tools/create-tools.js';
import { knownReference } from '../tools/require-object.js';
import type { ToolContext } from '../tools/tool.js';
import { performVerb } from '../tools/verb-tools.js';
import { defined } from '../values/defined.js';
import type { CallItem } from './history-item.js';
import { storedHash } from './known-history.js';
import { type ObservationContext, observeCall } from './observe-call.js';

/** What a harness reports of a call in addition to the call itself. */
export interface CallExtras {
  /** What the model was shown where that is not the output. */
  readonly shown?: string;
  readonly turnRef?: string;
  readonly startedAt?: number;
  /** The step of the message that made it, where that is known. */
  readonly by?: number;
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

/** The recorded call that a report repeats: same id, tool, arguments and output (decision B2), and behind the step `since`. */
export async function findKnownCall(session: ContextSession, call: CallItem, since = 0): Promise<ObjectId | undefined> {
  const { id } = call;
  if (id === undefined) return undefined;
  for (const { id: ref, seq } of session.places.calls(id.toWellFormed())) {
    if (seq <= since) continue;
    const version = (await session.load(ref))?.version;
    if (version?.type !== 'toolcall' || version.tool !== call.tool || version.content_hash !== storedHash(call.content)) continue;
    if (canonicalJson(version.args) === canonicalJson(keptArgs(call.args).args)) return ref;
  }
  return undefined;
}

/** Notes that a step keeps. */
const MOST_NOTES = 50;

/** Records a reported call with what it did to files [§5.1, §5.7]. */
export async function recordItem(
  session: ContextSession,
  call: CallItem,
  { context, extras }: { readonly context: ObservationContext; readonly extras: CallExtras },
): Promise<ReportedCall> {
  const { shown, turnRef, startedAt, by } = extras;
  const { readings, mentions, notes } = await observeCall(call, context);
  const { callId, collapsed, applied } = await session.recordCall({
    tool: call.tool.toWellFormed(),
    args: call.args,
    status: call.status,
    content: call.content,
    readings,
    mentions,
    answer: () => (shown ?? call.content).toWellFormed(),
    ...defined({ callId: call.id, turnRef, startedAt, by, notes: notes.length === 0 ? undefined : notes.slice(0, MOST_NOTES) }),
  });
  return { callId, outcome: 'recorded', files: readings.length + mentions.length, collapsed, notes, applied };
}

/** A verb and the objects that an agent names with it: ids, prefixes or paths. */
interface VerbCall {
  readonly verb: Verb;
  readonly references: readonly string[];
}

/** How a verb is called on behalf of an agent. */
export interface VerbOptions {
  /** The harness's id of the agent's call (decision B2). */
  readonly callId?: string;
  readonly turnRef?: string;
  readonly shortIds?: boolean;
  readonly strict?: boolean;
  readonly signal?: AbortSignal;
}

/** What became of a verb. */
export interface VerbReport {
  /** The object of the call itself. */
  readonly callId: ObjectId;
  /** The answer for the agent: one line per object and the size of the active set; the contents stand in the next context (decision D7). */
  readonly text: string;
  /** False when nothing could be done for any object. */
  readonly ok: boolean;
  readonly entries: readonly VerbEntry[];
  /** What the window collapsed in this step [§4.3]. */
  readonly collapsed: readonly ObjectId[];
}

/** Activates, deactivates, pins or unpins on behalf of an agent [§3.3], as one step with its call (decisions D1 to D7). */
export async function runVerb(
  { client, session }: Pick<ToolContext, 'client' | 'session'>,
  { verb, references }: VerbCall,
  { callId, turnRef, shortIds = false, strict = false, signal = new AbortController().signal }: VerbOptions,
): Promise<VerbReport> {
  const work = { client, session, signal, shortIds, strict, limits: DEFAULT_OUTPUT_LIMITS };
  const known = await Promise.all(references.map((reference) => knownReference(reference, work)));
  const plan = await session.planVerb(verb, [...new Set(known)], signal);
  const { content, status = 'ok' } = performVerb(plan, work);
  const recorded = await session.recordCall({
    tool: verb,
    args: { ids: references },
    status,
    content,
    plan,
    answer: () => content,
    ...defined({ callId, turnRef }),
  });
  return { callId: recorded.callId, text: content, ok: status === 'ok', entries: plan.entries, collapsed: recorded.collapsed };
}
