import type { ReadProof } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import { readAgainText } from './changed-lines.js';
import type { EpochInput, EpochState } from './epoch-state.js';

/** A call of a harness's list that read something. */
export interface TailRead {
  readonly call: ObjectId;
  readonly output: string;
  /** The whole text of one file, where that and nothing else is what it answered, but for numbers of lines and what a tool puts around it. Made anew by each call. */
  readonly whole: () => string | undefined;
  /** Whether it came since the last request. */
  readonly isNew: boolean;
}

/** The file of each call that is about one alone. */
const filesOf = ({ pool }: EpochInput): ReadonlyMap<ObjectId, ObjectId> =>
  new Map(
    pool.flatMap((one) => {
      const [file, ...others] = one.type === 'toolcall' ? one.fileRefs : [];
      return file === undefined || others.length > 0 ? [] : [[one.id, file] as const];
    }),
  );

/** The files that calls since the last request read. */
export function newReads(input: EpochInput, reads: readonly TailRead[]): ReadonlySet<ObjectId> {
  const fresh = reads.filter(({ isNew }) => isNew);
  if (fresh.length === 0) return new Set();
  const files = filesOf(input);
  return new Set(fresh.flatMap(({ call }) => files.get(call) ?? []));
}

/** Whether a call answered this whole text. */
const isWhole = ({ output, whole }: TailRead, text: string): boolean =>
  output.length >= text.trimEnd().length && whole()?.trimEnd() === text.trimEnd();

/** Whether an output has a text without numbers of lines. */
const isPlain = (output: string, text: string): boolean => output.includes(text.trimEnd());

/** What stands above a read of a file. */
interface Above {
  /** The text that the request shows of it. */
  readonly before: string;
  /** The last read of it whose answer stands as it was. */
  readonly answered: TailRead | undefined;
}

/** Whether the text before stands above as a whole, and with numbers of lines where the new answer has them. Of several texts above, the last one is meant. */
function stands(
  { blocks }: EpochState,
  { before, answered }: Above,
  { file, isBare }: { readonly file: ObjectId; readonly isBare: boolean },
): boolean {
  if (answered === undefined) return isBare && blocks.some(({ id, body }) => id === file && body === before);
  return isWhole(answered, before) && (isBare || !isPlain(answered.output, before));
}

/** A line in the place of a text must be shorter by so many characters. */
const LEAST_SAVED = 100;

/**
 * New reads of whole active files of which the request has the text, or an earlier one, whole: in a block of ours, or in what a call before it answered. What the line
 * says is only true where that text stands, so a read that is not sure stays as it is; so does one right after a line, which asked for it.
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
    if (text !== undefined && text.length + LEAST_SAVED <= read.output.length) found.push({ call: read.call, file: id, inBlock });
  }
  return found;
}
