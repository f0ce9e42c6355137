import { hasTokens, modelCallsOf } from '../../history/rebuild/model-calls.js';
import type { SessionId } from '../../objects/ids.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { ownSteps, sessionCalls } from '../ask/session-calls.js';
import { changedFiles } from '../authors/made-changes.js';
import { addCall, noSpending, type Spending } from './call-cost.js';

/** The figures of a session in a list. */
export interface SessionFigures {
  /** Number of calls of the model. */
  readonly calls: number;
  readonly toolCalls: number;
  readonly spent: Spending;
  /** The model of most calls. */
  readonly model?: string;
  readonly filesChanged: number;
  /** Number of tool calls that failed. */
  readonly failures: number;
  /** Beginning of the first step, milliseconds since 1970. */
  readonly from?: number;
}

function mostUsed(usages: readonly ModelUsage[]): string | undefined {
  const counts = new Map<string, number>();
  for (const { model } of usages) if (model !== undefined) counts.set(model, (counts.get(model) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

function spentIn(steps: readonly Step[]): Spending {
  const spent = noSpending();
  for (const { usage, at } of steps) if (usage !== undefined && hasTokens(usage)) addCall(spent, usage, { at });
  return spent;
}

/** Adds up the model calls of a session's own steps. */
export const spendingOf = async (snapshot: StoreSnapshot, session: SessionId): Promise<Spending> =>
  spentIn(await ownSteps(snapshot, session, await snapshot.steps(session)));

/**
 * Counts the figures of a session from its own steps. The steps that a fork shares count for its
 * parent. Reads the steps and the heads of their calls.
 */
export async function sessionFigures(snapshot: StoreSnapshot, session: SessionId): Promise<SessionFigures> {
  const steps = await ownSteps(snapshot, session, await snapshot.steps(session));
  const calls = [...(await sessionCalls(snapshot, steps)).values()];
  const model = mostUsed(steps.flatMap(({ usage }) => usage ?? []));
  return {
    calls: modelCallsOf(steps).length,
    toolCalls: calls.length,
    spent: spentIn(steps),
    filesChanged: (await changedFiles(snapshot, session, steps)).size,
    failures: calls.filter(({ failed, unanswered }) => failed && !unanswered).length,
    ...(model === undefined ? {} : { model }),
    ...(steps[0] === undefined ? {} : { from: steps[0].at }),
  };
}
