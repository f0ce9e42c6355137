import { epochSettings } from '../../assembly/epoch/border.js';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import { kindOfRecord } from '../../history/rebuild/context-kind.js';
import { bordersOf } from '../../history/rebuild/epoch-chain.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { askedMoment, type MomentText, parseReference } from '../../history/rebuild/moment.js';
import type { SessionRequest } from '../../history/rebuild/session-requests.js';
import type { Point, Timeline } from '../../history/rebuild/timeline.js';
import { transcriptEntries } from '../../history/rebuild/transcript-entries.js';
import { readPresences } from '../../history/rebuild/transcript-presence.js';
import { turnSpans } from '../../history/rebuild/turn-spans.js';
import { type BandState, bandWays, type Ways } from '../../history/search/exposure.js';
import type { AssemblyProof, BorderPrice, BorderReason } from '../../objects/assembly-proof.js';
import { type ObjectId, type SessionId, systemPromptObjectId } from '../../objects/ids.js';
import type { HistoryEventKind, ModelUsage, Step } from '../../objects/step.js';
import { type Described, describe } from '../../review/ask/described-objects.js';
import { sessionCalls } from '../../review/ask/session-calls.js';
import { readReasoning } from '../../review/rows/import-records.js';
import { isVerb, VERBS } from '../../session/verb-outcome.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import type { StripCall } from './strip-call.js';
import { transcriptColumns, transcriptWays } from './transcript-strip.js';
import { changeSteps, type VersionMark, versionMarks } from './version-marks.js';

/** An object of a session's index with its states. */
export interface StripBand {
  readonly id: ObjectId;
  readonly type: ObjectMetadata['type'];
  /** Its path, or the name of the call: `read src/cart.ts 1-200`. */
  readonly name: string;
  /** The tool of a call. */
  readonly tool?: string;
  readonly failed: boolean;
  /** Current length of its text. */
  readonly chars: number;
  readonly changes: readonly { readonly step: number; readonly state: BandState }[];
}

/** An event at a step, or at a moment between steps. */
export type StripMark =
  | VersionMark
  | ({ readonly step: number; readonly at: Date } & (
      | { readonly kind: 'epoch'; readonly number: number; readonly reason: BorderReason; readonly price?: BorderPrice }
      | { readonly kind: 'verb'; readonly tool: string; readonly object: ObjectId; readonly by?: 'person' }
      | { readonly kind: 'event'; readonly event: HistoryEventKind }
    ));

/** The *strip* of a session: its model calls in order, with the composition of their contexts. */
export interface SessionStrip {
  readonly session: SessionId;
  readonly basis: Basis;
  readonly calls: readonly StripCall[];
  readonly bands: readonly StripBand[];
  readonly marks: readonly StripMark[];
  readonly lastStep: number;
  /**
   * Tokens at which an epoch ends, for a model with the default window. Undefined without epochs.
   */
  readonly budget?: number;
  /** Texts of reasoning in the transcript, which are not imported. */
  readonly reasoning: number;
}

/** Maximum files whose versions are read for marks: the most recently activated ones. */
const MOST_WATCHED = 200;

/** Builds the column of a sent context. */
export function callOf(proof: AssemblyProof, usage: ModelUsage | undefined): StripCall {
  const { turn, step, at, delivered, chars, sections, epoch } = proof;
  const sizes = sections.map((section) => ({ name: section.name, chars: section.chars }));
  const kind = kindOfRecord(proof);
  return {
    kind,
    turn,
    step,
    at: new Date(at),
    delivered,
    chars,
    sections: sizes,
    ...defined({ epoch: epoch?.number, usage }),
  };
}

/** Builds the columns of a session without known requests, one for the end of each turn. */
export function endsOfTurns(steps: readonly Step[], isTranscript: boolean): readonly StripCall[] {
  const kind = isTranscript ? 'transcript' : 'unseen';
  return turnSpans(steps).map(({ turn, last, steps: own }) => ({
    kind,
    turn,
    step: last,
    at: new Date(own.at(-1)?.at ?? 0),
    sections: [],
  }));
}

/** The sources of a strip's columns and rows. */
interface StripSource {
  readonly present: StoreSnapshot;
  readonly session: SessionId;
  readonly steps: readonly Step[];
  /** Requests up to the last step. */
  readonly requests: readonly SessionRequest[];
  readonly isTranscript: boolean;
}

/** Whether the session's requests come from its agent's transcript. */
const isOfAgent = ({ requests, isTranscript }: StripSource): boolean =>
  isTranscript && requests.every(({ proof }) => proof === undefined || proof.sent !== undefined);

/**
 * Returns the columns of a session, and the states of its objects. For a transcript, the states
 * follow from the calls that brought the objects. Otherwise they follow from the session's sets.
 */
export async function columnsAndWays(
  source: StripSource,
): Promise<{ readonly calls: readonly StripCall[]; readonly ways: Ways }> {
  const { present, session, steps, requests, isTranscript } = source;
  const known = (request: SessionRequest): StripCall => {
    const { kind, turn, step, at, proof, usage } = request;
    return proof === undefined ? { kind, turn, step, at: new Date(at), sections: [] } : callOf(proof, usage);
  };
  if (!isOfAgent(source)) {
    const calls = requests.length === 0 ? endsOfTurns(steps, isTranscript) : requests.map(known);
    return { calls, ways: bandWays(steps) };
  }
  const told = transcriptEntries(steps);
  const prompt = systemPromptObjectId(session);
  const [calls, heads, presences] = await Promise.all([
    sessionCalls(present, steps),
    present.heads([prompt]),
    readPresences(present, told),
  ]);
  const columns = transcriptColumns(requests, told, { prompt: heads.get(prompt)?.marks.size ?? 0, calls });
  return {
    calls:
      requests.length === 0
        ? endsOfTurns(steps, isTranscript)
        : requests.map(
            (request) => (request.kind === 'transcript' ? columns.get(request) : undefined) ?? known(request),
          ),
    ways: transcriptWays(presences, steps),
  };
}

/**
 * Returns marks for events of steps: verbs of the agent or a person, and events of the harness's
 * history.
 */
export function stepMarks(
  steps: readonly Step[],
  described: ReadonlyMap<ObjectId, ObjectMetadata>,
): readonly StripMark[] {
  return steps.flatMap(({ seq, at, call, event, by, changes }): readonly StripMark[] => {
    const where = { step: seq, at: new Date(at) };
    const metadata = call === undefined ? undefined : described.get(call.id);
    const verb = metadata?.type === 'toolcall' && isVerb(metadata.tool) ? metadata : undefined;
    const byPerson =
      by === undefined ? [] : VERBS.flatMap((tool) => (changes[tool] ?? []).map((object) => ({ tool, object })));
    return [
      ...(event === undefined ? [] : [{ ...where, kind: 'event', event: event.kind } as const]),
      ...(verb === undefined ? [] : [{ ...where, kind: 'verb', tool: verb.tool, object: verb.id } as const]),
      ...byPerson.map((verb) => ({ ...where, kind: 'verb', ...verb, by: 'person' }) as const),
    ];
  });
}

/** Returns marks for the epochs that begin with some contexts. */
export const epochMarks = (records: readonly AssemblyProof[]): readonly StripMark[] =>
  bordersOf(records).map(({ step, at, epoch: { number, reason, price } }) => {
    return { kind: 'epoch', step, at: new Date(at), number, reason, ...defined({ price }) };
  });

/** Returns the last step of a point: its own step, or the last one known at its basis. */
async function lastOf(
  { place, basis, snapshot }: Point,
  { present, session, steps }: { present: StoreSnapshot; session: SessionId; steps: readonly Step[] },
): Promise<number> {
  if (place !== undefined) return place.seq;
  if (snapshot === present) return steps.at(-1)?.seq ?? 0;
  const lineage = await snapshot.lineage(session);
  if (lineage === undefined) return 0;
  const { seq: known } = await snapshot.sets(session);
  return steps.findLast(({ seq, at }) => seq <= known && at <= basis.validTime.getTime())?.seq ?? 0;
}

/** Returns the rows of some objects. Objects without a description have no row. */
export function bandsOf(ways: Ways, described: ReadonlyMap<ObjectId, Described>): readonly StripBand[] {
  return [...ways].flatMap(([id, changes]) => {
    const metadata = described.get(id);
    if (metadata === undefined) return [];
    const { type, charCount: chars, name } = metadata;
    const call =
      metadata.type === 'file' ? { failed: false } : { failed: metadata.status !== 'ok', tool: metadata.tool };
    return [{ id, type, name, chars, changes, ...call }];
  });
}

/**
 * Returns the strip of a session up to a moment, without rebuilding contexts. Sizes come from
 * records, and states from steps.
 *
 * @throws {HistoryError} `unknown-session`, `malformed-moment`, `beyond-end`
 */
export async function sessionStrip(asked: Timeline, reference: string, text: MomentText): Promise<SessionStrip> {
  const { name, moment } = parseReference(reference);
  const session = await requireSession(asked.present, name);
  const timeline = await asked.of(session);
  const [point, all, requests, isTranscript] = await Promise.all([
    timeline.find(askedMoment(text, moment), session),
    timeline.steps(session),
    // The view of a damaged record reports the damage. The strip shows the other records.
    timeline.requests(session),
    timeline.isTranscript(session),
  ]);
  const { present } = timeline;
  const lastStep = await lastOf(point, { present, session, steps: all });
  const steps = lastStep === all.at(-1)?.seq ? all : all.filter(({ seq }) => seq <= lastStep);
  const own = requests.filter(({ step }) => step <= lastStep);
  const [{ calls, ways }, reasoning] = await Promise.all([
    columnsAndWays({ present, session, steps, requests: own, isTranscript }),
    isTranscript ? readReasoning(present, session) : 0,
  ]);
  const [described, made] = await Promise.all([describe(timeline, [...ways.keys()]), sessionCalls(present, steps)]);
  const bands = bandsOf(ways, described);
  const watched = bands
    .filter(({ type, changes }) => type === 'file' && changes.some(({ state }) => state !== 'line' && state !== 'out'))
    .slice(-MOST_WATCHED);
  const files = watched.map(({ id }) => id);
  const versions = await versionMarks(present, files, changeSteps({ steps, ways, calls: made }));
  const handed = own.flatMap(({ proof }) => proof ?? []);
  const marks = [...epochMarks(handed), ...stepMarks(steps, described), ...versions].sort((a, b) => a.step - b.step);
  const budget = handed.some(({ epoch }) => epoch !== undefined) ? epochSettings().budget : undefined;
  return { session, basis: point.basis, reasoning, calls, bands, marks, lastStep, ...defined({ budget }) };
}
