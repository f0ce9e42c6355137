import { canonicalJson, type Json } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import type { ObjectId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { AnswerPiece, Step } from '../../objects/step.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';

/** A tool call as the model made it, with the result as the model saw it. */
export interface ShownCall {
  /** The tool and its arguments. */
  readonly head: string;
  readonly result: string;
  /**
   * Length of the result as the model saw it. It differs from that of `result` if only the file's
   * text is stored, without line numbers.
   */
  readonly chars: number;
}

/** The ways in which agents number the lines of a file. */
const NUMBERED: readonly ((line: string, number: number) => string)[] = [
  (line, number) => `${String(number).padStart(6)}→${line}`,
  (line, number) => `${String(number).padStart(6)}\t${line}`,
  (line, number) => `${number}\t${line}`,
  (line, number) => `${number}: ${line}`,
];

/**
 * Returns a file's text with the line numbers of the shown answer. Undefined if no form of line
 * numbers fits.
 */
function numbered(text: string, { sha256, chars }: { readonly sha256: string; readonly chars: number }) {
  if (chars <= text.length) return undefined;
  const all = text.split('\n');
  const lists = all.at(-1) === '' ? [all, all.slice(0, -1)] : [all];
  for (const lines of lists) {
    for (const number of NUMBERED) {
      const shown = lines.map((line, i) => number(line, i + 1)).join('\n');
      if (shown.length === chars && hashText(shown) === sha256) return shown;
    }
  }
  return undefined;
}

const joined = (pieces: readonly AnswerPiece[], output: string): string =>
  pieces
    .map((piece) => {
      if (typeof piece === 'string') return piece;
      return piece.id === undefined ? output.slice(piece.at, piece.at + piece.chars) : '';
    })
    .join('');

type ToolCall = Extract<ObjectVersion, { readonly type: 'toolcall' }>;

/** Returns the call in its recorded form, or tool and arguments if that form was cut. */
function headOf({ tool, args, args_display: display }: ToolCall): string {
  const own = `${tool} ${canonicalJson(args as Json)}`;
  return typeof display === 'string' && !display.endsWith('…') ? display : own;
}

function shownCall(version: ToolCall, { call }: Step): ShownCall {
  const { content, content_hash: hash } = version;
  const output = content ?? '';
  const head = headOf(version);
  const answer = call?.answer;
  if (answer === undefined || answer.sha256 === hash) return { head, result: output, chars: output.length };
  const { chars, pieces } = answer;
  if (pieces?.every((piece) => typeof piece === 'string' || piece.id === undefined) === true)
    return { head, result: joined(pieces, output), chars };
  return { head, result: numbered(output, answer) ?? output, chars };
}

/** Reads the calls of some steps as the model made and saw them. */
export async function shownCalls(
  snapshot: Pick<StoreSnapshot, 'heads' | 'versionsOf'>,
  steps: readonly Step[],
): Promise<ReadonlyMap<ObjectId, ShownCall>> {
  const byCall = new Map(steps.flatMap((step) => (step.call === undefined ? [] : [[step.call.id, step] as const])));
  const heads = await snapshot.heads([...byCall.keys()]);
  const versions = await snapshot.versionsOf([...heads.values()]);
  const found = new Map<ObjectId, ShownCall>();
  for (const [id, { version }] of versions) {
    const step = byCall.get(id as ObjectId);
    if (step !== undefined && version.type === 'toolcall') found.set(id as ObjectId, shownCall(version, step));
  }
  return found;
}
