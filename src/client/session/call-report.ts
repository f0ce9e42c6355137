import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { SourceReading } from '../../filesystem/access/read-source.js';
import type { FileObservation } from '../../indexing/decide-file.js';
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
import type { AppliedWrite, Outbox } from '../delivery/outbox.js';
import { StoredCall } from '../delivery/stored-call.js';
import { fileObjectId } from '../file-access.js';
import type { LedgerCall } from './use-ledger.js';

/** A file that a call read, by its source's own bytes (decision C1). */
export interface ReportedReading {
  readonly source: FilesystemSource;
  readonly reading: SourceReading;
  /** True for a whole read, which activates the file; false for a part of it (decision D8). */
  readonly activate: boolean;
}

/** An existing regular file that a call's output mentioned [§5.6, Discovery]. */
export interface ReportedMention {
  readonly source: FilesystemSource;
  readonly mtimeMs: number;
}

/** Why a verb did nothing for one object (decisions D3, D5). */
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

/** What a verb will do for one reference of the agent. */
export type VerbEntry =
  | {
      readonly reference: string;
      readonly ok: true;
      readonly id: ObjectId;
      /** False when the object already was as asked; activating it again still makes it fresh (decision D4). */
      readonly changes: boolean;
      /** For activate: what the agent now has in context; the text as stored. */
      readonly text?: string;
      /** What the object is from this step on; a stub that was just read is no stub any more. */
      readonly metadata: ObjectMetadata;
    }
  | {
      readonly reference: string;
      readonly ok: false;
      readonly failure: VerbFailure;
      readonly id?: ObjectId;
      readonly candidates?: readonly ObjectId[];
    };

/** One verb over several references, decided but not written: it becomes one step when its call is recorded (decision D7). */
export interface VerbPlan {
  readonly verb: Verb;
  readonly entries: readonly VerbEntry[];
  /** Files that were read on the way: stubs before their activation, and whatever turned out changed or deleted [§3.3]. */
  readonly readings: readonly ReportedReading[];
}

/** The ids that a plan's verb applies to, each once, in the order given. */
export function appliedIds(plan: VerbPlan): readonly ObjectId[] {
  return [...new Set(plan.entries.flatMap((entry) => (entry.ok ? [entry.id] : [])))];
}

/** One finished tool call, as it is to be recorded [§5.7]. */
export interface CallReport {
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly argsDisplay?: string;
  readonly status: 'ok' | 'fail';
  /** The output as it is stored: whole, without headers or hints of ours (decision B8). */
  readonly content: string;
  /** The harness's own id of the call (decision B2). */
  readonly callId?: string;
  /** When the call began, milliseconds since 1970; a long call is no pause (decision B7). */
  readonly startedAt?: number;
  /** The client's own id of the turn (decision B7). */
  readonly turnRef?: string;
  readonly readings?: readonly ReportedReading[];
  readonly mentions?: readonly ReportedMention[];
  /** The step of the message that made it, where that is known (decision B6). */
  readonly by?: number;
  /** What of its files could not be taken up as it was reported, and why: kept with the step. */
  readonly notes?: readonly string[];
  /** What activate, deactivate, pin or unpin decided. */
  readonly plan?: VerbPlan;
  /** What the agent is shown, made once the call's object id is known; its hash is kept with the step (decision E7). */
  readonly answer: (callId: ObjectId) => string;
}

/** All that a call has read of files, by itself and for its verb. */
export const readingsOf = ({ readings = [], plan }: Pick<CallReport, 'readings' | 'plan'>): readonly ReportedReading[] =>
  plan === undefined ? readings : [...readings, ...plan.readings];

/** A call that is acknowledged. */
export interface RecordedCall {
  readonly callId: ObjectId;
  /** Exactly the text whose hash was kept. */
  readonly answer: string;
  /** What the window collapsed in this step [§4.3]. */
  readonly collapsed: readonly ObjectId[];
  /** What the database made of it [§5.6], once it has it; indexing outcomes are decided then (decision F6). */
  readonly applied: Promise<AppliedWrite>;
}

/** What a call did to files, as the step needs it. */
interface StepFiles {
  /** What is decided against the database: readings, and mentions of files that are new to the session. */
  readonly observations: readonly FileObservation[];
  /** Files that the call indexed or discovered, in order (decision B5). */
  readonly refs: readonly ObjectId[];
  /** Files that were read whole. */
  readonly activate: readonly ObjectId[];
}

/** Whether a reading leaves an object behind; a file that is not there only concerns objects that are. */
const INDEXES: Readonly<Record<SourceReading['kind'], boolean>> = {
  text: true,
  'large-text': true,
  binary: true,
  missing: false,
  unreachable: false,
  'not-regular': false,
};

/** Sorts out the files of a call. A file of the session's index exists in the database, so mentioning it again needs no look-up [§5.6]. */
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

/** What the step of a call is planned from. */
export function callPlan(
  { startedAt, turnRef, by, notes, plan }: CallReport,
  { files, ...made }: Pick<CallPlan, 'call' | 'at' | 'answer'> & { readonly files: StepFiles },
): CallPlan {
  const verbs = plan === undefined ? undefined : { [plan.verb]: appliedIds(plan) };
  return { ...made, ...defined({ startedAt, turnRef, by, notes, verbs }), activateFiles: files.activate, index: files.refs };
}

/** What of a call its object holds; `content` is null where it gave no text. */
export interface CallObject extends Pick<CallReport, 'tool' | 'args' | 'argsDisplay' | 'status'> {
  readonly content: string | null;
}

/** The object of a call, with its whole output where `content` holds only head and tail of it (decisions B8, C6) and its arguments where they are one text (decision 0005). */
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
  return new StoredCall({ made, ...(large ? { wholeText: { hash: hashText(text), text } } : {}), ...defined({ argsText }) });
}

/** A call as retention by use sees it: what it says, what it shows, and what the agent did by it to its sets. */
export function ledgerCall({ tool, args, content, readings = [], plan }: CallReport, id: ObjectId): LedgerCall {
  const files = readings.flatMap(({ source, reading, activate }) =>
    reading.kind === 'text' || reading.kind === 'large-text' ? [{ id: fileObjectId(source), text: reading.content, whole: activate }] : [],
  );
  const held = plan?.verb === 'activate' ? plan.entries.flatMap((entry) => (entry.ok ? [{ id: entry.id, text: entry.text }] : [])) : [];
  const dismissed = plan?.verb === 'deactivate' ? appliedIds(plan) : [];
  return { id, tool, args, content, files, held, dismissed };
}

/** What the window, not the agent, made inactive in a step. */
export function collapsedBy(step: Step, { plan }: CallReport): readonly ObjectId[] {
  const asked = new Set(plan?.verb === 'deactivate' ? appliedIds(plan) : []);
  return (step.changes.deactivate ?? []).filter((id) => !asked.has(id));
}

/** The answer, with a line for agent and user when the journal is filling up while the database is away. */
export function withNotice(answer: string, { nearFull, status }: Pick<Outbox, 'nearFull' | 'status'>): string {
  if (!nearFull) return answer;
  return `${answer}\n[Palimpsest: ${status.waiting} steps wait for the database; when there are more of them, calls will be refused. Tell the user to run: palimpsest doctor]`;
}
