import { hashText } from '../../objects/hashes.js';
import type { AnswerProof } from '../../objects/step.js';
import { answerPieces, type PieceSource } from './answer-pieces.js';
import type { CallReport } from './call-report.js';

/** The texts that an answer may show of what is stored: the call's output, and what it activated. */
function sourcesOf(content: string, { plan }: CallReport): readonly PieceSource[] {
  const shown = plan?.verb === 'activate' ? plan.entries : [];
  return [
    { text: content },
    ...shown.flatMap((entry) => (entry.ok && entry.text !== undefined ? [{ text: entry.text, id: entry.id }] : [])),
  ];
}

/** What is kept of an answer with its step (decision E7): its hash, and what it takes to make it again from what is stored. */
export function answerProof(answer: string, report: CallReport): AnswerProof {
  const content = report.content.toWellFormed();
  const proof = { sha256: hashText(answer), chars: answer.length };
  const pieces = answer === content ? undefined : answerPieces(answer, sourcesOf(content, report));
  return pieces === undefined ? proof : { ...proof, pieces };
}
