import type { ContextLedger, ReportedContext } from '../history/ask/context-report.js';
import type { PastContext } from '../history/rebuild/past-context.js';
import type { SessionId } from '../objects/ids.js';
import { basisAnswer } from './review-answers.js';
import type { ReviewAnswer } from './review-schemas.js';

/** A context of the past, in whole. */
export function pastContextAnswer(context: PastContext): ReviewAnswer<'PastContext'> {
  const { session, turn, step, source, delivered, renderer, sha256, matches, text } = context;
  const how = { source, renderer, delivered: delivered ?? null, sha256, matches: matches ?? null };
  return { basis: basisAnswer({ ...context.basis, txTime: undefined }), session, turn, step, ...how, text };
}

function assemblyAnswer({ context, ledger }: ReportedContext): ReviewAnswer<'ReportDetail'>['assembly'] {
  const { turn, step, source, delivered, sha256 } = context;
  return {
    turn,
    step,
    basis: basisAnswer({ ...context.basis, txTime: undefined }),
    recorded: source === 'record',
    delivered: delivered ?? null,
    sha256,
    total: ledger.total,
    sections: ledger.sections.map((section) => ({ ...section })),
  };
}

/** The ledgers of a session's contexts, without their objects. */
export function reportListAnswer(session: SessionId, tokenizer: string, reported: readonly ReportedContext[]): ReviewAnswer<'ReportList'> {
  return { session, tokenizer, assemblies: reported.map(assemblyAnswer) };
}

const objectAnswer = ({ id, name, type, active, rawChars, shown, line, block }: ContextLedger['objects'][number]) => ({
  id,
  name,
  type,
  active,
  raw_chars: rawChars,
  shown_chars: shown.chars,
  shown_tokens: shown.tokens,
  line,
  block: block ?? null,
});

/** The ledger of one context. */
export function reportDetailAnswer(reported: ReportedContext): ReviewAnswer<'ReportDetail'> {
  const { context, ledger } = reported;
  return {
    session: context.session,
    tokenizer: ledger.tokenizer,
    assembly: assemblyAnswer(reported),
    objects: ledger.objects.map(objectAnswer),
    raw_chars: ledger.rawChars,
    shown_chars: ledger.total.chars,
  };
}
