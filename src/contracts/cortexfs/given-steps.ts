import type { FileObservation } from '../../client/decide-file.js';
import { fileObjectId } from '../../client/file-access.js';
import type { GivenStep, MadeStep, StepPlace } from '../../client/session/given-step.js';
import { callSuffix, type ObjectId, type SessionId, type Sha256, stepCallId } from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import { planCall, planMessage } from '../../session/plan-step.js';
import { defined } from '../../values/defined.js';
import { firstFrom } from '../../values/first-from.js';
import { nativeId } from '../projection/measured-entries.js';
import type { ImportPlan } from './plan-import.js';
import type { ExactStep, PlannedCall, PlannedStep } from './planned-step.js';

type ImportedFile = ImportPlan['files'][number];

/** Returns a directory's file as an observation made at the time of its version. */
function observationOf({ source: given, state, at, sha256, content }: ImportedFile): FileObservation {
  const source = parseSource(given) as FilesystemSource;
  if (state === 'deleted') return { kind: 'read', source, reading: { kind: 'missing' } };
  if (sha256 === null || state === 'stub') return { kind: 'mention', source, mtimeMs: at };
  const read = { fileHash: sha256 as Sha256, size: Buffer.byteLength(content ?? ''), mtimeMs: at };
  return {
    kind: 'read',
    source,
    reading: content === null ? { kind: 'binary', ...read } : { kind: 'text', content, ...read },
  };
}

/**
 * Returns for each step the observations of files that the database does not have. The step that
 * indexed a file adds a mention of the file. The first step after the file's version adds its
 * content, so the version is valid from its own time.
 */
function learntAt(plan: ImportPlan, known: ReadonlySet<string>): ReadonlyMap<PlannedStep, readonly FileObservation[]> {
  const learnt = new Map<PlannedStep, FileObservation[]>();
  const learn = (step: PlannedStep | undefined, file: FileObservation): void => {
    if (step === undefined) return;
    const others = learnt.get(step);
    if (others === undefined) learnt.set(step, [file]);
    else others.push(file);
  };
  const indexedAt = new Map<string, number>();
  for (const [i, { exact }] of plan.steps.entries())
    for (const id of exact?.step.changes.index ?? []) if (!indexedAt.has(id)) indexedAt.set(id, i);
  // Sorted, because the times of steps never decrease.
  const exact = plan.steps.flatMap((step) => (step.exact === undefined ? [] : [{ step, at: step.exact.step.at }]));
  for (const file of plan.files) {
    const id = fileObjectId(parseSource(file.source) as FilesystemSource);
    const first = indexedAt.get(id);
    if (first === undefined || known.has(id)) continue;
    const held = firstFrom(exact, file.at, ({ at }) => at);
    const holder = exact[Math.max(first, held)]?.step ?? exact.at(-1)?.step;
    const indexer = plan.steps[first];
    if (holder !== indexer && file.state !== 'stub')
      learn(indexer, {
        kind: 'mention',
        source: parseSource(file.source) as FilesystemSource,
        mtimeMs: indexer?.exact?.step.at ?? file.at,
      });
    learn(file.state === 'stub' ? indexer : holder, observationOf(file));
  }
  return learnt;
}

/**
 * Converts planned steps to steps of a session. Files that the database has stay unchanged, because
 * only reading their sources may change them. Calls keep their ids if those are free.
 */
export class GivenSteps {
  readonly #session: SessionId;
  readonly #seqs: readonly number[];
  readonly #learnt: ReadonlyMap<PlannedStep, readonly FileObservation[]>;
  readonly #ids = new Map<string, ObjectId>();

  constructor(
    session: SessionId,
    {
      plan,
      seqs,
      known,
    }: { readonly plan: ImportPlan; readonly seqs: readonly number[]; readonly known: ReadonlySet<string> },
  ) {
    this.#session = session;
    this.#seqs = seqs;
    this.#learnt = learntAt(plan, known);
  }

  /** Records the id of the object that a planned call became. */
  learn({ exact }: PlannedStep, id: ObjectId | undefined): void {
    if (exact?.step.call !== undefined && id !== undefined) this.#ids.set(exact.step.call.id, id);
  }

  given(planned: PlannedStep): GivenStep {
    const { call, exact } = planned;
    const make = (place: StepPlace): MadeStep => {
      const step = exact === undefined ? this.#planned(planned, place) : this.#exact(planned, exact.step, place);
      const stored =
        call === undefined ? {} : { call: { ...call, files: exact?.files.map((id) => this.#idOf(id)) ?? [] } };
      return { step, files: this.#learnt.get(planned) ?? [], ...stored };
    };
    return call === undefined ? { make } : { callId: { given: this.#givenId(call, exact?.step) }, make };
  }

  /** Returns the id to request for a call. Undefined if the session derives the same id. */
  #givenId({ id }: PlannedCall, step: Omit<Step, 'session' | 'message'> | undefined): string | undefined {
    if (step?.call === undefined) return id;
    const own = step.call.id;
    if (own === stepCallId(this.#session, step.seq)) return undefined;
    return own.endsWith(callSuffix(this.#session)) ? own : nativeId(own);
  }

  #planned({ message, native, call }: PlannedStep, { state, rules, at, call: id }: StepPlace): Step {
    if (message !== undefined) return planMessage(state, { message, at, native }, rules);
    if (call === undefined || id === undefined) throw new Error('BUG: a step of neither message nor call');
    const by = call.by === undefined ? undefined : this.#seqs[call.by];
    const before = state.pinnedIds.filter(
      (one) => call.id !== undefined && `${nativeId(one)}~`.startsWith(`${call.id}~`),
    );
    const verbs = call.own?.pin === true ? { verbs: { pin: [id], unpin: before } } : {};
    // `startedAt` is the time of the previous step, so that a pause before the call does not start
    // a turn.
    return planCall(
      state,
      { call: id, at, startedAt: state.lastAt, activateFiles: [], index: [], ...defined({ by }), ...verbs },
      rules,
    );
  }

  #exact(planned: PlannedStep, step: ExactStep, { call: id }: StepPlace): Step {
    this.learn(planned, id);
    const { message, call, changes, fresh, ...fields } = step;
    const answer = call?.answer;
    const pieces = answer?.pieces?.map((piece) =>
      typeof piece === 'string' || piece.id === undefined ? piece : { ...piece, id: this.#idOf(piece.id) },
    );
    return {
      session: this.#session,
      ...fields,
      ...defined({ message: message === undefined ? undefined : planned.message }),
      ...(call === undefined || id === undefined
        ? {}
        : {
            call: { ...call, id, ...(answer === undefined ? {} : { answer: { ...answer, ...defined({ pieces }) } }) },
          }),
      changes: Object.fromEntries(
        Object.entries(changes).map(([verb, ids]: [string, readonly ObjectId[]]) => [
          verb,
          ids.map((one) => this.#idOf(one)),
        ]),
      ) as SetChanges,
      ...(fresh === undefined ? {} : { fresh: fresh.map((one) => this.#idOf(one)) }),
    };
  }

  #idOf(id: string): ObjectId {
    return this.#ids.get(id) ?? (id as ObjectId);
  }
}
