import { assemble, blockText } from '../../assembly/assemble.js';
import { beginEpoch, type EpochInput, type EpochState, epochText } from '../../assembly/epoch/epoch-state.js';
import { type AssemblyInput, layoutOf } from '../../assembly/layout.js';
import { metadataOf } from '../../assembly/metadata.js';
import { ContextReader } from '../../history/rebuild/context-reader.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { requireOwn } from '../../history/rebuild/foreign-session.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { AssemblyRebuilder } from '../../history/rebuild/rebuild-assembly.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { TOKENIZER } from '../../history/rebuild/tokenizer.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { requireObject } from '../../review/ask/find-object.js';
import { countTokens } from '../../review/ask/token-count.js';
import type { SessionState } from '../../session/session-state.js';
import { type SetOutcome, type Verb, verbOutcome } from '../../session/verb-outcome.js';
import { commonLength } from '../../values/common-length.js';

/** The cost of a verb, in tokens, for a session's next requests, compared with not using it. */
export interface VerbPrice {
  readonly session: SessionId;
  readonly object: ObjectId;
  readonly verb: Verb;
  /** The outcome of the verb; `done` if it changes something. */
  readonly outcome: SetOutcome;
  readonly tokenizer: typeof TOKENIZER;
  /** The layout of the last request; `ssot` if there was none. */
  readonly layout: 'ssot' | 'epoch';
  /** Tokens of the object's text in a request. */
  readonly text: number;
  /**
   * Tokens of the next request that the provider must read anew because of the verb. The provider
   * reads anew all text after the beginning that the request shares with the last one.
   */
  readonly written: number;
  /** Tokens by which every request grows, starting with the next; negative if requests shrink. */
  readonly perCall: number;
  /** As `perCall`, but starting with the next epoch; undefined without epochs. */
  readonly perCallFromBorder?: number;
  /**
   * Whether the numbers are exact. Otherwise they ignore the harness's own list: if it already
   * shows the object's text, activating the object costs less.
   */
  readonly isExact: boolean;
}

/** The parts of a session's next request. */
interface Next {
  readonly state: SessionState;
  readonly input: AssemblyInput;
}

/** Returns the request's content with one object added or removed. */
function withVerb({ input }: Next, verb: Verb, added: AssemblyInput['active'][number]): AssemblyInput {
  const others = input.active.filter(({ metadata }) => metadata.id !== added.metadata.id);
  if (verb === 'activate') return { ...input, active: [...others, added] };
  return verb === 'deactivate' ? { ...input, active: others } : input;
}

/** Returns the number of tokens of `after` behind its common beginning with `before`. */
const tokensBehind = (before: string, after: string): number => countTokens(after.slice(commonLength(before, after)));

/**
 * Returns the cost without epochs. Renders the next request with and without the verb, and compares
 * each with the last sent request.
 */
function ssotPrice(last: string, now: AssemblyInput, then: AssemblyInput): Pick<VerbPrice, 'written' | 'perCall'> {
  const [without, changed] = [assemble(now).text, assemble(then).text];
  const behind = (text: string): number => tokensBehind(last, text);
  return { written: behind(changed) - behind(without), perCall: countTokens(changed) - countTokens(without) };
}

const blockTokens = (input: AssemblyInput, id: ObjectId): number => {
  const block = layoutOf(input).blocks.find((one) => one.id === id);
  return block === undefined ? 0 : countTokens(blockText(block));
};

/**
 * Returns the cost in an epoch. Nothing leaves an epoch, and a text that the request lacks comes in
 * a note. The next epoch begins with the content that is active by then.
 */
function epochPrice(
  shown: EpochState,
  { state, turn }: { state: SessionState; turn: number },
  inputs: { now: AssemblyInput; then: AssemblyInput; id: ObjectId },
) {
  const { now, then, id } = inputs;
  const added = then.active.find(({ metadata }) => metadata.id === id);
  const isShown = added === undefined || shown.shown.get(id) === added.content;
  const note = isShown ? 0 : blockTokens(then, id);
  const epochInput = (input: AssemblyInput): EpochInput => ({
    ...input,
    index: state.sets.index,
    chatSince: (step) => state.marksAfter(step),
  });
  const base = (input: AssemblyInput): number =>
    countTokens(epochText({ system: null, ...beginEpoch(epochInput(input), turn) }));
  return { written: note, perCall: note, perCallFromBorder: base(then) - base(now) };
}

async function lastRequest({ contexts, present }: Timeline, session: SessionId) {
  const records = await present.assemblies(session, { onDamaged: () => undefined });
  const proof: AssemblyProof | undefined = records.at(-1);
  if (proof === undefined) return undefined;
  return new AssemblyRebuilder(contexts, present).rebuild(proof);
}

/**
 * Returns the cost of activating, deactivating, pinning or unpinning an object for a session's next
 * requests, as of the newest transaction. Changes nothing. Pinning itself is free: it keeps content
 * that would otherwise be removed.
 *
 * @throws {HistoryError} `unknown-session`, `foreign-session`, `ambiguous`, `unknown-object`; also
 *   the errors of a rebuild
 */
export async function verbPrice(
  asked: Timeline,
  { session: name, object, verb }: { readonly session: string; readonly object: string; readonly verb: Verb },
): Promise<VerbPrice> {
  const session = await requireSession(asked.present, name);
  const timeline = await asked.of(session);
  const { present, paths } = timeline;
  await requireOwn(timeline, session);
  const id = await requireObject(present, object, { session, paths });
  const [read, last] = await Promise.all([
    new ContextReader().read(present, { session, paths }),
    lastRequest(timeline, session),
  ]);
  if (read === undefined) throw new HistoryError('unknown-session', `session ${session} is not in the database`);
  const options = { strict: last?.proof.options.strict ?? false, shortIds: last?.proof.options.shortIds ?? false };
  const next: Next = { state: read.state, input: { ...read.input, options } };
  const outcome = verbOutcome(read.state, verb, id);
  const layout = last?.epoch === undefined ? 'ssot' : 'epoch';
  const common = { session, object: id, verb, outcome, tokenizer: TOKENIZER, layout } as const;
  const found = await present.get(id);
  const metadata = found === undefined ? undefined : metadataOf(found.version, found.marks, paths);
  if (found === undefined || metadata === undefined)
    throw new HistoryError('unknown-object', `the database holds no object ${JSON.stringify(id)}`);
  const then = withVerb(next, verb, { metadata, content: found.version.content });
  const text = Math.max(blockTokens(then, id), blockTokens(next.input, id)) || countTokens(found.version.content ?? '');
  if (outcome !== 'done' || then === next.input) return { ...common, text, written: 0, perCall: 0, isExact: true };
  if (last?.epoch !== undefined) {
    const turn = last.proof.tail?.turn ?? 0;
    return {
      ...common,
      text,
      ...epochPrice(last.epoch, { state: read.state, turn }, { now: next.input, then, id }),
      isExact: false,
    };
  }
  const before = last === undefined ? '' : assemble({ ...last.input, options }).text;
  return { ...common, text, ...ssotPrice(before, next.input, then), isExact: last?.proof.renderer === 'text' };
}
