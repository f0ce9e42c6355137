import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { BorderPrice, BorderReason } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import type { Step } from '../../objects/step.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { RebuiltAssembly } from '../rebuild/rebuilt-assembly.js';
import { objectLog } from './object-log.js';
import type { CallTexts, RequestPiece } from './request-pieces.js';

/**
 * The cause of a changed request prefix: a new epoch of contexts, a verb, a call, a message, a new
 * file version, or an act or choice of the harness. `rendering`: none of these. The same state is
 * shown differently because of other items.
 */
export type PrefixCauseKind = 'epoch' | 'verb' | 'call' | 'message' | 'version' | 'harness' | 'rendering';

/** Why a request does not begin with the whole previous request. */
export interface PrefixCause {
  readonly kind: PrefixCauseKind;
  /** One sentence. */
  readonly why: string;
  /** The step that caused it, counted from the session's beginning. */
  readonly step?: number;
  readonly object?: ObjectId;
  /** The new epoch, and the cost that was estimated at its decision. */
  readonly epoch?: { readonly number: number; readonly reason: BorderReason; readonly price?: BorderPrice };
  readonly version?: { readonly number: number; readonly validTime: Date; readonly txId: number };
}

/** Two requests and the first pieces that differ. A piece is undefined if its request has ended. */
export interface Parted {
  readonly from: RebuiltAssembly;
  readonly to: RebuiltAssembly;
  readonly pieceFrom: RequestPiece | undefined;
  readonly pieceTo: RequestPiece | undefined;
  /** For a line: the object that it shows. */
  readonly lineObject: ObjectId | undefined;
  /** The steps between the two requests. */
  readonly steps: readonly Step[];
  readonly calls: CallTexts;
  readonly present: StoreSnapshot;
}

const VERBS: ReadonlySet<string> = new Set(['activate', 'deactivate', 'pin', 'unpin']);

const REASONS: Readonly<Record<BorderReason, string>> = {
  first: 'it is the first of the session',
  saving: 'what later calls are shorter by is worth what is written again',
  cold: "the provider's cache was cold",
  pressure: 'the budget of tokens was reached',
  asked: 'a verb asked for it',
  history: "the harness's list no longer began as it did, or another one had gone out",
};

const CHANGES: Readonly<Record<keyof SetChanges, string>> = {
  index: 'found',
  activate: 'made active',
  deactivate: 'no longer active',
  pin: 'pinned',
  unpin: 'no longer pinned',
};

type Rule = (parted: Parted) => PrefixCause | undefined | Promise<PrefixCause | undefined>;

function newEpoch({ from, to }: Parted): PrefixCause | undefined {
  const { epoch } = to.proof;
  const before = from.proof.epoch;
  if (epoch === undefined || (before?.number === epoch.number && before.border === epoch.border)) return undefined;
  const { number, reason, price, border } = epoch;
  return {
    kind: 'epoch',
    why: `epoch ${number} began: ${REASONS[reason]}`,
    step: border,
    epoch: { number, reason, ...defined({ price }) },
  };
}

const chosen = ({ proof: { renderer, layout, options, mounts, folders } }: RebuiltAssembly): string =>
  JSON.stringify([renderer, layout, options, mounts, folders]);

function otherSettings({ from, to }: Parted): PrefixCause | undefined {
  if (chosen(from) === chosen(to)) return undefined;
  const name = ({ proof: { layout, options } }: RebuiltAssembly): string =>
    `layout ${layout}${options.strict ? ', strict' : ''}${options.shortIds ? ', short ids' : ''}`;
  const why =
    name(from) === name(to)
      ? 'another rendering or other folders were asked for'
      : `${name(to)} was asked for after ${name(from)}`;
  return { kind: 'harness', why };
}

function otherPrompt({ pieceFrom, pieceTo }: Parted): PrefixCause | undefined {
  const isPrompt = pieceFrom?.section === 'system' || pieceTo?.section === 'system';
  return isPrompt ? { kind: 'harness', why: 'the harness set another system prompt' } : undefined;
}

function ownHistory({ steps, pieceFrom, pieceTo }: Parted): PrefixCause | undefined {
  const sections = [pieceFrom?.section, pieceTo?.section];
  const found = steps.findLast(
    ({ event }) => event !== undefined && event.kind !== 'paused' && event.kind !== 'resumed',
  );
  if (found?.event === undefined || !(sections.includes('chat') || sections.includes('list'))) return undefined;
  const why =
    found.event.kind === 'bypassed'
      ? "a model call before it went out with the harness's own list"
      : `the harness's own history was ${found.event.kind}`;
  return { kind: 'harness', why, step: found.seq };
}

/** Describes the effect of a step. */
function byStep(
  { seq, call, message, by }: Step,
  calls: CallTexts,
  { what, object }: { readonly what: string; readonly object?: ObjectId },
): PrefixCause {
  const tool = call === undefined ? undefined : (calls.get(call.id)?.head.split(' ', 1)[0] ?? 'a call');
  const who = by === undefined ? (tool ?? `a message of ${message?.role ?? 'nobody'}`) : 'a person';
  const kind = by !== undefined || VERBS.has(tool ?? '') ? 'verb' : tool === undefined ? 'message' : 'call';
  return { kind, why: `${what}: step ${seq}, ${who}`, step: seq, ...defined({ object }) };
}

/**
 * The objects that can explain a difference: those with the text, and the files of a call, because
 * a call's block may name a file without repeating it.
 */
function suspects({ pieceFrom, pieceTo, lineObject, to }: Parted): readonly ObjectId[] {
  const own = [lineObject, pieceTo?.object, pieceFrom?.object].flatMap((id) => id ?? []);
  const files = to.input.pool.flatMap((one) => (one.type === 'toolcall' && own.includes(one.id) ? one.fileRefs : []));
  return [...new Set([...own, ...files])];
}

function inSets(parted: Parted): PrefixCause | undefined {
  const { steps, calls } = parted;
  for (const id of suspects(parted)) {
    for (const step of steps.toReversed()) {
      const change = (Object.keys(CHANGES) as (keyof SetChanges)[]).find((name) => step.changes[name]?.includes(id));
      if (change !== undefined) return byStep(step, calls, { what: CHANGES[change], object: id });
    }
  }
  return undefined;
}

const asShown = (one: ObjectMetadata | undefined): string =>
  one?.type === 'file' ? `${one.state} ${one.fileHash} ${one.contentHash}` : '';

async function otherVersion(parted: Parted): Promise<PrefixCause | undefined> {
  const { from, to, present } = parted;
  for (const id of suspects(parted)) {
    const [before, after] = [from, to].map(({ input }) => input.pool.find((one) => one.id === id));
    if (after?.type !== 'file' || asShown(before) === asShown(after)) continue;
    const { fileHash, contentHash, displayPath } = after;
    const versions = await objectLog(present, id);
    const equal = versions.filter((one) => one.fileHash === fileHash && one.contentHash === contentHash);
    const found = equal.find(({ validTime }) => validTime.getTime() <= to.proof.at) ?? equal[0];
    const version =
      found === undefined ? undefined : { number: found.number, validTime: found.validTime, txId: found.txId };
    return { kind: 'version', why: `${displayPath} changed`, object: id, ...defined({ version }) };
  }
  return undefined;
}

/**
 * Items behind the harness's own messages move back as the messages grow. Once a turn has ended,
 * its messages are in the chat.
 */
function listGrew({ from, pieceTo, pieceFrom, steps, calls }: Parted): PrefixCause | undefined {
  const step = pieceTo?.step;
  if (step !== undefined && step.seq > from.proof.step)
    return byStep(step, calls, { what: "the harness's own list grew in front of it" });
  const opens = steps.find((one) => one.opens !== undefined);
  const isTurn = pieceTo?.section === 'chat' || pieceFrom?.section === 'list';
  return opens !== undefined && isTurn
    ? byStep(opens, calls, { what: `turn ${opens.turn} began, and the turn before it stands in the chat` })
    : undefined;
}

/** Causes in order of precedence. */
const RULES: readonly Rule[] = [newEpoch, otherSettings, otherPrompt, ownHistory, listGrew, inSets, otherVersion];

/** Determines the cause of a difference from the session's steps and versions. */
export async function causeOf(parted: Parted): Promise<PrefixCause> {
  for (const rule of RULES) {
    const cause = await rule(parted);
    if (cause !== undefined) return cause;
  }
  const { steps, calls } = parted;
  const last = steps.at(-1);
  if (last !== undefined && parted.pieceTo?.section === 'chat')
    return byStep(last, calls, { what: 'the chat went on' });
  return {
    kind: 'rendering',
    why: 'no step between the two changed what stands there; it is shown another way because of what else there is',
  };
}
