import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import { defined } from '../../values/defined.js';
import { type ContextKind, kindOfRecord } from './context-kind.js';
import { type CountedFall, countedFalls, SHORTENING } from './counted-fall.js';
import { type ModelCall, modelCallsOf, promptTokens } from './model-calls.js';

/** The request of a model call, as far as it is known. */
export interface SessionRequest {
  readonly kind: ContextKind;
  readonly turn: number;
  /** The last step that it includes. At least 1, because no moment is before the first step. */
  readonly step: number;
  readonly at: number;
  /** The assembly record of a sent request. */
  readonly proof?: AssemblyProof;
  /** The call, if only a transcript shows its request. */
  readonly call?: ModelCall;
  readonly usage?: ModelUsage;
}

/**
 * Returns the falls of the provider's count between requests, except falls that a step explains.
 */
export const fallsAmong = (requests: readonly SessionRequest[], steps: readonly Step[]): readonly CountedFall[] =>
  countedFalls(
    requests.map(({ usage, ...request }) => ({
      ...request,
      tokens: usage === undefined ? undefined : promptTokens(usage) || undefined,
    })),
    steps.flatMap(({ seq, event }) => (SHORTENING.has(event?.kind ?? '') ? [seq] : [])),
  );

/** The records of a session's requests and its steps, oldest first. */
interface RecordedSession {
  readonly records: readonly AssemblyProof[];
  readonly steps: readonly Step[];
}

/**
 * Maps each request to the usage that the provider reported for its answer. The answer is the first
 * one between the request and the next request.
 */
export function usagesOf({ records, steps }: RecordedSession): ReadonlyMap<AssemblyProof, ModelUsage> {
  const answers = steps.filter(({ message }) => message?.role === 'assistant');
  const found = new Map<AssemblyProof, ModelUsage>();
  let at = 0;
  for (const [i, proof] of records.entries()) {
    while ((answers[at]?.seq ?? Number.POSITIVE_INFINITY) <= proof.step) at += 1;
    const answer = answers[at];
    const isBeforeNext = answer !== undefined && answer.seq <= (records[i + 1]?.step ?? Number.POSITIVE_INFINITY);
    if (proof.sent?.usage !== undefined) found.set(proof, proof.sent.usage);
    else if (isBeforeNext && answer.usage !== undefined) found.set(proof, answer.usage);
  }
  return found;
}

/**
 * Returns the requests of a session in order, one for each call of the model. A call with the
 * harness's own list has a record if a gateway sent it. If a call has both a record and a
 * transcript, the record counts. Records of a replay are left out: those contexts were never sent.
 */
export function sessionRequests({
  records,
  steps,
  isTranscript,
}: RecordedSession & { readonly isTranscript: boolean }): readonly SessionRequest[] {
  const sent = records.filter((record) => kindOfRecord(record) === 'sent');
  const usages = usagesOf({ records: sent, steps });
  const recorded = sent.map((proof): SessionRequest => {
    const { turn, step, at } = proof;
    return { kind: 'sent', turn, step, at, proof, ...defined({ usage: usages.get(proof) }) };
  });
  const seen = new Set(sent.map(({ step }) => step));
  const bypassed = steps.flatMap(({ seq, turn, at, event }): readonly SessionRequest[] =>
    event?.kind === 'bypassed' && !seen.has(seq - 1) ? [{ kind: 'unseen', turn, step: seq - 1, at }] : [],
  );
  const known = [...recorded, ...bypassed].sort((a, b) => a.step - b.step);
  if (!isTranscript) return known;
  let before = -1;
  const told = modelCallsOf(steps).flatMap((call): readonly SessionRequest[] => {
    const { turn, step, at, usage } = call;
    const isKnown = known.some((one) => one.step > before && one.step <= step);
    before = step;
    if (isKnown) return [];
    // A session may begin with an answer. No moment is before its first step.
    return [{ kind: 'transcript', turn, step: Math.max(1, step), at, call, ...defined({ usage }) }];
  });
  return [...known, ...told].sort((a, b) => a.step - b.step);
}
