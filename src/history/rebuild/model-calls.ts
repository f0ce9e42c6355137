import type { ModelUsage, Step } from '../../objects/step.js';
import { defined } from '../../values/defined.js';

/** A call of the model: one answer, with the tool calls that it made. */
export interface ModelCall {
  /** Number in its session, from 1. */
  readonly number: number;
  readonly turn: number;
  /** The last step that its request includes: the one before its answer. */
  readonly step: number;
  readonly at: number;
  /** The steps of its answer, in order. */
  readonly answer: readonly number[];
  /** The provider's token counts. */
  readonly usage?: ModelUsage;
}

/**
 * Decides where a call of the model begins. All counts and numbers of model calls use this rule.
 * All tool calls of one answer belong to one model call, even if results come between them. An
 * answer may have several messages, and its newest message may have the provider's count.
 */
export class ModelCallRule {
  #isOpen = false;
  #isCounted = false;
  #hasResult = false;

  /** Whether an answer has begun, and nothing has ended it. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Takes a message of the model. Returns whether it begins a call of the model. */
  message(isCounted: boolean): boolean {
    const goesOn = this.#isOpen && !this.#hasResult && !(this.#isCounted && isCounted);
    this.#isCounted = isCounted || (goesOn && this.#isCounted);
    this.#hasResult = false;
    this.#isOpen = true;
    return !goesOn;
  }

  /** Takes a tool call. Returns whether it begins a model call that has no message before it. */
  toolCall(): boolean {
    const begins = !this.#isOpen;
    if (begins) this.#isCounted = false;
    this.#isOpen = true;
    return begins;
  }

  /** Takes the result of a tool call. */
  result(): void {
    this.#hasResult = true;
  }

  /** Takes anything else that ends an answer, such as a prompt or a compaction. */
  input(): void {
    this.#isOpen = false;
  }
}

/** Returns the tokens of a request by the provider's count, cached or not. */
export const promptTokens = ({ input = 0, cacheRead = 0, cacheWrite = 0 }: ModelUsage): number =>
  input + cacheRead + cacheWrite;

/** Returns whether a provider counted any token. A failed call has counts of zero. */
export const hasTokens = (usage: ModelUsage): boolean => promptTokens(usage) + (usage.output ?? 0) > 0;

/**
 * Returns whether the count of an answer is zero: the call failed, or a harness wrote the answer.
 */
const isEmpty = ({ usage }: Step): boolean => usage !== undefined && !hasTokens(usage);

type Open = Omit<ModelCall, 'answer' | 'usage'> & { readonly answer: number[]; usage: ModelUsage | undefined };

/**
 * Returns the calls of the model among a session's steps. If the harness reported no messages of
 * the model, each tool call counts as a model call.
 */
export function modelCallsOf(steps: readonly Step[]): readonly ModelCall[] {
  const isCounted = steps.some(({ usage }) => usage !== undefined && hasTokens(usage));
  const hasAnswers = steps.some(({ message }) => message?.role === 'assistant');
  const calls: Open[] = [];
  const byMessage = new Map<number, Open>();
  const rule = new ModelCallRule();
  const begin = ({ seq, turn, at }: Step): void => {
    calls.push({ number: calls.length + 1, turn, step: seq - 1, at, answer: [], usage: undefined });
  };
  for (const step of steps) {
    const { seq, message, call, event, usage } = step;
    if (message?.role === 'assistant' && !(isCounted && isEmpty(step))) {
      if (rule.message(usage !== undefined)) begin(step);
      const own = calls.at(-1) as Open;
      own.answer.push(seq);
      own.usage = usage ?? own.usage;
      byMessage.set(seq, own);
    } else if (call !== undefined) {
      const maker = call.by === undefined ? undefined : byMessage.get(call.by);
      if (maker !== undefined) {
        maker.answer.push(seq);
        continue;
      }
      if (!hasAnswers) rule.input();
      // If a session has all answers, a tool call without a preceding answer comes from the
      // harness.
      if (isCounted && !rule.isOpen) continue;
      if (rule.toolCall()) begin(step);
      calls.at(-1)?.answer.push(seq);
      rule.result();
    } else if (message !== undefined || event?.kind === 'compacted' || event?.kind === 'diverged') rule.input();
  }
  return calls.map(({ usage, ...call }) => ({ ...call, ...defined({ usage }) }));
}

/** Returns the numbers of the model calls by the steps of their answers. */
export const callNumbers = (calls: readonly ModelCall[]): ReadonlyMap<number, number> =>
  new Map(calls.flatMap(({ number, answer }) => answer.map((step) => [step, number] as const)));
