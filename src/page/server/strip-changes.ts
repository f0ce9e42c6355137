import type { DisplayPaths } from '../../assembly/metadata.js';
import { kindOfRecord, withoutBypassed, withoutKnownBytes } from '../../history/rebuild/context-kind.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { sessionRequests, usagesOf } from '../../history/rebuild/session-requests.js';
import { turnSpans } from '../../history/rebuild/turn-spans.js';
import { type BandState, bandWays, type Ways } from '../../history/search/exposure.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { describe } from '../../review/ask/described-objects.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import {
  bandsOf,
  callOf,
  columnsAndWays,
  endsOfTurns,
  epochMarks,
  type StripBand,
  type StripMark,
  stepMarks,
} from './session-strip.js';
import type { StripCall } from './strip-call.js';
import { versionMarks } from './version-marks.js';

/** The state of a session at the newest transaction that the page has. */
export interface StripPlace {
  readonly session: SessionId;
  readonly txId: number;
  /** The last step. */
  readonly step: number;
  /** The first step of the last turn. */
  readonly turnFrom: number;
  /** The step of the last sent context; undefined if there is none. */
  readonly handedAt: number | undefined;
  /** The keys of the contexts of that step. */
  readonly handed: ReadonlySet<string>;
  /** The state of each object. */
  readonly states: ReadonlyMap<ObjectId, BandState>;
  /** Files whose text was in some context, with the valid time of their newest version. */
  readonly files: ReadonlyMap<ObjectId, number>;
  /** The columns and rows, if they come from the session's transcript. */
  readonly told?: Told;
}

/** A session whose requests are known from its transcript: its steps, and its columns and rows. */
interface Told {
  readonly steps: readonly Step[];
  readonly calls: readonly StripCall[];
  /** For each row, the number of state changes that the page has. */
  readonly changes: ReadonlyMap<ObjectId, number>;
}

/**
 * The change of a session between two transactions. Applied to the strip at the first transaction,
 * it gives the strip at the second transaction.
 */
export interface StripChange {
  readonly session: SessionId;
  readonly basis: Basis;
  readonly lastStep: number;
  /** `calls` replaces the columns at and after this step. Earlier columns stay. */
  readonly callsFrom: number;
  readonly calls: readonly StripCall[];
  /**
   * Objects that are new, that changed state, or whose text has another length. Each has only its
   * new states.
   */
  readonly bands: readonly StripBand[];
  readonly marks: readonly StripMark[];
}

const keyOf = ({ step, at, sha256 }: AssemblyProof): string => `${step} ${at} ${sha256}`;
/** Maximum number of steps after the last context that are read again. */
const MOST_REREAD = 200;
const IGNORED = { onDamaged: () => undefined } as const;
const NONE: Told['changes'] = new Map();

function statesAfter(steps: readonly Step[], before: ReadonlyMap<ObjectId, BandState>): Map<ObjectId, BandState> {
  const states = new Map(before);
  for (const [id, way] of bandWays(steps, before)) {
    const last = way.at(-1);
    if (last !== undefined) states.set(id, last.state);
  }
  return states;
}

/** Returns the valid times of the newest versions of some files. Other objects are left out. */
async function fileTimes(snapshot: StoreSnapshot, ids: readonly ObjectId[]): Promise<Map<ObjectId, number>> {
  const heads = [...(await snapshot.heads(ids))].filter(([, { document }]) => document.type === 'file');
  return new Map(heads.map(([id, { validTime }]) => [id as ObjectId, validTime.getTime()]));
}

/**
 * Derives the columns and states of a transcript again, because an answer may change the last ones.
 */
async function toldOf(
  present: StoreSnapshot,
  session: SessionId,
  steps: readonly Step[],
): Promise<{ readonly told: Told; readonly ways: Ways }> {
  const all = await present.assemblies(session, IGNORED);
  const sent = withoutKnownBytes(withoutBypassed(all, steps)).filter((record) => kindOfRecord(record) === 'sent');
  const requests = sessionRequests({ records: sent, steps, isTranscript: true });
  const { calls, ways } = await columnsAndWays({ present, session, steps, requests, isTranscript: true });
  return { told: { steps, calls, changes: new Map([...ways].map(([id, way]) => [id, way.length])) }, ways };
}

const isTold = (records: readonly AssemblyProof[]): boolean =>
  records.some((record) => kindOfRecord(record) === 'transcript');

const shownIn = (steps: readonly Step[]): readonly ObjectId[] => [
  ...new Set(steps.flatMap(({ changes }) => [...(changes.activate ?? []), ...(changes.pin ?? [])])),
];

function txOf({ basis }: StoreSnapshot): number {
  return basis.txId ?? -1;
}

/**
 * Returns the state of a session at a snapshot. Reads all its steps and records.
 *
 * @throws {HistoryError} `unknown-session`
 */
export async function stripPlace(snapshot: StoreSnapshot, session: SessionId): Promise<StripPlace> {
  const [steps, records] = await Promise.all([snapshot.steps(session), snapshot.assemblies(session, IGNORED)]);
  if (steps.length === 0 && (await snapshot.lineage(session)) === undefined)
    throw new HistoryError(
      'unknown-session',
      `session ${session} is not in the database at transaction ${txOf(snapshot)}`,
    );
  const handedAt = records.at(-1)?.step;
  return {
    session,
    txId: txOf(snapshot),
    step: steps.at(-1)?.seq ?? 0,
    turnFrom: turnSpans(steps).at(-1)?.first ?? 1,
    handedAt,
    handed: new Set(records.filter(({ step }) => step === handedAt).map(keyOf)),
    states: statesAfter(steps, new Map()),
    files: await fileTimes(snapshot, shownIn(steps)),
    ...(isTold(records) ? { told: (await toldOf(snapshot, session, steps)).told } : {}),
  };
}

/** Returns the rows of a transcript with the state changes that the page does not have. */
const newChanges = (ways: Ways, before: Told['changes']): Ways =>
  new Map(
    [...ways].flatMap(([id, way]) => {
      const news = way.slice(before.get(id) ?? 0);
      return news.length === 0 ? [] : [[id, news] as const];
    }),
  );

/** Returns the index of the first column that is new or has changed. */
function firstNew(calls: readonly StripCall[], before: readonly StripCall[]): number {
  const found = calls.findIndex((call, i) => JSON.stringify(call) !== JSON.stringify(before[i]));
  return found < 0 ? calls.length : found;
}

/**
 * Returns the change of a session from a known state to a snapshot, with the new state. Reads only
 * new data. Returns no change if there is none.
 *
 * @throws {XtdbError}
 */
export async function stripChange(
  place: StripPlace,
  { present, paths }: { readonly present: StoreSnapshot; readonly paths: DisplayPaths },
): Promise<{ readonly change?: StripChange; readonly place: StripPlace }> {
  const { session, step: known, turnFrom, handedAt, states, files } = place;
  const [lineage, head] = await Promise.all([present.lineage(session), present.sessionHead(session)]);
  if (lineage === undefined) return { place: { ...place, txId: txOf(present) } };
  const upto = head?.marks.upto ?? 0;
  // The provider's token counts for the last context arrive with a later step.
  const again = handedAt !== undefined && known - handedAt < MOST_REREAD;
  const first = Math.min(known + 1, handedAt === undefined ? turnFrom : again ? handedAt + 1 : known + 1);
  const [all, kept] = await Promise.all([
    present.stepsFrom(lineage, { first, upto }),
    present.assemblies(session, { first: handedAt ?? 0, ...IGNORED }),
  ]);
  const records = withoutBypassed(kept, all);
  const steps = all.filter(({ seq }) => seq > known);
  const handed = records.filter((record) => !place.handed.has(keyOf(record)));
  const step = steps.at(-1)?.seq ?? known;
  const now = await fileTimes(present, [...new Set([...files.keys(), ...shownIn(steps)])]);
  const changed = [...now].flatMap(([id, at]) => (files.has(id) && files.get(id) !== at ? [id] : []));
  // A change on disk has no step, so it is marked at the last step.
  const versions = await versionMarks(present, changed, (file, { at }) =>
    at > (files.get(file) ?? 0) ? step : undefined,
  );
  const lastHanded = records.at(-1)?.step ?? handedAt;
  const next: StripPlace = {
    session,
    txId: txOf(present),
    step,
    turnFrom: turnSpans(all).at(-1)?.first ?? turnFrom,
    handedAt: lastHanded,
    handed: new Set(records.filter((record) => record.step === lastHanded).map(keyOf)),
    states: statesAfter(steps, states),
    files: now,
  };
  if (steps.length + handed.length + versions.length === 0)
    return { place: { ...next, ...defined({ told: place.told }) } };
  const before = place.told;
  const transcript =
    before === undefined && !isTold(records)
      ? undefined
      : await toldOf(
          present,
          session,
          before === undefined
            ? await present.stepsFrom(lineage, { first: 1, upto: step })
            : [...before.steps, ...steps],
        );
  const ways = new Map(
    transcript === undefined ? bandWays(steps, states) : newChanges(transcript.ways, before?.changes ?? NONE),
  );
  for (const { object } of versions) if (!ways.has(object)) ways.set(object, []);
  const described = await describe({ present, paths }, [
    ...new Set([...ways.keys(), ...steps.flatMap(({ call }) => call?.id ?? [])]),
  ]);
  const shown = again ? records : handed;
  const usages = usagesOf({ records, steps: all });
  const isImported =
    records.length === 0 && (await present.records(session, { kinds: ['import'], ...IGNORED })).length > 0;
  const own =
    records.length === 0 ? endsOfTurns(all, isImported) : shown.map((record) => callOf(record, usages.get(record)));
  const fresh = transcript === undefined ? 0 : firstNew(transcript.told.calls, before?.calls ?? []);
  const calls = transcript?.told.calls.slice(fresh) ?? own;
  const marks = [...epochMarks(handed), ...stepMarks(steps, described), ...versions];
  const change: StripChange = {
    session,
    basis: present.basis,
    lastStep: step,
    // The first context replaces the ends of turns, which were the columns before it.
    callsFrom:
      transcript !== undefined
        ? (calls[0]?.step ?? step + 1)
        : records.length === 0
          ? turnFrom
          : again
            ? handedAt
            : handedAt === undefined
              ? 0
              : handedAt + 1,
    calls,
    bands: bandsOf(ways, described),
    marks: marks.sort((a, b) => a.step - b.step),
  };
  return { change, place: { ...next, ...defined({ told: transcript?.told }) } };
}
