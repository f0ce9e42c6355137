import { assertPlainJson } from '../objects/canonical-json.js';
import { isLeftBehind } from '../objects/chat-log.js';
import { quoted } from '../objects/errors.js';
import { isInfrastructureId, type ObjectId } from '../objects/ids.js';
import type { Message } from '../objects/object-type.js';
import type { SetChanges } from '../objects/sets.js';
import type { AnswerProof, HistoryEvent, ModelUsage, Step } from '../objects/step.js';
import { defined } from '../values/defined.js';
import { SessionError } from './errors.js';
import type { SessionState } from './session-state.js';
import { collapse, DEFAULT_POLICY, type StepRules, type Turnover } from './step-policy.js';

/** The agent's changes of its sets [§3.3]. Within a step, removals come before additions. */
export interface SetVerbs {
  readonly activate?: readonly ObjectId[];
  readonly deactivate?: readonly ObjectId[];
  readonly pin?: readonly ObjectId[];
  readonly unpin?: readonly ObjectId[];
}

/** A tool call that is about to become a step [§5.7]. */
export interface CallPlan {
  readonly call: ObjectId;
  /** Time of acknowledgement, in milliseconds since 1970. */
  readonly at: number;
  /** Start of the call; default: `at`. A long call does not count as a pause (decision B7). */
  readonly startedAt?: number;
  readonly turnRef?: string;
  readonly answer?: AnswerProof;
  /** The step of the message that made the call, if known. */
  readonly by?: number;
  /** Files that were read whole. They become active (divergence D8). */
  readonly activateFiles: readonly ObjectId[];
  /** Every read or mentioned file in order. They enter index and pool. */
  readonly index: readonly ObjectId[];
  readonly verbs?: SetVerbs;
  /** The rejected file effects of the call, and their reasons. */
  readonly notes?: readonly string[];
}

/** The details of a step that may begin a turn. */
interface TurnHint {
  /**
   * Start of the step's work, in milliseconds since 1970. A long call does not count as a pause.
   */
  readonly startedAt: number;
  readonly userMessage?: boolean;
  /** The client's id of its turn. */
  readonly turnRef?: string | undefined;
}

/**
 * Returns the rule by which a step begins a turn (decision B7). Undefined if it belongs to the
 * running turn. A turn that a user message began ends only with the next user message. Client turns
 * and pauses count only without visible user messages.
 */
function openingOf(state: SessionState, { startedAt, userMessage, turnRef }: TurnHint, pauseMs: number): Step['opens'] {
  if (userMessage === true) return { rule: 'user-message' };
  if (state.turnRule === 'user-message') return undefined;
  if (turnRef !== undefined) return turnRef === state.turnRef ? undefined : { rule: 'client-turn', ref: turnRef };
  if (state.turnRule === undefined) return { rule: 'first-step' };
  return startedAt - state.lastAt >= pauseMs ? { rule: 'pause' } : undefined;
}

interface Cause {
  readonly at: number;
  readonly hint: TurnHint;
  readonly native?: string | undefined;
  readonly usage?: ModelUsage | undefined;
  readonly event?: HistoryEvent | undefined;
  readonly message?: Message;
  readonly call?: NonNullable<Step['call']>;
  readonly index: readonly ObjectId[];
  readonly activate: readonly ObjectId[];
  readonly verbs: SetVerbs;
  readonly notes?: readonly string[] | undefined;
}

const CHANGES = ['index', 'activate', 'deactivate', 'pin', 'unpin'] as const satisfies readonly (keyof SetChanges)[];

function withoutEmpty(changes: SetChanges): SetChanges {
  const kept: { -readonly [What in keyof SetChanges]: SetChanges[What] } = {};
  for (const what of CHANGES) {
    const ids = changes[what];
    if (ids !== undefined && ids.length > 0) kept[what] = ids;
  }
  return kept;
}

/** Returns the changes that have an effect, each id once. */
function effective(state: SessionState, { index, activate, verbs }: Cause): SetChanges {
  const deactivate = new Set((verbs.deactivate ?? []).filter((id) => state.isActive(id)));
  const unpin = new Set((verbs.unpin ?? []).filter((id) => state.isPinned(id)));
  return {
    index: [...new Set(index)].filter((id) => !state.has(id)),
    activate: [...new Set([...activate, ...(verbs.activate ?? [])])].filter(
      (id) => !state.isActive(id) || deactivate.has(id),
    ),
    deactivate: [...deactivate],
    pin: [...new Set(verbs.pin)].filter((id) => !state.isPinned(id) || unpin.has(id)),
    unpin: [...unpin],
  };
}

/**
 * Adds the objects that leave the active set and those that return. The step does not activate an
 * object that leaves.
 */
function withTurnover(state: SessionState, changes: SetChanges, { leave, back }: Turnover): SetChanges {
  const gone = new Set(leave);
  return {
    ...changes,
    activate: [...new Set([...(changes.activate ?? []).filter((id) => !gone.has(id)), ...back])],
    deactivate: [...new Set([...(changes.deactivate ?? []), ...leave.filter((id) => state.isActive(id))])],
  };
}

function planStep(state: SessionState, cause: Cause, policy: StepRules): Step {
  const infrastructure = [...cause.index, ...Object.values(cause.verbs).flat()].find(isInfrastructureId);
  if (infrastructure !== undefined) {
    throw new SessionError(
      'infrastructure-object',
      `${quoted(infrastructure)} is an infrastructure object; only files and tool calls enter the sets`,
    );
  }
  const opens = openingOf(state, cause.hint, policy.pauseMs);
  const changes = effective(state, cause);
  const fresh = cause.verbs.activate ?? [];
  const draft: Step = {
    session: state.id,
    seq: state.seq + 1,
    turn: state.turn + (opens === undefined ? 0 : 1),
    at: Math.max(cause.at, state.lastAt),
    ...defined({ opens, message: cause.message, call: cause.call }),
    changes: withoutEmpty(changes),
    ...(fresh.length === 0 ? {} : { fresh: [...new Set(fresh)] }),
    ...defined({ native: cause.native, usage: cause.usage, event: cause.event, notes: cause.notes }),
  };
  const after = state.after(draft);
  const turnover = policy.turnover?.(after) ?? { leave: collapse(after, policy.window), back: [] };
  if (turnover.leave.length + turnover.back.length === 0) return draft;
  const step = { ...draft, changes: withoutEmpty(withTurnover(state, changes, turnover)) };
  state.afterTurnover(draft, step, { deactivate: turnover.leave, activate: turnover.back });
  return step;
}

/**
 * Plans the step of a tool call [§5.6, §5.7]. Files enter index and pool. Whole reads and the call
 * become active. The agent's verbs apply, and then auto-collapse (decision D4). `at` never
 * decreases (decision F7), and only effective changes are listed.
 * @throws {SessionError} `repeated-call` – the session has the id; `infrastructure-object`;
 *   `unknown-object` – a verb on an object outside the index
 */
export function planCall(state: SessionState, plan: CallPlan, policy: StepRules): Step {
  const { call, at, answer, by } = plan;
  if (state.has(call))
    throw new SessionError(
      'repeated-call',
      `session ${state.id} already has an object ${quoted(call)}; a tool call is written once`,
    );
  const cause: Cause = {
    at,
    hint: { startedAt: plan.startedAt ?? at, turnRef: plan.turnRef },
    call: { id: call, ...defined({ answer, by: by !== undefined && isLeftBehind(state.chat, by) ? by : undefined }) },
    index: [...plan.index, ...plan.activateFiles, call],
    activate: [...plan.activateFiles, call],
    verbs: plan.verbs ?? {},
    notes: plan.notes,
  };
  return planStep(state, cause, policy);
}

/** A message that is about to become a step. */
export interface MessagePlan {
  readonly message: Message;
  readonly at: number;
  /** The harness's id of the message. */
  readonly native?: string | undefined;
  /** Token counts of the model call. */
  readonly usage?: ModelUsage | undefined;
  /** Whether it opens a turn. Default: a message of the user does. */
  readonly opensTurn?: boolean | undefined;
}

/** A message to report. `opensTurn` replaces the rule that a message of the user opens a turn. */
export type SaidMessage = Message & { readonly opensTurn?: boolean | undefined };

/**
 * Plans the step of one message (decision B6). A user message opens a turn, unless `opensTurn` says
 * otherwise.
 * @throws {SessionError} `invalid-message` – the message lists tool calls, which join it only when
 *   they are recorded
 * @throws {DocumentError} a text cannot be stored exactly
 */
export function planMessage(
  state: SessionState,
  { message, at, native, usage, opensTurn = message.role === 'user' }: MessagePlan,
  policy: StepRules,
): Step {
  assertPlainJson(message, 'message');
  if (message.toolcall_refs !== undefined) {
    throw new SessionError(
      'invalid-message',
      'a message is reported without toolcall_refs: tool calls join it when they are recorded',
    );
  }
  const hint = { startedAt: at, userMessage: opensTurn };
  return planStep(state, { at, hint, message, native, usage, index: [], activate: [], verbs: {} }, policy);
}

/**
 * Plans the step of an event in the harness's history (decision F1). It changes no set, and begins
 * a turn only if there is none yet.
 */
export function planEvent(
  state: SessionState,
  { event, at }: { readonly event: HistoryEvent; readonly at: number },
  policy: StepRules,
): Step {
  assertPlainJson(event, 'event');
  return planStep(state, { at, hint: { startedAt: state.lastAt }, event, index: [], activate: [], verbs: {} }, policy);
}

/** A person's change of a session's sets. */
export interface PersonPlan {
  readonly verbs: SetVerbs;
  readonly at: number;
  /** The undone step. */
  readonly undoes?: number | undefined;
  /** Files read for it. New ones enter index and pool. */
  readonly index?: readonly ObjectId[];
}

/** Applies only the requested changes. Auto-collapse waits for the agent's next step. */
const EXACTLY: StepRules = { ...DEFAULT_POLICY, turnover: () => ({ leave: [], back: [] }) };

/**
 * Plans the step of a person's set changes (decision 0021). The step contains only these changes,
 * and begins a turn only if there is none.
 * @throws {SessionError} like `planCall`
 */
export function planPersonStep(state: SessionState, { verbs, at, undoes, index = [] }: PersonPlan): Step {
  const step = planStep(state, { at, hint: { startedAt: state.lastAt }, index, activate: [], verbs }, EXACTLY);
  return { ...step, by: 'person', ...defined({ undoes }) };
}
