import { isDeepStrictEqual } from 'node:util';
import { HeadHashes } from '../objects/head-hashes.js';
import { isInfrastructureId, type SessionId } from '../objects/ids.js';
import type { Step } from '../objects/step.js';
import { emptySession, type SessionState } from '../session/session-state.js';
import { type ForkPoint, marksOf, runningChatHead, runningSessionHead } from '../store/head.js';
import { toSnapshotPart } from '../store/step-part.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { BundleError } from './bundle-error.js';
import { objectsOf } from './collect-session.js';

/** The content of a bundle that describes its sessions. */
export interface SaidOfSessions {
  /** Oldest first. */
  readonly sessions: readonly SessionId[];
  /** All steps, from the first one. */
  readonly steps: readonly Step[];
  readonly heads: readonly StoredDocument[];
  readonly snapshots: readonly StoredDocument[];
  /** The ids of its files and calls. */
  readonly objects: ReadonlySet<string>;
}

const altered = (why: string): BundleError => new BundleError('altered', `the bundle was altered or damaged: ${why}`);
const quoted = (document: StoredDocument): string => JSON.stringify(document['xt/id']);
const ownerIn = (document: StoredDocument): string => String(document['xt/id']).slice(String(document.type).length + 1);

/** The state of a session after some of its steps. Call `at` in the order of the steps. */
export class Fold {
  readonly #steps: readonly Step[];
  #state: SessionState;

  constructor(session: SessionId, steps: readonly Step[]) {
    this.#steps = steps;
    this.#state = emptySession(session);
  }

  at(upto: number, document: StoredDocument): SessionState {
    while (this.#state.seq < upto) {
      const step = this.#steps[this.#state.seq];
      if (step === undefined) throw altered(`${quoted(document)} includes step ${upto}, which is missing`);
      this.#state = this.#state.after({ ...step, session: this.#state.id });
    }
    return this.#state;
  }
}

/**
 * Checks that each session of a lineage continues the previous session and wrote the steps that it
 * adds.
 */
function checkLineage({ sessions, steps, heads }: SaidOfSessions): void {
  const points = new Map<string, ForkPoint | undefined>();
  for (const document of heads) {
    const { parent } = marksOf(document);
    const owner = ownerIn(document);
    const before = sessions[sessions.indexOf(owner as SessionId) - 1];
    if (parent?.session !== before)
      throw altered(
        `${quoted(document)} continues ${parent?.session ?? 'no session'}, but the bundle lists ` +
          `${before ?? 'no session'} before it`,
      );
    if (points.has(owner) && !isDeepStrictEqual(points.get(owner), parent))
      throw altered(`versions of ${quoted(document)} were forked from different steps`);
    points.set(owner, parent);
  }
  const firsts = sessions.map((session) => (points.get(session)?.seq ?? 0) + 1);
  const wrong = steps.find(({ session, seq }) => sessions[firsts.findLastIndex((first) => first <= seq)] !== session);
  if (wrong !== undefined)
    throw altered(`step ${wrong.seq} is of session ${wrong.session}, but by its number it belongs to another session`);
}

function checkHeads({ sessions, steps, heads }: SaidOfSessions): void {
  for (const session of sessions)
    for (const [type, made] of [['chat', runningChatHead] as const, ['session', runningSessionHead] as const]) {
      const own = heads.filter((document) => document.type === type && ownerIn(document) === session);
      const [fold, hashes] = [new Fold(session, steps), new HeadHashes(session)];
      for (const document of own.sort((a, b) => (marksOf(a).upto ?? 0) - (marksOf(b).upto ?? 0))) {
        const upto = marksOf(document).upto ?? 0;
        if (!isDeepStrictEqual({ ...made(fold.at(upto, document), hashes, marksOf(document)) }, { ...document }))
          throw altered(`${quoted(document)} differs from the state that its ${upto} steps give`);
      }
    }
}

/** Checks every snapshot, because readers compose the session index from all snapshots. */
function checkSnapshots({ sessions, steps, snapshots }: SaidOfSessions): void {
  const fold = new Fold(sessions.at(-1) as SessionId, steps);
  const seqOf = ({ body }: StoredDocument): number => Number((body as { readonly seq?: unknown }).seq);
  let indexedBefore = 0;
  for (const document of [...snapshots].sort((a, b) => seqOf(a) - seqOf(b))) {
    const seq = seqOf(document);
    const session = steps[seq - 1]?.session;
    if (session === undefined) throw altered(`${quoted(document)} is of step ${seq}, which is missing`);
    const { sets } = fold.at(seq, document);
    if (!isDeepStrictEqual({ ...toSnapshotPart({ session, seq, sets, indexedBefore }) }, { ...document }))
      throw altered(`${quoted(document)} differs from the state that its ${seq} steps give`);
    indexedBefore = sets.index.length;
  }
}

/**
 * Checks the sessions of a bundle. Heads and snapshots must result from the steps. Each session
 * must continue the previous one. Steps must name every file and call.
 *
 * @throws {BundleError} `altered`
 */
export function checkSessions(said: SaidOfSessions): void {
  const named = objectsOf(said.steps);
  for (const id of said.objects) {
    if (!named.has(id)) throw altered(`no step of the session has ${JSON.stringify(id)}`);
    // A file or call never has the id of a session, chat or prompt.
    if (isInfrastructureId(id)) throw altered(`${JSON.stringify(id)} is part of a session, not a file or a call`);
  }
  checkLineage(said);
  checkHeads(said);
  checkSnapshots(said);
}
