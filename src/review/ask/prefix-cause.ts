import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { RebuiltAssembly } from '../../history/rebuild/rebuilt-assembly.js';
import type { BorderPrice, BorderReason } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import type { Step } from '../../objects/step.js';
import { isVerb } from '../../session/verb-outcome.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { objectLog } from './object-log.js';
import type { ActsBetween } from './request-pair.js';
import type { RequestPiece } from './request-pieces.js';

/**
 * The kind of cause of a changed request prefix.
 *
 * `rendering`: none of the other causes. The same state is rendered differently because other items
 * changed.
 */
export type PrefixCauseKind = 'epoch' | 'verb' | 'call' | 'message' | 'version' | 'harness' | 'rendering';

/** Why a request does not begin with the whole previous request. */
export interface PrefixCause {
  readonly kind: PrefixCauseKind;
  /** The cause in one sentence. */
  readonly why: string;
  /** The step that caused it, counted from the session's beginning. */
  readonly step?: number;
  readonly object?: ObjectId;
  /** The new epoch, and the cost that was estimated at its decision. */
  readonly epoch?: { readonly number: number; readonly reason: BorderReason; readonly price?: BorderPrice };
  readonly version?: { readonly number: number; readonly validTime: Date; readonly txId: number };
}

/** Two requests and the first pieces that differ. Undefined where a request has ended. */
export interface Parted {
  readonly acts: ActsBetween;
  readonly pieceFrom: RequestPiece | undefined;
  readonly pieceTo: RequestPiece | undefined;
  /** If the pieces are lines: the object that they show. */
  readonly lineObject: ObjectId | undefined;
  readonly present: StoreSnapshot;
}

const REASONS: Readonly<Record<BorderReason, string>> = {
  first: 'it is the first of the session',
  saving: 'shorter later calls save more than writing the text again costs',
  cold: "the provider's cache was cold",
  pressure: 'the budget of tokens was reached',
  asked: 'a verb asked for it',
  history: "the harness's list no longer began as before, or a request was sent without Palimpsest",
};

const CHANGES: Readonly<Record<keyof SetChanges, string>> = {
  index: 'found',
  activate: 'made active',
  deactivate: 'no longer active',
  pin: 'pinned',
  unpin: 'no longer pinned',
};

type Rule = (parted: Parted) => PrefixCause | undefined | Promise<PrefixCause | undefined>;

function newEpoch({ acts: { newEpoch } }: Parted): PrefixCause | undefined {
  if (newEpoch === undefined) return undefined;
  const { number, reason, price, border } = newEpoch;
  return {
    kind: 'epoch',
    why: `epoch ${number} began: ${REASONS[reason]}`,
    step: border,
    epoch: { number, reason, ...defined({ price }) },
  };
}

const chosen = ({ proof: { renderer, layout, options, mounts, folders } }: RebuiltAssembly): string =>
  JSON.stringify([renderer, layout, options, mounts, folders]);

function otherSettings({ acts }: Parted): PrefixCause | undefined {
  const [from, to] = [acts.from.rebuilt, acts.to.rebuilt];
  if (from === undefined || to === undefined || chosen(from) === chosen(to)) return undefined;
  const name = ({ proof: { layout, options } }: RebuiltAssembly): string =>
    `layout ${layout}${options.strict ? ', strict' : ''}${options.shortIds ? ', short ids' : ''}`;
  const why =
    name(from) === name(to)
      ? 'another rendering or other folders were requested'
      : `${name(to)} was requested after ${name(from)}`;
  return { kind: 'harness', why };
}

function otherPrompt({ pieceFrom, pieceTo }: Parted): PrefixCause | undefined {
  const isPrompt = pieceFrom?.section === 'system' || pieceTo?.section === 'system';
  return isPrompt ? { kind: 'harness', why: 'the harness set another system prompt' } : undefined;
}

function ownHistory({ acts, pieceFrom, pieceTo }: Parted): PrefixCause | undefined {
  const sections = [pieceFrom?.section, pieceTo?.section];
  const found = acts.steps.findLast(
    ({ event }) => event !== undefined && event.kind !== 'paused' && event.kind !== 'resumed',
  );
  if (found?.event === undefined || !(sections.includes('chat') || sections.includes('list'))) return undefined;
  const why =
    found.event.kind === 'bypassed'
      ? "an earlier model call used the harness's own list"
      : `the harness's own history was ${found.event.kind}`;
  return { kind: 'harness', why, step: found.seq };
}

/** Describes the effect of a step. */
function byStep(
  step: Step,
  acts: ActsBetween,
  { what, object }: { readonly what: string; readonly object?: ObjectId },
): PrefixCause {
  const { seq, by } = step;
  const tool = acts.toolOf(step);
  const who = by === undefined ? acts.authorOf(step) : 'a person';
  const kind = by !== undefined || isVerb(tool) ? 'verb' : tool === undefined ? 'message' : 'call';
  return { kind, why: `${what}: step ${seq}, ${who}`, step: seq, ...defined({ object }) };
}

/**
 * Returns the objects that can explain a difference: those that the pieces show, and the files of
 * the calls that they show. A call's block may name a file without repeating its text.
 */
function suspects({ acts, pieceFrom, pieceTo, lineObject }: Parted): readonly ObjectId[] {
  const own = [lineObject, pieceTo?.object, pieceFrom?.object].flatMap((id) => id ?? []);
  const { pool } = acts.to;
  const files = pool.flatMap((one) => (one.type === 'toolcall' && own.includes(one.id) ? one.fileRefs : []));
  return [...new Set([...own, ...files])];
}

function inSets(parted: Parted): PrefixCause | undefined {
  for (const object of suspects(parted)) {
    const found = parted.acts.setChange(object, Object.keys(CHANGES) as (keyof SetChanges)[]);
    if (found !== undefined) return byStep(found.step, parted.acts, { what: CHANGES[found.change], object });
  }
  return undefined;
}

const asShown = (one: ObjectMetadata | undefined): string =>
  one?.type === 'file' ? `${one.state} ${one.fileHash} ${one.contentHash}` : '';

async function otherVersion(parted: Parted): Promise<PrefixCause | undefined> {
  const { acts, present } = parted;
  const { from, to } = acts;
  for (const id of suspects(parted)) {
    const [before, after] = [from, to].map(({ pool }) => pool.find((one) => one.id === id));
    if (after?.type !== 'file' || asShown(before) === asShown(after)) continue;
    const { fileHash, contentHash, displayPath } = after;
    const versions = await objectLog(present, id);
    const equal = versions.filter((one) => one.fileHash === fileHash && one.contentHash === contentHash);
    const found = equal.find(({ validTime }) => validTime.getTime() <= to.of.at) ?? equal[0];
    const version =
      found === undefined ? undefined : { number: found.number, validTime: found.validTime, txId: found.txId };
    return { kind: 'version', why: `${displayPath} changed`, object: id, ...defined({ version }) };
  }
  return undefined;
}

/**
 * Finds a difference that comes from the growth of the harness's own list. New messages move the
 * items after the list. Once a turn has ended, its messages move to the chat.
 */
function listGrew({ acts, pieceTo, pieceFrom }: Parted): PrefixCause | undefined {
  const step = pieceTo?.step;
  if (step !== undefined && step.seq > acts.from.side.step)
    return byStep(step, acts, { what: "the harness's own list grew before it" });
  const opens = acts.steps.find((one) => one.opens !== undefined);
  const isTurn = pieceTo?.section === 'chat' || pieceFrom?.section === 'list';
  return opens !== undefined && isTurn
    ? byStep(opens, acts, { what: `turn ${opens.turn} began, so the chat now includes the turn before it` })
    : undefined;
}

/**
 * Finds the cause if a request comes from a transcript. Only the harness changes these requests;
 * Palimpsest's sets do not affect them.
 */
function inTranscript({ acts: { from, to, steps } }: Parted): PrefixCause | undefined {
  if (from.rebuilt !== undefined && to.rebuilt !== undefined) return undefined;
  if (from.rebuilt !== undefined || to.rebuilt !== undefined)
    return { kind: 'rendering', why: 'one request was recorded, and only the transcript shows the other one' };
  const found = steps.findLast(({ event }) => event?.kind === 'compacted' || event?.kind === 'shortened');
  if (found === undefined) return { kind: 'harness', why: 'the transcript does not show why' };
  const why =
    found.event?.kind === 'compacted'
      ? `the harness compacted its history at step ${found.seq}`
      : `the harness replaced a result by a shorter text at step ${found.seq}`;
  return { kind: 'harness', why, step: found.seq };
}

/** Causes in order of precedence. */
const RULES: readonly Rule[] = [
  inTranscript,
  newEpoch,
  otherSettings,
  otherPrompt,
  ownHistory,
  listGrew,
  inSets,
  otherVersion,
];

/** Determines the cause of a difference from the session's steps and versions. */
export async function causeOf(parted: Parted): Promise<PrefixCause> {
  for (const rule of RULES) {
    const cause = await rule(parted);
    if (cause !== undefined) return cause;
  }
  const last = parted.acts.steps.at(-1);
  if (last !== undefined && parted.pieceTo?.section === 'chat')
    return byStep(last, parted.acts, { what: 'the chat went on' });
  return {
    kind: 'rendering',
    why: 'no step between the two requests changed this item; it is shown differently because of other items',
  };
}
