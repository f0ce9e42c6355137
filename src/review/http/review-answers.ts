import type { DisplayPaths } from '../../assembly/metadata.js';
import type { PastContext } from '../../history/rebuild/past-context.js';
import type { Point } from '../../history/rebuild/timeline.js';
import type { SearchAnswer } from '../../history/search/search.js';
import { wireShape } from '../../http/wire-shape.js';
import type { ObjectId } from '../../objects/ids.js';
import { reportedTime } from '../../store/object-store.js';
import type { VersionText } from '../../store/texts.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import type { ContextLedger, ContextList, ReportedContext } from '../ask/context-report.js';
import type { ObjectDiff, SessionDiff } from '../ask/diff.js';
import type { LoggedTurn } from '../ask/logged-turn.js';
import type { LoggedVersion } from '../ask/object-log.js';
import type { ObjectView } from '../ask/object-view.js';
import type { PrefixDiffs } from '../ask/prefix-diff.js';
import type { RequestSide } from '../ask/request-reader.js';
import type { ReviewNote } from '../ask/review-notes.js';
import type { QueryAnswer } from '../ask/run-query.js';
import type { Sightings } from '../ask/seen-by.js';
import { type TextDiff, unifiedLines } from '../ask/text-diff.js';
import type { FileSight } from '../authors/failed-edits.js';
import type { SessionVerification } from '../verify/verify-session.js';
import { REVIEW_ANSWERS, type ReviewAnswer } from './review-schemas.js';

/** Formats a basis. */
export const shownBasis = ({ validTime, txId, txTime }: Basis) => ({
  validTime: reportedTime(validTime),
  txId,
  txTime,
});

/**
 * Formats the basis of an answer at a fixed transaction number. The time of that transaction is
 * left out, because it is not always known. So equal requests get equal answers.
 */
export const pinnedBasis = (basis: Basis) => ({ ...shownBasis(basis), txTime: undefined });

function shownPoint({ basis, place }: Point) {
  return { basis: shownBasis(basis), place: place === undefined ? undefined : { ...place, step: place.seq } };
}

type Sights = ReadonlyMap<ObjectId, readonly FileSight[]>;

function shownTurn(
  { rule, known, messages, calls, epochs, events, person, ...turn }: LoggedTurn,
  sights: Sights | undefined,
) {
  return {
    ...turn,
    openedBy: rule,
    txTime: known?.txTime,
    txId: known?.txId,
    messages: messages.map((message) => ({ ...message, step: message.seq })),
    calls: calls.map((call) => ({ ...call, step: call.seq, sights: sights?.get(call.id) ?? [] })),
    epochs: epochs.map((epoch) => ({ ...epoch, step: epoch.seq })),
    events: events.map((event) => ({ ...event, step: event.seq })),
    person: person.map((one) => ({ ...one, step: one.seq })),
  };
}

/** Formats the log of a session or an object. `sights`: those of its failed edits. */
export function logAnswer(
  basis: Basis,
  {
    turns,
    versions,
    sights,
  }: {
    readonly turns?: readonly LoggedTurn[];
    readonly versions?: readonly LoggedVersion[];
    readonly sights?: Sights;
  },
): ReviewAnswer<'Log'> {
  const shown = turns?.map((turn) => shownTurn(turn, sights));
  return wireShape(REVIEW_ANSWERS.Log, { basis: shownBasis(basis), turns: shown, versions });
}

function shownVersion(view: ObjectView, paths: DisplayPaths) {
  const { source } = view.version;
  const display = source === null ? undefined : paths.display(source);
  return { ...view, ...view.times, place: shownPoint(view.point).place, display };
}

/** Formats an object at a moment, with its whole text if it has one. */
export function showAnswer(view: ObjectView, text: VersionText | undefined, paths: DisplayPaths): ReviewAnswer<'Show'> {
  return wireShape(REVIEW_ANSWERS.Show, {
    basis: shownBasis(view.point.basis),
    object: view.version as unknown as Readonly<Record<string, unknown>>,
    version: shownVersion(view, paths),
    line: view.line,
    text: text?.text,
    whole: text?.whole ?? true,
  });
}

function shownDiff(diff: TextDiff) {
  const hunks = diff.hunks?.map((hunk) => ({ ...hunk, lines: unifiedLines({ ...diff, hunks: [hunk] }).slice(1) }));
  return { ...diff, hunks };
}

/** Formats the change of an object. */
export function objectDiffAnswer({ id, before, after, diff }: ObjectDiff, paths: DisplayPaths): ReviewAnswer<'Diff'> {
  const side = ({ point, view }: ObjectDiff['before']) => ({
    ...shownPoint(point),
    version: view === undefined ? undefined : shownVersion(view, paths),
  });
  return wireShape(REVIEW_ANSWERS.Diff, {
    object: { id, before: side(before), after: side(after), diff: shownDiff(diff) },
  });
}

/** Formats the change of a session. */
export function sessionDiffAnswer({ session, from, to, sets, active }: SessionDiff): ReviewAnswer<'Diff'> {
  const changes = active.map((change) => ({
    ...change,
    diff: change.diff === undefined ? undefined : shownDiff(change.diff),
  }));
  const shown = { id: session, from: shownPoint(from), to: shownPoint(to), sets, active: changes };
  return wireShape(REVIEW_ANSWERS.Diff, { session: shown });
}

/** Formats one of two compared requests. */
export const shownRequest = ({ size, epoch, ...side }: RequestSide) => ({ ...side, ...size, epoch: epoch?.number });

/** Formats where requests of a session diverge, and why. */
export function prefixAnswer({ compared, ...found }: PrefixDiffs): ReviewAnswer<'PrefixDiff'> {
  const shown = compared.map((one) => ({ ...one, from: shownRequest(one.from), to: shownRequest(one.to) }));
  return wireShape(REVIEW_ANSWERS.PrefixDiff, { ...found, compared: shown });
}

/** Formats the sightings of an object. */
export function whoAnswer(basis: Basis, object: ObjectId, found: Sightings): ReviewAnswer<'Who'> {
  const { sightings, damaged } = found;
  const sessions = sightings.map((sighting) => ({
    ...sighting,
    knownFrom: { ...sighting.known, step: sighting.known.seq },
  }));
  return wireShape(REVIEW_ANSWERS.Who, { basis: shownBasis(basis), object, sessions, damaged });
}

/** Formats the results of a search. */
export function searchAnswer({ basis, ...found }: SearchAnswer): ReviewAnswer<'Search'> {
  return wireShape(REVIEW_ANSWERS.Search, { ...found, basis: shownBasis(basis) });
}

const shownNote = (note: ReviewNote) => ({ ...note, step: note.seq });

/** Formats reviewers' notes. */
export function notesAnswer(notes: readonly ReviewNote[]): ReviewAnswer<'Notes'> {
  return wireShape(REVIEW_ANSWERS.Notes, { said: notes.map(shownNote) });
}

/** Formats the result of a query. */
export function queryAnswer(basis: Basis, found: QueryAnswer): ReviewAnswer<'Query'> {
  return wireShape(REVIEW_ANSWERS.Query, { basis: shownBasis(basis), ...found });
}

/** Records have no transaction time. */
const shownContext = (context: PastContext) => ({
  ...context,
  basis: shownBasis({ ...context.basis, txTime: undefined }),
});

/** Formats a whole past context. */
export function pastContextAnswer(context: PastContext): ReviewAnswer<'PastContext'> {
  return wireShape(REVIEW_ANSWERS.PastContext, shownContext(context));
}

const shownReport = ({ context, ledger }: ReportedContext) => ({
  ...shownContext(context),
  ...ledger,
  recorded: context.source === 'record',
});

/** Formats the ledgers of a session's contexts, without their objects. */
export function reportListAnswer({ reported, ...list }: ContextList): ReviewAnswer<'ReportList'> {
  return wireShape(REVIEW_ANSWERS.ReportList, { ...list, assemblies: reported.map(shownReport) });
}

const shownObject = (object: ContextLedger['objects'][number]) => ({
  ...object,
  shownChars: object.shown.chars,
  shownTokens: object.shown.tokens,
});

/** Formats the ledger of one context. */
export function reportDetailAnswer(reported: ReportedContext): ReviewAnswer<'ReportDetail'> {
  const { context, ledger } = reported;
  return wireShape(REVIEW_ANSWERS.ReportDetail, {
    ...ledger,
    session: context.session,
    assembly: shownReport(reported),
    objects: ledger.objects.map(shownObject),
    shownChars: ledger.total.chars,
  });
}

/** Formats the verification of a session. */
export function verifyAnswer({ answers, ...found }: SessionVerification): ReviewAnswer<'Verify'> {
  return wireShape(REVIEW_ANSWERS.Verify, { ...found, answers: { ...answers, read: answers.unread !== true } });
}
