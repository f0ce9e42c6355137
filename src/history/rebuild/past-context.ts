import type { AssemblyInput } from '../../assembly/layout.js';
import { RENDERERS, type RendererName } from '../../assembly/renderers.js';
import type { AssemblyProof, Delivery } from '../../objects/assembly-proof.js';
import { hashText } from '../../objects/hashes.js';
import type { SessionId, Sha256 } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { erasedText, readUnproved } from '../../store/tombstones.js';
import { defined } from '../../values/defined.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import { type ContextKind, kindOfRecord, withoutBypassed, withoutKnownBytes } from './context-kind.js';
import { ContextReader, type ReadContext, type WantedContext } from './context-reader.js';
import { orderAt, orErased } from './erased.js';
import { HistoryError } from './history-error.js';
import { formatMoment, type When } from './moment.js';
import { AssemblyRebuilder } from './rebuild-assembly.js';
import { type RebuiltAssembly, shownPaths } from './rebuilt-assembly.js';
import type { Point, Timeline } from './timeline.js';
import { countedPrompt, type TranscriptPart, transcriptText } from './transcript-parts.js';

/**
 * A past context: rebuilt from its assembly record (decision E7), or assembled now as of a
 * moment.
 */
export interface PastContext {
  /** How the request is known. `unseen` for a context that was assembled now and never sent. */
  readonly kind: ContextKind;
  readonly session: SessionId;
  readonly turn: number;
  readonly step: number;
  readonly source: 'record' | 'assembled' | 'transcript';
  readonly delivered: Delivery | undefined;
  readonly renderer: RendererName;
  readonly basis: Pick<Basis, 'validTime' | 'txId'>;
  readonly sha256: Sha256;
  /** Whether the context equals its record byte for byte. Undefined without a record. */
  readonly matches: boolean | undefined;
  /** Set if parts were masked before the import. The record matches only the rest. */
  readonly redacted?: true;
  /**
   * Number of earlier requests whose messages and answers are part of the text. The provider
   * already had them, and the request sent only the new part. Undefined if the request was sent
   * whole.
   */
  readonly rebuiltFrom?: number;
  /** One text, or canonical JSON if it was handed out as messages. */
  readonly text: string;
  /** The objects that it is rendered from. For a transcript: the objects of the session's index. */
  readonly input: AssemblyInput;
  /** For a transcript: the parts of the text, and the provider's count of its tokens. */
  readonly told?: { readonly parts: readonly TranscriptPart[]; readonly counted?: number };
}

/** Returns the context of a rebuilt record. */
export function pastContextOf({ proof, rendered, input, equal, basis }: RebuiltAssembly): PastContext {
  const { session, turn, step, delivered, options, redacted, sent } = proof;
  const { record, whole } = rendered;
  const how = { renderer: record.renderer, sha256: record.sha256, text: whole, input: { ...input, options } };
  return {
    kind: kindOfRecord(proof),
    session,
    turn,
    step,
    source: 'record',
    delivered,
    basis,
    matches: equal,
    ...how,
    ...defined({ redacted, rebuiltFrom: sent?.rebuilt }),
  };
}

/**
 * Explains why a session cannot be read at a point: the session did not exist yet, or the database
 * did not know that moment yet.
 */
async function notYet(
  snapshot: StoreSnapshot,
  session: SessionId,
  { moment, place, basis }: Pick<Point, 'moment' | 'place' | 'basis'>,
): Promise<HistoryError> {
  const at = formatMoment(moment);
  if (place === undefined)
    return new HistoryError(
      'not-yet',
      `session ${session} did not exist at ${at}; palimpsest log ${session} shows its turns`,
    );
  const upto = (await snapshot.sessionHead(place.owner))?.marks.upto ?? 0;
  const known = upto === 0 ? 'it had no step there yet' : `its last step there was ${upto}`;
  return new HistoryError(
    'not-yet',
    `${at} of session ${session} was not in the database after transaction ${basis.txId ?? 'none'}: ${known}`,
  );
}

const LITERAL = { strict: false, shortIds: false } as const;

/**
 * Reads contexts of one timeline. Caches immutable data, so many contexts of a session cost little
 * more than their differences. A context without a record shows paths as the session's records do,
 * or else as the timeline does.
 */
export class PastContexts {
  readonly #rebuilder: AssemblyRebuilder;
  readonly #reader = new ContextReader();

  /** Several instances may share a `rebuilder` and its cache. */
  constructor(
    readonly timeline: Timeline,
    rebuilder = new AssemblyRebuilder(timeline.contexts, timeline.present),
  ) {
    this.#rebuilder = rebuilder;
  }

  /**
   * Returns the context that a model was sent at a moment (decision E12). For a turn, it is the
   * last context of the turn. For a step, it is the context handed out after the step. For a time
   * and for now, it is the last context of the turn that ran at that time. Without a record, it is
   * the request as a transcript shows it.
   *
   * @throws {HistoryError} `not-seen` if it has no record; `beyond-end`, `not-yet`, and errors of a
   * rebuild
   */
  async at(session: SessionId, when: When): Promise<PastContext> {
    const point = await this.timeline.find(when, session);
    // Later transactions do not change the request of a step.
    const isPlain = when.validTime === undefined && (when.tx === undefined || when.moment?.kind === 'step');
    const proof = isPlain ? await this.#recordAt(session, point) : undefined;
    if (proof !== undefined) {
      if (proof.session === session) this.know(await this.timeline.steps(session));
      return this.ofRecord(proof);
    }
    if (await this.timeline.isTranscript(session)) return this.#told(session, point);
    throw await this.#notSeen(await this.#assembled(session, point), point);
  }

  /**
   * Returns the state of a session at a moment, assembled now [§4.1]. It was never sent to a model.
   *
   * @throws {HistoryError} `beyond-end`, `not-yet`
   */
  async assembled(session: SessionId, when: When): Promise<PastContext> {
    return orErased(this.timeline.present, session, async () =>
      this.#assembled(session, await this.timeline.find(when, session)),
    );
  }

  /** Caches the steps of a session. They begin with its first step. */
  know(steps: readonly Step[]): void {
    this.#rebuilder.know(steps);
  }

  /** Rebuilds the context of a record. */
  async ofRecord(proof: AssemblyProof): Promise<PastContext> {
    const { present } = this.timeline;
    const rebuilt = await orErased(present, proof.session, () => this.#rebuilder.rebuild(proof));
    const order = rebuilt.equal ? undefined : orderAt(await readUnproved(present.documents, proof.session), proof.step);
    if (order === undefined) return pastContextOf(rebuilt);
    throw new HistoryError(
      'erased',
      `the context of turn ${proof.turn}, step ${proof.step} of session ${proof.session} showed content that was ` +
        erasedText(order),
    );
  }

  /**
   * Rebuilds the contexts of some records of a session and applies `use` to each, in the order of
   * the records.
   */
  ofRecords<T>(proofs: readonly AssemblyProof[], use: (context: PastContext) => Promise<T>): Promise<readonly T[]> {
    return this.#rebuilder.rebuildEach(proofs, (rebuilt) => use(pastContextOf(rebuilt)));
  }

  /** Returns the records of a session, oldest first. */
  records(session: SessionId): Promise<readonly AssemblyProof[]> {
    return this.timeline.records(session);
  }

  async #recordAt(session: SessionId, { moment, place }: Point): Promise<AssemblyProof | undefined> {
    if (moment.kind === 'tx') return undefined;
    const steps = await this.timeline.steps(session);
    const until = moment.kind === 'time' ? moment.time.getTime() : Number.POSITIVE_INFINITY;
    const last = steps.findLast(({ seq, at }) => (place === undefined ? at <= until : seq === place.seq));
    if (last === undefined) return undefined;
    const isOneStep = moment.kind === 'step' || (moment.kind === 'turn' && moment.step !== undefined);
    const own = isOneStep ? [last] : steps.filter(({ turn }) => turn === last.turn);
    const range = { first: own[0]?.seq ?? last.seq, last: own.at(-1)?.seq ?? last.seq };
    const records = withoutKnownBytes(withoutBypassed(await this.timeline.present.assemblies(session, range), steps));
    return records.findLast(
      (record) => record.turn === last.turn && record.at <= until && kindOfRecord(record) === 'sent',
    );
  }

  async #notSeen({ session, turn, step }: PastContext, { moment }: Point): Promise<HistoryError> {
    const records = await this.records(session);
    const before = records.findLast((record) => record.step <= step)?.step;
    const after = records.find((record) => record.step > step)?.step;
    const near = [
      ...(before === undefined ? [] : [`at step ${before} before it`]),
      ...(after === undefined ? [] : [`at step ${after} after it`]),
    ];
    const others =
      near.length === 0 ? 'no context of the session has a record' : `the nearest records are ${near.join(' and ')}`;
    return new HistoryError(
      'not-seen',
      `not seen by Palimpsest: the request to the model of session ${session} at ${formatMoment(moment)} ` +
        `(turn ${turn}, step ${step}). The agent or harness built it, or there was no model call at that step; ` +
        `${others}. --assemble (HTTP: assemble=true) shows the session as a context at that moment, which no model ` +
        'received',
    );
  }

  /** Returns a request as the transcript shows it: the turn's last request, or that of a step. */
  async #told(session: SessionId, point: Point): Promise<PastContext> {
    const { moment, basis } = point;
    const { input, state } = await this.#read(session, point, ({ sets: { index } }) => ({ index, active: [] }));
    const isOneStep = moment.kind === 'step' || (moment.kind === 'turn' && moment.step !== undefined);
    const until = moment.kind === 'time' ? moment.time.getTime() : Number.POSITIVE_INFINITY;
    const requests = await this.timeline.requests(session);
    const last = requests.findLast(({ step, turn, at }) => step <= state.seq && turn === state.turn && at <= until);
    const step = isOneStep ? state.seq : (last?.step ?? state.seq);
    const reader = await this.timeline.transcript(session);
    const request = requests.find((one) => one.step === step);
    const parts = await reader.at(request?.call?.step ?? step);
    const text = transcriptText(parts);
    const counted = countedPrompt(request?.usage);
    return {
      kind: 'transcript',
      source: 'transcript',
      session,
      turn: state.turn,
      step,
      basis,
      delivered: undefined,
      matches: undefined,
      renderer: 'text',
      sha256: hashText(text),
      text,
      input: { ...input, options: LITERAL },
      told: { parts, ...defined({ counted }) },
    };
  }

  async #assembled(session: SessionId, point: Point): Promise<PastContext> {
    const read = await this.#read(session, point);
    const input: AssemblyInput = { ...read.input, options: LITERAL };
    const { record, whole } = RENDERERS.text.render(input, { layout: 'ssot', tail: undefined });
    const how = { renderer: record.renderer, sha256: record.sha256, text: whole, input };
    const where = { session, turn: read.state.turn, step: read.state.seq, basis: point.basis };
    return { ...where, kind: 'unseen', source: 'assembled', delivered: undefined, matches: undefined, ...how };
  }

  /** Reads the session at a point, with the selected objects (default: those of its sets). */
  async #read(session: SessionId, point: Point, objects?: WantedContext['objects']): Promise<ReadContext> {
    const { place, snapshot } = point;
    const last = (await this.records(session)).at(-1);
    const paths = last === undefined ? this.timeline.paths : shownPaths(last);
    const read = await this.#reader.read(snapshot, {
      session: place?.owner ?? session,
      paths,
      ...defined({ step: place?.seq, objects }),
    });
    if (read === undefined) throw await notYet(snapshot, session, point);
    return read;
  }
}
