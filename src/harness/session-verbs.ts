import type { VerbEntry } from '../client/session/call-report.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { ObjectId } from '../objects/ids.js';
import type { Verb } from '../session/verb-outcome.js';
import { DEFAULT_OUTPUT_LIMITS } from '../tools/create-tools.js';
import { knownReference } from '../tools/require-object.js';
import { performVerb } from '../tools/verb-tools.js';
import { defined } from '../values/defined.js';

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
  /** What the agent is told: one line per object and the size of the active set; the contents stand in the next context (decision D7). */
  readonly text: string;
  /** False when nothing could be done for any object. */
  readonly ok: boolean;
  readonly entries: readonly VerbEntry[];
  /** What the window collapsed in this step [§4.3]. */
  readonly collapsed: readonly ObjectId[];
}

/** Activates, deactivates, pins or unpins on behalf of an agent [§3.3], as one step with its call (decisions D1 to D7). */
export async function runVerb(
  client: ContextClient,
  session: ContextSession,
  verb: Verb,
  references: readonly string[],
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
