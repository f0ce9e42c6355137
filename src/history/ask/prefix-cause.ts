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
 * What made a request begin another way than the one before: an epoch of contexts that began, a verb, a call, a message, another version of a file, what
 * the harness did or chose. `rendering`: none of these; what is shown of the same state depends on what else there is.
 */
export type PrefixCauseKind = 'epoch' | 'verb' | 'call' | 'message' | 'version' | 'harness' | 'rendering';

/** Why a request does not begin with the whole request before it. */
export interface PrefixCause {
  readonly kind: PrefixCauseKind;
  /** One sentence. */
  readonly why: string;
  /** The step that brought it about, from the beginning of the session. */
  readonly step?: number;
  readonly object?: ObjectId;
  /** The epoch that began, and what that was said to cost when it was decided. */
  readonly epoch?: { readonly number: number; readonly reason: BorderReason; readonly price?: BorderPrice };
  readonly version?: { readonly number: number; readonly validTime: Date; readonly txId: number };
}

/** Two requests, and the pieces at which they part; undefined where one of them has ended. */
export interface Parted {
  readonly from: RebuiltAssembly;
  readonly to: RebuiltAssembly;
  readonly pieceFrom: RequestPiece | undefined;
  readonly pieceTo: RequestPiece | undefined;
  /** The object whose line it is, of lines. */
  readonly lineObject: ObjectId | undefined;
  /** The steps between the two. */
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

/** What a step did, in words. */
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

/** The objects that may stand behind a difference: those whose text it is, and the files of a call, which its block may name instead of repeating them. */
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

/** What stands behind the harness's own messages moves back as they grow; what they were stands in the chat once their turn has ended. */
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

/** In the order in which one wins over another. */
const RULES: readonly Rule[] = [newEpoch, otherSettings, otherPrompt, ownHistory, listGrew, inSets, otherVersion];

/** The cause of a difference, as far as the session's steps and versions tell it. */
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
