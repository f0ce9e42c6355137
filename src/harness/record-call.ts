import type { LayoutName } from '../assembly/assembly-record.js';
import type { RecordedCall, VerbEntry } from '../client/session/call-report.js';
import type { ContextSession } from '../client/session/context-session.js';
import { callDisplay } from '../foreign-tools/call-display.js';
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

/** Facts about a call that are not in its history entry. */
export interface CallExtras {
  /** The text that the model got, if it is not the output. */
  readonly shown?: string;
  readonly turnRef?: string;
  readonly startedAt?: number;
  /** The step of the message that made the call, if it is known. */
  readonly by?: number;
}

/** A reported call that was acknowledged. */
export interface ReportedCall {
  readonly callId: ObjectId;
  /** `known`: the call had been recorded before, so nothing was written. */
  readonly outcome: 'recorded' | 'known';
  /** Number of files that were recorded as read or mentioned. */
  readonly files: number;
  readonly collapsed: readonly ObjectId[];
  /** Effects on files that were rejected, with the reasons. */
  readonly notes: readonly string[];
  /** Resolves with the database's result. Missing for a call that was known. */
  readonly applied?: RecordedCall['applied'];
}

/**
 * Returns the recorded call that a report repeats. It must come after step `since` and have the
 * same id, tool, arguments and output (decision B2).
 */
export async function findKnownCall(session: ContextSession, call: CallItem, since = 0): Promise<ObjectId | undefined> {
  const { id } = call;
  if (id === undefined) return undefined;
  for (const { id: ref, seq } of session.places.calls(id.toWellFormed())) {
    if (seq <= since) continue;
    const version = (await session.load(ref))?.version;
    if (version?.type !== 'toolcall' || version.tool !== call.tool || version.content_hash !== storedHash(call.content))
      continue;
    if (canonicalJson(version.args) === canonicalJson(keptArgs(call.args).args)) return ref;
  }
  return undefined;
}

/** Maximum number of notes per step. */
const MOST_NOTES = 50;

/** Records a reported call and its effects on files [§5.1, §5.7]. */
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
    ...defined({
      argsDisplay: callDisplay(call),
      callId: call.id,
      turnRef,
      startedAt,
      by,
      notes: notes.length === 0 ? undefined : notes.slice(0, MOST_NOTES),
    }),
  });
  return { callId, outcome: 'recorded', files: readings.length + mentions.length, collapsed, notes, applied };
}

/** A verb with references to objects: ids, prefixes of ids, or paths. */
interface VerbCall {
  readonly verb: Verb;
  readonly references: readonly string[];
}

/** Options of a verb that an agent calls. */
export interface VerbOptions {
  /** The id of the agent's call in the harness (decision B2). */
  readonly callId?: string;
  readonly turnRef?: string;
  readonly shortIds?: boolean;
  readonly strict?: boolean;
  /**
   * The layout. With `epoch`, a deactivated text stays in requests until the next epoch
   * (divergence E9).
   */
  readonly layout?: LayoutName;
  readonly signal?: AbortSignal;
}

/** The result of a verb. */
export interface VerbReport {
  /** The id of the object that records the call. */
  readonly callId: ObjectId;
  /**
   * The answer for the agent: one line per object, and the size of the active set. The objects'
   * contents are in the next context (decision D7).
   */
  readonly text: string;
  /** False if no object was affected. */
  readonly ok: boolean;
  readonly entries: readonly VerbEntry[];
  /** Objects that auto-collapse removed from the active set in this step [§4.3]. */
  readonly collapsed: readonly ObjectId[];
}

/**
 * Activates, deactivates, pins or unpins objects for an agent [§3.3]. The verb and its call are
 * recorded as one step (decisions D1 to D7).
 */
export async function runVerb(
  { client, session }: Pick<ToolContext, 'client' | 'session'>,
  { verb, references }: VerbCall,
  { callId, turnRef, shortIds = false, strict = false, layout, signal = new AbortController().signal }: VerbOptions,
): Promise<VerbReport> {
  const work = { client, session, signal, shortIds, strict, limits: DEFAULT_OUTPUT_LIMITS };
  const known = await Promise.all(references.map((reference) => knownReference(reference, work)));
  const plan = await session.planVerb(verb, [...new Set(known)], signal);
  const { content, status = 'ok' } = performVerb(plan, work, { way: 'loop', lags: layout === 'epoch' });
  const recorded = await session.recordCall({
    tool: verb,
    args: { ids: references },
    status,
    content,
    plan,
    answer: () => content,
    ...defined({ callId, turnRef }),
  });
  return {
    callId: recorded.callId,
    text: recorded.answer,
    ok: status === 'ok',
    entries: plan.entries,
    collapsed: recorded.collapsed,
  };
}
