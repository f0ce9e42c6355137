import type { ObjectId } from '../../objects/ids.js';
import type { AnswerPiece } from '../../objects/step.js';

/** An answer put together from its pieces; undefined when a text that it needs is not there. */
export function joinedPieces(pieces: readonly AnswerPiece[], textOf: (id: ObjectId | undefined) => string | undefined): string | undefined {
  const texts = pieces.map((piece) => (typeof piece === 'string' ? piece : textOf(piece.id)?.slice(piece.at, piece.at + piece.chars)));
  return texts.every((text) => text !== undefined) ? texts.join('') : undefined;
}
