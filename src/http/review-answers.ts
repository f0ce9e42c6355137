import type { DisplayPaths } from '../assembly/metadata.js';
import type { ContextLedger, ReportedContext } from '../history/ask/context-report.js';
import type { ObjectDiff, SessionDiff } from '../history/ask/diff.js';
import type { LoggedVersion } from '../history/ask/object-log.js';
import type { ObjectView } from '../history/ask/object-view.js';
import type { QueryAnswer } from '../history/ask/run-query.js';
import type { Sighting } from '../history/ask/seen-by.js';
import type { LoggedTurn } from '../history/ask/session-log.js';
import { type TextDiff, unifiedLines } from '../history/ask/text-diff.js';
import type { PastContext } from '../history/rebuild/past-context.js';
import type { Point } from '../history/rebuild/timeline.js';
import type { SessionVerification } from '../history/verify/verify-session.js';
import type { ObjectId, SessionId } from '../objects/ids.js';
import { reportedTime } from '../store/object-store.js';
import type { VersionTimes } from '../store/queries.js';
import type { VersionText } from '../store/texts.js';
import type { Basis } from '../xtdb/db-snapshot.js';
import type { ReviewAnswer } from './review-schemas.js';

/** A basis as it is answered. */
function basisAnswer({ validTime, txId, txTime }: Basis): ReviewAnswer<'Log'>['basis'] {
  return { valid_time: reportedTime(validTime)?.toISOString() ?? null, tx_id: txId ?? null, tx_time: txTime?.toISOString() ?? null };
}

const timesAnswer = ({ validTime, txTime, txId }: VersionTimes) => ({
  valid_time: validTime.toISOString(),
  tx_time: txTime.toISOString(),
  tx_id: txId,
});

const placeAnswer = ({ place }: Point) => (place === undefined ? null : { session: place.session, turn: place.turn, step: place.seq });

function turnAnswer({ session, turn, rule, ref, firstStep, lastStep, from, to, known, messages, calls, changes }: LoggedTurn) {
  return {
    session,
    turn,
    opened_by: rule ?? null,
    ref: ref ?? null,
    first_step: firstStep,
    last_step: lastStep,
    from: from.toISOString(),
    to: to.toISOString(),
    tx_time: known?.txTime.toISOString() ?? null,
    tx_id: known?.txId ?? null,
    messages: messages.map(({ seq, role, text }) => ({ step: seq, role, text })),
    calls: calls.map(({ seq, fileRefs, ...call }) => ({ step: seq, ...call, file_refs: [...fileRefs] })),
    changes: {
      index: [...changes.index],
      activate: [...changes.activate],
      deactivate: [...changes.deactivate],
      pin: [...changes.pin],
      unpin: [...changes.unpin],
    },
  };
}

function versionAnswer(version: LoggedVersion) {
  const { number, type, state, chars, contentHash, fileHash, objectHash } = version;
  const hashes = { content_hash: contentHash, file_hash: fileHash, object_hash: objectHash };
  return { number, type: type ?? null, state, ...timesAnswer(version), chars, ...hashes };
}

/** The log of a session, or of an object. */
export function logAnswer(
  basis: Basis,
  found: { readonly turns: readonly LoggedTurn[] } | { readonly versions: readonly LoggedVersion[] },
): ReviewAnswer<'Log'> {
  const turns = 'turns' in found ? found.turns.map(turnAnswer) : null;
  return { basis: basisAnswer(basis), turns, versions: 'versions' in found ? found.versions.map(versionAnswer) : null };
}

function viewAnswer(view: ObjectView, paths: DisplayPaths) {
  const { source } = view.version;
  const shown = source === null ? null : paths.display(source);
  return { gone: view.gone, number: view.number, ...timesAnswer(view.times), place: placeAnswer(view.point), display: shown };
}

/** An object at a moment, with its whole text where there is one. */
export function showAnswer(view: ObjectView, text: VersionText | undefined, paths: DisplayPaths): ReviewAnswer<'Show'> {
  return {
    basis: basisAnswer(view.point.basis),
    object: { ...(view.version as unknown as Record<string, unknown>) },
    version: viewAnswer(view, paths),
    text: text?.text ?? null,
    whole: text?.whole ?? true,
  };
}

function textDiffAnswer(diff: TextDiff) {
  const { equal, added, removed, hunks } = diff;
  const shown = hunks?.map((hunk) => ({
    old_start: hunk.oldStart,
    old_lines: hunk.oldLines,
    new_start: hunk.newStart,
    new_lines: hunk.newLines,
    lines: unifiedLines({ ...diff, hunks: [hunk] }).slice(1),
  }));
  return { equal, added, removed, hunks: shown ?? null };
}

const pointAnswer = (point: Point) => ({ basis: basisAnswer(point.basis), place: placeAnswer(point) });

/** How an object changed. */
export function objectDiffAnswer({ id, before, after, diff }: ObjectDiff, paths: DisplayPaths): ReviewAnswer<'Diff'> {
  const side = ({ point, view }: ObjectDiff['before']) => ({
    ...pointAnswer(point),
    version: view === undefined ? null : viewAnswer(view, paths),
  });
  return { object: { id, before: side(before), after: side(after), diff: textDiffAnswer(diff) }, session: null };
}

/** How a session changed. */
export function sessionDiffAnswer({ session, from, to, sets, active }: SessionDiff): ReviewAnswer<'Diff'> {
  const set = ({ added, removed }: SessionDiff['sets']['index']) => ({ added: [...added], removed: [...removed] });
  return {
    object: null,
    session: {
      id: session,
      from: pointAnswer(from),
      to: pointAnswer(to),
      sets: { index: set(sets.index), pool: set(sets.pool), active: set(sets.active), pinned: set(sets.pinned) },
      active: active.map(({ id, change, charsBefore, charsAfter, diff }) => ({
        id,
        change,
        chars_before: charsBefore,
        chars_after: charsAfter,
        diff: diff === undefined ? null : textDiffAnswer(diff),
      })),
    },
  };
}

/** Who saw an object. */
export function whoAnswer(basis: Basis, object: ObjectId, sightings: readonly Sighting[]): ReviewAnswer<'Who'> {
  return {
    basis: basisAnswer(basis),
    object,
    sessions: sightings.map(({ session, known, touched, active, versions, isActive, isPinned }) => ({
      session,
      known_from: { turn: known.turn, step: known.seq, at: known.at.toISOString() },
      touched: [...touched],
      active: [...active],
      versions: versions.map(({ txId, validTime, turns }) => ({ tx_id: txId, valid_time: validTime.toISOString(), turns: [...turns] })),
      is_active: isActive,
      is_pinned: isPinned,
    })),
  };
}

/** What a query found. */
export function queryAnswer(basis: Basis, { columns, rows, limit, isCut }: QueryAnswer): ReviewAnswer<'Query'> {
  return { basis: basisAnswer(basis), columns: [...columns], rows: rows.map((row) => [...row]), limit, is_cut: isCut };
}

/** Records keep no transaction time. */
const contextBasis = ({ basis }: PastContext) => basisAnswer({ ...basis, txTime: undefined });

/** A context of the past, in whole. */
export function pastContextAnswer(context: PastContext): ReviewAnswer<'PastContext'> {
  const { session, turn, step, source, delivered, renderer, sha256, matches, text } = context;
  const how = { source, renderer, delivered: delivered ?? null, sha256, matches: matches ?? null };
  return { basis: contextBasis(context), session, turn, step, ...how, text };
}

function assemblyAnswer({ context, ledger }: ReportedContext): ReviewAnswer<'ReportDetail'>['assembly'] {
  const { turn, step, source, delivered, sha256 } = context;
  return {
    turn,
    step,
    basis: contextBasis(context),
    recorded: source === 'record',
    delivered: delivered ?? null,
    sha256,
    total: ledger.total,
    sections: ledger.sections.map((section) => ({ ...section })),
  };
}

/** The ledgers of a session's contexts, without their objects. */
export function reportListAnswer(session: SessionId, tokenizer: string, reported: readonly ReportedContext[]): ReviewAnswer<'ReportList'> {
  return { session, tokenizer, assemblies: reported.map(assemblyAnswer) };
}

const objectAnswer = ({ id, name, type, active, rawChars, shown, line, block }: ContextLedger['objects'][number]) => ({
  id,
  name,
  type,
  active,
  raw_chars: rawChars,
  shown_chars: shown.chars,
  shown_tokens: shown.tokens,
  line,
  block: block ?? null,
});

/** The ledger of one context. */
export function reportDetailAnswer(reported: ReportedContext): ReviewAnswer<'ReportDetail'> {
  const { context, ledger } = reported;
  return {
    session: context.session,
    tokenizer: ledger.tokenizer,
    assembly: assemblyAnswer(reported),
    objects: ledger.objects.map(objectAnswer),
    raw_chars: ledger.rawChars,
    shown_chars: ledger.total.chars,
  };
}

/** What was found when a session was verified. */
export function verifyAnswer({ session, ok, contexts, answers, parts }: SessionVerification): ReviewAnswer<'Verify'> {
  return {
    session,
    ok,
    contexts: {
      total: contexts.total,
      equal: contexts.equal,
      inherited: contexts.inherited,
      by_delivery: { ...contexts.byDelivery },
      handed_lists: contexts.handedLists,
      unequal: contexts.unequal.map(({ session: of, turn, step, at, delivered, sha256, cause, why, rebuilt, section, object, line }) => ({
        session: of,
        turn,
        step,
        at: at.toISOString(),
        delivered,
        sha256,
        cause,
        why,
        rebuilt: rebuilt ?? null,
        section: section ?? null,
        object: object ?? null,
        line: line ?? null,
      })),
    },
    answers: {
      read: answers.unread !== true,
      total: answers.total,
      equal: answers.equal,
      from_others: answers.fromOthers,
      kept_only: answers.keptOnly,
      unequal: answers.unequal.map(({ turn, step, call, sha256, cause, why }) => ({ turn, step, call, sha256, cause, why })),
    },
    parts: { checked: parts.checked, damages: parts.damages.map(({ part, what, of }) => ({ part, what, of })) },
  };
}
