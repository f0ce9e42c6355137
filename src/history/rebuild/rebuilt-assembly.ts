import type { EpochInput, EpochState } from '../../assembly/epoch/epoch-state.js';
import type { AssemblyInput } from '../../assembly/layout.js';
import { type Rendered, rendererOf } from '../../assembly/renderers.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { SessionState } from '../../session/session-state.js';
import { reportedTime } from '../../store/object-store.js';
import { defined } from '../../values/defined.js';
import type { ReadContext } from './context-reader.js';
import { isOfEpoch, stateAfter } from './epoch-chain.js';
import { HistoryError } from './history-error.js';
import { type Rename, renamedInput, shownName } from './shown-names.js';

/** A context that was made again from the database. */
export interface RebuiltAssembly {
  readonly proof: AssemblyProof;
  readonly rendered: Rendered;
  /** What it is made of, as the database names it. */
  readonly input: ReadContext['input'];
  /** Whether it is, byte for byte, what was handed out. */
  readonly equal: boolean;
  /**
   * The basis that it was read at; for one without a basis of its own, that which its step gives;
   * for one ahead of its basis, the moment of its handing out.
   */
  readonly basis: { readonly validTime: Date; readonly txId: number };
  /** Of a request of an epoch: what the epoch shows with it. */
  readonly epoch?: EpochState;
}

/** A basis with a transaction, so that it always reads the same. */
export type PinnedBasis = RebuiltAssembly['basis'];

/** Where a context is read, in words. */
export function basisText({ validTime, txId }: PinnedBasis): string {
  const time = reportedTime(validTime);
  return time === undefined
    ? `with the newest versions as of transaction ${txId}`
    : `at ${time.toISOString()}, transaction ${txId}`;
}

/**
 * Returns the renderer and layout of a record.
 *
 * @throws {HistoryError} `newer-renderer` if they are not known here
 */
export function requireRenderer({ renderer: name, layout: wanted, version }: AssemblyProof) {
  const renderer = rendererOf(name);
  const layout = renderer?.layouts.find((known) => known === wanted);
  if (renderer === undefined || layout === undefined || version > renderer.version) {
    const ours = renderer === undefined ? 'not known here' : `version ${renderer.version} here`;
    throw new HistoryError(
      'newer-renderer',
      `it was made by the renderer ${name}, layout ${wanted}, version ${version}, which is ${ours}: use a later Palimpsest`,
    );
  }
  return { renderer, layout };
}

/** What a record's context was read as. */
export interface ReadRecord {
  readonly context: ReadContext;
  readonly basis: PinnedBasis;
}

/** What a record's context was read as, and what it follows in its epoch. */
export interface ReadParts extends ReadRecord {
  /** What its epoch showed before it; undefined at a border, and outside of epochs. */
  readonly before?: EpochState | undefined;
}

/** The index of a session and the calls of its chat, by the names that the agent was shown. */
const shownIndex = (state: SessionState, rename: Rename): Pick<EpochInput, 'index' | 'chatSince'> => ({
  index: state.sets.index.map(rename),
  chatSince: (step) =>
    state.marksAfter(step).map(({ call, ...mark }) => (call === undefined ? mark : { ...mark, call: rename(call) })),
});

/** What a context is made of, without what it could not show (decision 0010). */
function withoutAbsent<T extends Pick<AssemblyInput, 'pool' | 'active'>>(input: T, { absent }: AssemblyProof): T {
  if (absent === undefined) return input;
  const [lines, texts] = [new Set(absent.lines), new Set([...absent.lines, ...absent.texts])];
  return {
    ...input,
    pool: input.pool.filter(({ id }) => !lines.has(id)),
    active: input.active.filter(({ metadata: { id } }) => !texts.has(id)),
  };
}

/** Renders the context of a record again and compares it with what was handed out. */
export function rebuiltOf(proof: AssemblyProof, { context, basis, before }: ReadParts): RebuiltAssembly {
  const { renderer, layout } = requireRenderer(proof);
  const { session, sha256, options, tail } = proof;
  const rename = shownName(session, proof);
  const shown = proof.rescuedFrom === undefined ? context.input : renamedInput(context.input, rename);
  const input = { ...withoutAbsent(shown, proof), options };
  const epoch = isOfEpoch(proof)
    ? { proof: proof.epoch, state: stateAfter(proof, before, { ...input, ...shownIndex(context.state, rename) }) }
    : undefined;
  const rendered = renderer.render(input, { layout, tail, ...defined({ epoch }) });
  const equal = rendered.record.sha256 === sha256 && rendered.record.chars === proof.chars;
  return { proof, rendered, input: context.input, equal, basis, ...defined({ epoch: epoch?.state }) };
}
