import type { ReadProof } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import { readAgainText } from './changed-lines.js';
import type { EpochInput, EpochState } from './epoch-state.js';

/** A reading call in a harness's list. */
export interface TailRead {
  readonly call: ObjectId;
  readonly output: string;
  /**
   * Returns the whole text of one file if the result is exactly that, apart from line numbers and
   * the tool's frame. Computed anew each time.
   */
  readonly whole: () => string | undefined;
  /** Whether it is newer than the last request. */
  readonly isNew: boolean;
}

/** Maps each call that refers to exactly one file to that file. */
const filesOf = ({ pool }: EpochInput): ReadonlyMap<ObjectId, ObjectId> =>
  new Map(
    pool.flatMap((one) => {
      const [file, ...others] = one.type === 'toolcall' ? one.fileRefs : [];
      return file === undefined || others.length > 0 ? [] : [[one.id, file] as const];
    }),
  );

/** Returns the files that calls have read since the last request. */
export function newReads(input: EpochInput, reads: readonly TailRead[]): ReadonlySet<ObjectId> {
  const fresh = reads.filter(({ isNew }) => isNew);
  if (fresh.length === 0) return new Set();
  const files = filesOf(input);
  return new Set(fresh.flatMap(({ call }) => files.get(call) ?? []));
}

/** Returns whether a read returned exactly this text. */
const isWhole = ({ output, whole }: TailRead, text: string): boolean =>
  output.length >= text.trimEnd().length && whole()?.trimEnd() === text.trimEnd();

/** Returns whether an output contains a text without line numbers. */
const isPlain = (output: string, text: string): boolean => output.includes(text.trimEnd());

/** An earlier text of a file in the request. */
interface Above {
  /** The text that the request shows. */
  readonly before: string;
  /** The last earlier read whose result was not replaced. Undefined if a block shows the text. */
  readonly answered: TailRead | undefined;
}

/**
 * Returns whether the earlier text is in the request as a whole, with line numbers if the new
 * result has them. With several earlier texts, the last one counts.
 */
function stands(
  { blocks }: EpochState,
  { before, answered }: Above,
  { file, isBare }: { readonly file: ObjectId; readonly isBare: boolean },
): boolean {
  if (answered === undefined) return isBare && blocks.some(({ id, body }) => id === file && body === before);
  return isWhole(answered, before) && (isBare || !isPlain(answered.output, before));
}

/** Minimum characters that a replacement line must save. */
const LEAST_SAVED = 100;

/**
 * Finds new whole reads of active files that a line can replace. The request must already show the
 * whole current text of the file, or an earlier one, in a block or in an earlier result. The line
 * refers to that text, so in doubt the result stays. It also stays right after such a line, because
 * the model asked for the text again.
 */
export function readAgain(state: EpochState, input: EpochInput, reads: readonly TailRead[]): readonly ReadProof[] {
  if (newReads(input, reads).size === 0) return [];
  const fileOf = filesOf(input);
  const active = new Map(input.active.map((one) => [one.metadata.id, one]));
  const found: ReadProof[] = [];
  const isLine = ({ call }: TailRead): boolean => state.lines.has(call) || found.some((one) => one.call === call);
  for (const [place, read] of reads.entries()) {
    const { metadata, content: after = null } = active.get(fileOf.get(read.call) as ObjectId) ?? {};
    const before = metadata === undefined ? undefined : state.shown.get(metadata.id);
    if (!read.isNew || isLine(read) || metadata?.type !== 'file' || metadata.contentHash === null) continue;
    if (after === null || typeof before !== 'string' || !isWhole(read, after)) continue;
    const { id, displayPath: path } = metadata;
    const earlier = reads.slice(0, place).filter(({ call }) => fileOf.get(call) === id);
    const [last, answered] = [earlier.at(-1), earlier.findLast((one) => !isLine(one))];
    if (last !== undefined && isLine(last)) continue;
    if (!stands(state, { before, answered }, { file: id, isBare: isPlain(read.output, after) })) continue;
    const inBlock = answered === undefined;
    const text = readAgainText({ path, name: state.names.get(id) ?? id, before, after, inBlock });
    if (text !== undefined && text.length + LEAST_SAVED <= read.output.length)
      found.push({ call: read.call, file: id, inBlock });
  }
  return found;
}
