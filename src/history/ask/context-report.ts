import { setImmediate } from 'node:timers/promises';
import type { SessionId } from '../../objects/ids.js';
import type { PastContext, PastContexts } from '../rebuild/past-context.js';
import type { Timeline } from '../rebuild/timeline.js';
import { type ContextLedger, contextLedger } from './context-ledger.js';

/** A context of the past with its ledger. */
export interface ReportedContext {
  readonly context: PastContext;
  readonly ledger: ContextLedger;
}

/** Contexts that are listed where nobody says how many. */
export const LISTED = 20;

async function withLedger(context: PastContext): Promise<ReportedContext> {
  // Counting keeps the thread busy: whoever else lives in this process gets a turn between two contexts.
  await setImmediate();
  return { context, ledger: contextLedger(context.input) };
}

/** The ledger of one context. */
export async function reportDetail(
  contexts: PastContexts,
  session: SessionId,
  when: Parameters<PastContexts['at']>[1],
): Promise<ReportedContext> {
  return withLedger(await contexts.at(session, when));
}

/**
 * The ledgers of a session's contexts, the newest first: of every one that was handed out and a record kept of, or, where there is no record, as they
 * stood at the end of each turn.
 */
export async function reportList(
  timeline: Timeline,
  contexts: PastContexts,
  session: SessionId,
  limit = LISTED,
): Promise<readonly ReportedContext[]> {
  const records = (await contexts.records(session)).slice(-limit);
  const turns = records.length > 0 ? [] : (await timeline.turns(session)).slice(-limit);
  const reported: ReportedContext[] = [];
  for (const proof of records) reported.unshift(await withLedger(await contexts.ofRecord(proof)));
  for (const { turn } of turns) reported.unshift(await withLedger(await contexts.at(session, { moment: { kind: 'turn', turn } })));
  return reported;
}
