import type { DisplayPaths } from '../assembly/metadata.js';
import type { ObjectDiff, SessionDiff } from '../history/ask/diff.js';
import type { LoggedVersion } from '../history/ask/object-log.js';
import type { ObjectView, VersionText } from '../history/ask/object-view.js';
import type { QueryAnswer } from '../history/ask/run-query.js';
import type { Sighting } from '../history/ask/seen-by.js';
import type { LoggedTurn } from '../history/ask/session-log.js';
import { type TextDiff, unifiedLines } from '../history/ask/text-diff.js';
import type { Point } from '../history/rebuild/timeline.js';
import type { ObjectId } from '../objects/ids.js';
import { reportedTime } from '../store/object-store.js';
import type { VersionTimes } from '../store/queries.js';
import type { Basis } from '../xtdb/db-snapshot.js';
import type { ReviewAnswer } from './review-schemas.js';

/** A basis as it is answered. */
export function basisAnswer({ validTime, txId, txTime }: Basis): ReviewAnswer<'Log'>['basis'] {
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
