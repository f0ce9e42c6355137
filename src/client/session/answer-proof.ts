import { hashText } from '../../objects/hashes.js';
import type { ObjectId } from '../../objects/ids.js';
import type { AnswerPiece, AnswerProof } from '../../objects/step.js';
import { commonLengthFrom } from '../../values/common-length.js';
import { defined } from '../../values/defined.js';
import type { CallReport } from './call-report.js';

/**
 * A stored text that an answer may contain: the whole output of the call, or the whole text of the
 * object `id`.
 */
export interface PieceSource {
  readonly text: string;
  readonly id?: ObjectId;
}

/**
 * Minimum length of a piece of a stored text, in UTF-16 units. A shorter piece takes less room as
 * own text.
 */
const LEAST_SAME = 48;
/** Maximum length of an answer's own text, in UTF-16 units. A longer one is not worth storing. */
const MOST_OWN = 4_000;
const MOST_PIECES = 64;

interface Match {
  readonly source: PieceSource;
  readonly at: number;
  readonly chars: number;
}

function matchAt(answer: string, from: number, sources: readonly PieceSource[]): Match | undefined {
  const probe = answer.slice(from, from + LEAST_SAME);
  if (probe.length < LEAST_SAME) return undefined;
  let best: Match | undefined;
  for (const source of sources) {
    const at = source.text.indexOf(probe);
    if (at < 0) continue;
    const chars = commonLengthFrom({ text: answer, at: from }, { text: source.text, at });
    if (best === undefined || chars > best.chars) best = { source, at, chars };
  }
  return best;
}

/** A slice would keep the whole text in memory, so copy it. */
const copied = (text: string, from: number, to: number): string => JSON.parse(JSON.stringify(text.slice(from, to)));

/**
 * Splits an answer into pieces of stored texts and its own text, such as headers and hints. Looks
 * for a piece at each line start and after each piece. `joinPieces` rebuilds the answer. Returns
 * undefined if too much of the answer is its own text. Then only its hash is stored.
 */
export function answerPieces(answer: string, sources: readonly PieceSource[]): readonly AnswerPiece[] | undefined {
  const pieces: AnswerPiece[] = [];
  let own = 0;
  let begun = 0;
  let at = 0;
  const endOwn = (): void => {
    if (at > begun) pieces.push(copied(answer, begun, at));
  };
  while (at < answer.length) {
    const match = matchAt(answer, at, sources);
    if (match === undefined) {
      const lineEnd = answer.indexOf('\n', at);
      const next = lineEnd < 0 ? answer.length : lineEnd + 1;
      own += next - at;
      at = next;
      if (own > MOST_OWN) return undefined;
      continue;
    }
    endOwn();
    pieces.push({ at: match.at, chars: match.chars, ...defined({ id: match.source.id }) });
    at += match.chars;
    begun = at;
    if (pieces.length > MOST_PIECES) return undefined;
  }
  endOwn();
  return pieces;
}

/**
 * Returns the stored texts that an answer may show: the call's output and the texts it activated.
 */
function sourcesOf(content: string, { plan }: CallReport): readonly PieceSource[] {
  const shown = plan?.verb === 'activate' ? plan.entries : [];
  return [
    { text: content },
    ...shown.flatMap((entry) => (entry.ok && entry.text !== undefined ? [{ text: entry.text, id: entry.id }] : [])),
  ];
}

/** Returns the proof of an answer (decision E7): its hash, and the pieces to rebuild it. */
export function answerProof(answer: string, report: CallReport): AnswerProof {
  const content = report.content.toWellFormed();
  const pieces = answer === content ? undefined : answerPieces(answer, sourcesOf(content, report));
  return { sha256: hashText(answer), chars: answer.length, ...defined({ pieces }) };
}
