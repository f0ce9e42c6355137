import { AssemblyError } from '../../assembly/layout.js';
import type { Rendered } from '../../assembly/renderers.js';
import { HistoryError, type HistoryErrorCode } from '../../history/rebuild/history-error.js';
import type { AssemblyRebuilder } from '../../history/rebuild/rebuild-assembly.js';
import type { RebuiltAssembly } from '../../history/rebuild/rebuilt-assembly.js';
import { basisText, type PinnedBasis } from '../../history/rebuild/rebuilt-assembly.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { DocumentError } from '../../objects/errors.js';
import { chatObjectId, type SessionId, type Sha256, sessionObjectId, systemPromptObjectId } from '../../objects/ids.js';
import { StoreError } from '../../store/errors.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { commonLength } from '../../values/common-length.js';
import { defined } from '../../values/defined.js';
import { ownMember } from '../../values/own-member.js';
import { XtdbError } from '../../xtdb/errors.js';
import { END_OF_TIME } from '../../xtdb/transactions.js';
import { namedIn } from './verify-parts.js';

/** Why a context cannot be rebuilt as it was. */
export type MismatchCause =
  /** A later version of Palimpsest made it, with a renderer or layout that this version lacks. */
  | 'newer-renderer'
  /** The database ends before its basis: an older copy, or another database. */
  | 'basis-not-reachable'
  /** At its basis, the session has other steps than the record says. */
  | 'steps-differ'
  /** A part of it is missing. */
  | 'missing-part'
  /** A part of it does not match its own hash. */
  | 'damaged'
  /**
   * It is equal at another basis. A later write changed the past, or the recorded basis is wrong.
   */
  | 'other-basis'
  /**
   * It was assembled from local data during an outage, and the database later stored something
   * else.
   */
  | 'made-while-away'
  /** All parts are present and match their hashes, but the text differs. */
  | 'differs';

/** A rebuilt context that differs from the original. Section and object are set if known. */
export interface AssemblyMismatch {
  readonly session: SessionId;
  readonly turn: number;
  readonly step: number;
  readonly at: Date;
  readonly delivered: string;
  readonly sha256: Sha256;
  readonly cause: MismatchCause;
  /** The explanation in one sentence. */
  readonly why: string;
  readonly rebuilt?: Sha256;
  readonly section?: string;
  readonly object?: string;
  /** The first differing line of that section, from 1, if a read at another basis shows it. */
  readonly line?: number;
}

type Finding = Pick<AssemblyMismatch, 'cause' | 'why'> & Partial<AssemblyMismatch>;

const OF_HISTORY: Readonly<Partial<Record<HistoryErrorCode, MismatchCause>>> = {
  'newer-renderer': 'newer-renderer',
  'not-yet': 'steps-differ',
  'other-steps': 'steps-differ',
};

/**
 * Converts an error about stored data to a finding. Rethrows any other error, such as an outage.
 */
function causeOf(error: unknown): Finding {
  const finding = (cause: MismatchCause): Finding => {
    const why = error instanceof Error ? error.message : String(error);
    const object = namedIn(why);
    return { cause, why, ...defined({ object }) };
  };
  if (error instanceof HistoryError) {
    const cause = OF_HISTORY[error.code];
    if (cause !== undefined) return finding(cause);
  }
  if (error instanceof StoreError && error.code === 'missing-part') return finding('missing-part');
  if (error instanceof StoreError && error.code === 'corrupt-part') return finding('damaged');
  // The chat of the context names a call that has no head.
  if (error instanceof AssemblyError) return finding('missing-part');
  if (error instanceof DocumentError) return finding('damaged');
  if (error instanceof XtdbError && error.code === 'out-of-sync') return finding('basis-not-reachable');
  throw error;
}

/** Returns the first difference between two renderings of a context. */
function firstDifference(ours: Rendered, theirs: Rendered): Pick<Finding, 'section' | 'line' | 'object'> | undefined {
  const others = new Map(theirs.sections.map(({ name, text }) => [name as string, text]));
  const names = [...new Set([...ours.sections, ...theirs.sections].map(({ name }) => name as string))];
  for (const name of names) {
    const a = ours.sections.find((section) => section.name === name)?.text ?? '';
    const b = others.get(name) ?? '';
    if (a === b) continue;
    const at = commonLength(a, b);
    const upto = a.slice(0, at + 1 + Math.max(0, a.slice(at + 1).search(/\n|\\n|$/)));
    const object = [...upto.matchAll(/\bid=("(?:[^"\\]|\\.)*"|[^\s"\\]+)/g)].at(-1)?.[1];
    return { section: name, line: a.slice(0, at).split('\n').length, ...defined({ object }) };
  }
  return undefined;
}

/** Returns the first section whose hash differs from the record's. */
function differingSection(proof: AssemblyProof, { record }: Rendered): string | undefined {
  const kept = new Map(proof.sections.map(({ name, sha256 }) => [name, sha256]));
  const made = new Map<string, Sha256>(record.sections.map(({ name, sha256 }) => [name, sha256]));
  return [...new Set([...kept.keys(), ...made.keys()])].find((name) => kept.get(name) !== made.get(name));
}

/** Returns other bases at which a context may be equal. */
function otherBases({ validTime, txId }: PinnedBasis, present: StoreSnapshot): readonly PinnedBasis[] {
  const latest = present.basis.txId ?? txId;
  return [
    { validTime, txId: latest },
    { validTime: END_OF_TIME, txId },
    { validTime: END_OF_TIME, txId: latest },
  ];
}

const OBJECT_OF_SECTION: Readonly<Record<string, (session: SessionId) => string>> = {
  system: systemPromptObjectId,
  chat: chatObjectId,
  pool: sessionObjectId,
  active: sessionObjectId,
};

/** Finds out why a rebuilt context differs. */
async function explain(
  rebuilder: AssemblyRebuilder,
  rebuilt: RebuiltAssembly,
  present: StoreSnapshot,
): Promise<Finding> {
  const { proof, rendered, basis } = rebuilt;
  const section = differingSection(proof, rendered);
  const place = { rebuilt: rendered.record.sha256, ...defined({ section }) };
  for (const other of proof.ahead === undefined ? otherBases(basis, present) : []) {
    const again = await rebuilder.at({ ...proof, basis: null }, other).catch(() => undefined);
    if (again?.equal !== true) continue;
    const why = `it is equal if read ${basisText(other)}`;
    return { ...place, ...firstDifference(rendered, again.rendered), cause: 'other-basis', why };
  }
  const object = section === undefined ? undefined : ownMember(OBJECT_OF_SECTION, section)?.(proof.session);
  const finding = { ...place, ...defined({ object }) };
  if (proof.basis === null && proof.ahead === undefined) {
    return {
      ...finding,
      cause: 'made-while-away',
      why: 'it was made while the database was away, from the data that its process had then',
    };
  }
  return {
    ...finding,
    cause: 'differs',
    why: `section ${section ?? 'none'} differs from the original, although every part matches its hash`,
  };
}

/** The readers that rebuild contexts. */
export interface VerifyingReaders {
  /** Reads every part of a context itself, without the faster attempt's data. */
  readonly rebuilder: AssemblyRebuilder;
  /**
   * A faster attempt, which may use cached steps and heads. If it returns undefined or fails, or if
   * the result differs, `rebuilder` decides.
   */
  readonly likely?: (proof: AssemblyProof) => Promise<RebuiltAssembly | undefined>;
  /** A snapshot of the newest state. */
  readonly present: StoreSnapshot;
}

/**
 * Rebuilds a context and compares it with its record. Returns undefined if they are equal, byte for
 * byte. Rethrows errors that say nothing about the record, such as XtdbError `unreachable`.
 */
export async function verifyAssembly(
  { rebuilder, likely, present }: VerifyingReaders,
  proof: AssemblyProof,
): Promise<AssemblyMismatch | undefined> {
  const mismatch = (finding: Finding): AssemblyMismatch => {
    const { session, turn, step, at, delivered, sha256 } = proof;
    return { session, turn, step, at: new Date(at), delivered, sha256, ...finding };
  };
  const latest = present.basis.txId ?? -1;
  if (proof.basis !== null && proof.basis.txId > latest) {
    const why = `it was read at transaction ${proof.basis.txId}; the last one of this database is ${latest}`;
    return mismatch({ cause: 'basis-not-reachable', why });
  }
  const first = await likely?.(proof).catch(() => undefined);
  if (first?.equal === true) return undefined;
  try {
    const rebuilt = await rebuilder.rebuild(proof);
    return rebuilt.equal ? undefined : mismatch(await explain(rebuilder, rebuilt, present));
  } catch (error) {
    return mismatch(causeOf(error));
  }
}
