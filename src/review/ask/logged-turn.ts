import type { TurnSpan } from '../../history/rebuild/turn-spans.js';
import type { BorderPrice, BorderReason } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import type { HistoryEvent, ModelUsage, Step, TurnRule } from '../../objects/step.js';
import type { VersionTimes } from '../../store/queries.js';
import type { Head } from '../../store/snapshot-rows.js';
import { defined } from '../../values/defined.js';

/** A tool call as a log shows it. */
export interface LoggedCall {
  readonly id: ObjectId;
  readonly seq: number;
  readonly tool: string;
  /** The tool and what it did, in one line for people. */
  readonly name: string;
  readonly status: string;
  /** The arguments, as the harness shows them or as JSON. */
  readonly args: string;
  /** UTF-16 units of its stored output. */
  readonly chars: number;
  readonly fileRefs: readonly ObjectId[];
  /** Files of the call that could not be indexed, with reasons. */
  readonly notes: readonly string[];
}

/** A message as a log shows it. */
export interface LoggedMessage {
  readonly seq: number;
  readonly role: string;
  readonly text: string;
  /** The provider's token counts for the model call. */
  readonly usage?: ModelUsage;
}

/** An epoch of contexts that began with a model call (divergence E9). */
export interface LoggedEpoch {
  /** The last step before the model call. */
  readonly seq: number;
  readonly at: Date;
  readonly number: number;
  readonly reason: BorderReason;
  /**
   * The token counts on which the decision was based. Undefined if there was nothing to compare.
   */
  readonly price?: BorderPrice;
}

/**
 * An event of the harness: Palimpsest switched off or on, a model call with the harness's own list,
 * or a compaction.
 */
export interface LoggedEvent extends HistoryEvent {
  readonly seq: number;
  readonly at: Date;
}

/** A person's change of the sets (decision 0021). */
export interface LoggedPersonStep {
  readonly seq: number;
  readonly at: Date;
  /** If it is an undo, the step that it undoes. */
  readonly undoes?: number;
  readonly changes: Omit<Required<SetChanges>, 'index'>;
}

/** One turn of a session: its messages, its calls and the changes of the sets [§3.1]. */
export interface LoggedTurn {
  readonly session: SessionId;
  readonly turn: number;
  /** The rule that began the turn (decision B7). Undefined if its first step names no rule. */
  readonly rule: TurnRule | undefined;
  readonly ref: string | undefined;
  readonly firstStep: number;
  readonly lastStep: number;
  /** Valid times of its first and last step: when each was acknowledged. */
  readonly from: Date;
  readonly to: Date;
  /** The transaction that stored its last step. Undefined until the step is delivered. */
  readonly known: VersionTimes | undefined;
  readonly messages: readonly LoggedMessage[];
  readonly calls: readonly LoggedCall[];
  readonly epochs: readonly LoggedEpoch[];
  readonly events: readonly LoggedEvent[];
  readonly person: readonly LoggedPersonStep[];
  /**
   * Objects that entered and left the sets in this turn, in order. An object that entered and left
   * is in both lists.
   */
  readonly changes: Required<SetChanges>;
}

/** Merges the changes of some steps. */
function changesOf(steps: readonly Step[]): Required<SetChanges> {
  const of = (name: keyof SetChanges): readonly ObjectId[] => [
    ...new Set(steps.flatMap(({ changes }) => changes[name] ?? [])),
  ];
  return {
    index: of('index'),
    activate: of('activate'),
    deactivate: of('deactivate'),
    pin: of('pin'),
    unpin: of('unpin'),
  };
}

/** The calls of some turns by id, without the fields that come from their steps. */
export type LoggedCalls = ReadonlyMap<string, Omit<LoggedCall, 'seq' | 'notes'>>;

/** Returns the files that a stored call refers to. */
export const fileRefsOf = ({ file_refs: refs }: Head['document']): readonly ObjectId[] =>
  (refs as unknown as readonly ObjectId[] | undefined) ?? [];

/** Returns whether a step concerns an object. */
export function touches(step: Step, object: ObjectId, fileRefs: readonly ObjectId[] = []): boolean {
  if (step.call?.id === object || fileRefs.includes(object)) return true;
  return Object.values(step.changes).some((ids: readonly ObjectId[] | undefined) => ids?.includes(object));
}

/** A turn of one session. */
export interface FoundTurn {
  readonly session: SessionId;
  readonly span: TurnSpan;
}

/** The facts that a log needs about a session's turns, in addition to their steps. */
export interface TurnFacts {
  readonly calls: LoggedCalls;
  /** The epochs of the session, by step. */
  readonly epochs: readonly LoggedEpoch[];
  readonly times: ReadonlyMap<number, VersionTimes>;
}

/** Returns a turn as a log shows it. */
export function loggedTurn({ session, span }: FoundTurn, { calls, epochs, times }: TurnFacts): LoggedTurn {
  const { turn, steps, first, last } = span;
  const opens = steps[0]?.opens;
  return {
    session,
    turn,
    rule: opens?.rule,
    ref: opens?.ref,
    firstStep: first,
    lastStep: last,
    from: new Date(steps[0]?.at ?? 0),
    to: new Date(steps.at(-1)?.at ?? 0),
    known: times.get(last),
    messages: steps.flatMap(({ seq, message, usage }) =>
      message === undefined ? [] : [{ seq, role: message.role, text: message.text, ...defined({ usage }) }],
    ),
    calls: steps.flatMap(({ seq, call, notes = [] }) => {
      const found = call === undefined ? undefined : calls.get(call.id);
      return found === undefined ? [] : [{ ...found, seq, notes }];
    }),
    epochs: epochs.filter(({ seq }) => seq >= first && seq <= last),
    events: steps.flatMap(({ seq, at, event }) => (event === undefined ? [] : [{ ...event, seq, at: new Date(at) }])),
    person: steps.flatMap((step) => {
      if (step.by === undefined) return [];
      const { index: _, ...changes } = changesOf([step]);
      return [{ seq: step.seq, at: new Date(step.at), changes, ...defined({ undoes: step.undoes }) }];
    }),
    changes: changesOf(steps),
  };
}
