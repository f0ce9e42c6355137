import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { SourceReading } from '../../filesystem/access/read-source.js';
import type { Json } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import { chatObjectId, type ObjectId, type SessionId } from '../../objects/ids.js';
import { keptArgs } from '../../objects/kept-args.js';
import { abridge, isLargeText } from '../../objects/large-text.js';
import type { FilesystemSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import type { CallPlan } from '../../session/plan-step.js';
import type { SessionState } from '../../session/session-state.js';
import type { Verb } from '../../session/verb-outcome.js';
import { defined } from '../../values/defined.js';
import type { FileObservation } from '../decide-file.js';
import type { Outbox } from '../delivery/outbox.js';
import type { AppliedWrite } from '../delivery/session-write.js';
import { StoredCall } from '../delivery/stored-call.js';
import { fileObjectId } from '../file-access.js';
import type { LedgerCall } from './use-ledger.js';

/** A file that a call read, with the bytes of its source (decision C1). */
export interface ReportedReading {
  readonly source: FilesystemSource;
  readonly reading: SourceReading;
  /** True for a whole read, which activates the file. False for a partial read (decision D8). */
  readonly activate: boolean;
}

/** An existing regular file that a call's output mentioned [§5.6, Discovery]. */
export interface ReportedMention {
  readonly source: FilesystemSource;
  readonly mtimeMs: number;
}

/** Why a verb had no effect on one object (decisions D3, D5). */
export type VerbFailure =
  | 'unknown'
  | 'ambiguous'
  | 'infrastructure'
  | 'not-active'
  | 'not-pinned'
  | 'deleted'
  | 'not-text'
  | 'inaccessible'
  | 'outside-roots';

/** The effect of a verb on one reference of the agent. */
export type VerbEntry =
  | {
      readonly reference: string;
      readonly ok: true;
      readonly id: ObjectId;
      /**
       * False if the object already has the requested state. A repeated activation still refreshes
       * it (decision D4).
       */
      readonly changes: boolean;
      /** For activate: the text now in the agent's context, as stored. */
      readonly text?: string;
      /** The object's metadata after this step. A stub that was just read is no longer a stub. */
      readonly metadata: ObjectMetadata;
    }
  | {
      readonly reference: string;
      readonly ok: false;
      readonly failure: VerbFailure;
      readonly id?: ObjectId;
      readonly candidates?: readonly ObjectId[];
    };

/**
 * A verb on several references: decided, and written as one step when its call is recorded
 * (decision D7).
 */
export interface VerbPlan {
  readonly verb: Verb;
  readonly entries: readonly VerbEntry[];
  /** Files that the verb read: stubs before activation, and changed or deleted files [§3.3]. */
  readonly readings: readonly ReportedReading[];
}

/** Returns the ids that a plan's verb applies to, each once, in the given order. */
export function appliedIds(plan: VerbPlan): readonly ObjectId[] {
  return [...new Set(plan.entries.flatMap((entry) => (entry.ok ? [entry.id] : [])))];
}

/** One finished tool call to record [§5.7]. */
export interface CallReport {
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly argsDisplay?: string;
  readonly status: 'ok' | 'fail';
  /** The whole output to store, without our headers or hints (decision B8). */
  readonly content: string;
  /** The harness's id of the call (decision B2). */
  readonly callId?: string;
  /**
   * Start of the call, in milliseconds since 1970. With it, a long call does not count as a pause
   * (decision B7).
   */
  readonly startedAt?: number;
  /** The client's id of the turn (decision B7). */
  readonly turnRef?: string;
  readonly readings?: readonly ReportedReading[];
  readonly mentions?: readonly ReportedMention[];
  /** The step of the message that made the call, if known (decision B6). */
  readonly by?: number;
  /** The rejected file effects and their reasons. Stored with the step. */
  readonly notes?: readonly string[];
  /** The decisions of activate, deactivate, pin or unpin. */
  readonly plan?: VerbPlan;
  /**
   * Returns the answer for the agent, given the call's object id. The step stores its hash
   * (decision E7).
   */
  readonly answer: (callId: ObjectId) => string;
}

/** Returns all file readings of a call and of its verb. */
export const readingsOf = ({
  readings = [],
  plan,
}: Pick<CallReport, 'readings' | 'plan'>): readonly ReportedReading[] =>
  plan === undefined ? readings : [...readings, ...plan.readings];

/** An acknowledged call. */
export interface RecordedCall {
  readonly callId: ObjectId;
  /** The text for the agent. The step stores the hash of this text with its secrets masked. */
  readonly answer: string;
  /** Objects that auto-collapse deactivated in this step [§4.3]. */
  readonly collapsed: readonly ObjectId[];
  /**
   * The database's result [§5.6]. It includes the indexing outcomes, which are decided only at
   * delivery (decision F6).
   */
  readonly applied: Promise<AppliedWrite>;
}

/** The file effects of a call, as the step needs them. */
interface StepFiles {
  /**
   * Observations to decide against the database: readings, and mentions of files new to the
   * session.
   */
  readonly observations: readonly FileObservation[];
  /** Files that the call indexed or discovered, in order (decision B5). */
  readonly refs: readonly ObjectId[];
  /** Files that were read whole. */
  readonly activate: readonly ObjectId[];
}

/** Whether a reading creates an object. A missing file affects only existing objects. */
const INDEXES: Readonly<Record<SourceReading['kind'], boolean>> = {
  text: true,
  'large-text': true,
  binary: true,
  missing: false,
  unreachable: false,
  'not-regular': false,
};

/**
 * Sorts the files of a call by effect. A file in the session's index exists in the database, so a
 * mention of it needs no look-up [§5.6].
 */
export function stepFiles(report: Pick<CallReport, 'readings' | 'mentions' | 'plan'>, state: SessionState): StepFiles {
  const refs = new Set<ObjectId>();
  const activate: ObjectId[] = [];
  const observations: FileObservation[] = [];
  for (const { source, reading, activate: whole } of readingsOf(report)) {
    const id = fileObjectId(source);
    if (INDEXES[reading.kind] || state.has(id)) {
      refs.add(id);
      observations.push({ kind: 'read', source, reading });
    }
    if (whole && reading.kind !== 'binary' && INDEXES[reading.kind]) activate.push(id);
  }
  for (const { source, mtimeMs } of report.mentions ?? []) {
    const id = fileObjectId(source);
    if (!refs.has(id) && !state.has(id)) observations.push({ kind: 'mention', source, mtimeMs });
    refs.add(id);
  }
  return { observations, refs: [...refs], activate };
}

/** Returns the input for planning the step of a call. */
export function callPlan(
  { startedAt, turnRef, by, notes, plan }: CallReport,
  { files, ...made }: Pick<CallPlan, 'call' | 'at' | 'answer'> & { readonly files: StepFiles },
): CallPlan {
  const verbs = plan === undefined ? undefined : { [plan.verb]: appliedIds(plan) };
  return {
    ...made,
    ...defined({ startedAt, turnRef, by, notes, verbs }),
    activateFiles: files.activate,
    index: files.refs,
  };
}

/** The parts of a call that its object holds. `content` is null if the call returned no text. */
export interface CallObject extends Pick<CallReport, 'tool' | 'args' | 'argsDisplay' | 'status'> {
  readonly content: string | null;
}

/**
 * Returns the object of a call. Adds the whole output if `content` holds only its head and tail
 * (decisions B8, C6), and the arguments if they are one text (decision 0005).
 */
export function storedCall(
  report: CallObject,
  { id, session, refs }: { readonly id: ObjectId; readonly session: SessionId; readonly refs: readonly ObjectId[] },
): StoredCall {
  const text = report.content?.toWellFormed() ?? null;
  const large = text !== null && isLargeText(text);
  const { args, text: argsText } = keptArgs(report.args);
  const made = {
    id,
    tool: report.tool,
    args,
    ...defined({ argsDisplay: report.argsDisplay?.toWellFormed() }),
    status: report.status,
    chatRef: chatObjectId(session),
    fileRefs: refs,
    content: large ? abridge(text).content : text,
  };
  return new StoredCall({
    made,
    ...(large ? { wholeText: { hash: hashText(text), text } } : {}),
    ...defined({ argsText }),
  });
}

/**
 * Returns a call as retention by use needs it: its texts, its files, and the set changes that the
 * agent made with it.
 */
export function ledgerCall({ tool, args, content, readings = [], plan }: CallReport, id: ObjectId): LedgerCall {
  const files = readings.flatMap(({ source, reading, activate }) =>
    reading.kind === 'text' || reading.kind === 'large-text'
      ? [{ id: fileObjectId(source), text: reading.content, whole: activate }]
      : [],
  );
  const held =
    plan?.verb === 'activate'
      ? plan.entries.flatMap((entry) => (entry.ok ? [{ id: entry.id, text: entry.text }] : []))
      : [];
  const dismissed = plan?.verb === 'deactivate' ? appliedIds(plan) : [];
  return { id, tool, args, content, files, held, dismissed };
}

/** Returns the objects that the policy, not the agent, deactivated in a step. */
export function collapsedBy(step: Step, { plan }: CallReport): readonly ObjectId[] {
  const asked = new Set(plan?.verb === 'deactivate' ? appliedIds(plan) : []);
  return (step.changes.deactivate ?? []).filter((id) => !asked.has(id));
}

/** Returns the answer, with a line for agent and user if the journal fills up during an outage. */
export function withNotice(answer: string, { nearFull, status }: Pick<Outbox, 'nearFull' | 'status'>): string {
  if (!nearFull) return answer;
  return (
    `${answer}\n[Palimpsest: ${status.waiting} steps wait for the database; ` +
    'if more arrive, calls will be refused. Ask the user to run: palimpsest doctor]'
  );
}
