import { askContext, askContexts } from '../history/ask/ask.js';
import type { PastContext } from '../history/rebuild/past-context.js';
import { pastContextAnswer, reportDetailAnswer, reportListAnswer } from '../http/report-answers.js';
import { answerReview } from './answer-review.js';
import { escapedText } from './escape-text.js';
import type { Colours } from './output.js';
import { basisText } from './print-basis.js';
import { ledgerLines, reportLines } from './print-report.js';
import type { ReviewFlags } from './review-flags.js';

/** Where a context comes from, in words. */
function originText({ source, delivered, matches }: PastContext): string {
  if (source === 'assembled') return 'assembled now as of that moment: no record of a context was kept there';
  return matches === true
    ? `the context that was handed out (${delivered}), byte for byte`
    : `NOT what was handed out (${delivered}): the record's hash is another one; palimpsest verify tells why`;
}

function headLines(context: PastContext, colours: Colours): readonly string[] {
  const { session, turn, step, basis, sha256 } = context;
  const origin = originText(context);
  return [
    colours.yellow(`context of session ${session}, turn ${turn}, step ${step}`),
    context.matches === false ? colours.red(`  ${origin}`) : `  ${origin}`,
    `  ${basisText({ ...basis, txTime: undefined })}`,
    colours.dim(`  sha256 ${sha256}`),
    '',
  ];
}

/** Messages are JSON in one line; people read them in many. */
function shownText({ renderer, text }: PastContext): string {
  return escapedText(renderer === 'text' ? text : JSON.stringify(JSON.parse(text), null, 2));
}

/** `context <session>[@when]` */
export async function contextAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const context = await askContext(timeline, reference, flags);
    return {
      lines: (colours) => [...headLines(context, colours), shownText(context)],
      json: pastContextAnswer(context),
      ...(flags.raw === true ? { exact: context.text } : {}),
    };
  });
}

/** `report list <session>` */
export async function reportListAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const { session, contexts } = await askContexts(timeline, reference, flags);
    const [{ reportList }, { TOKENIZER }] = await Promise.all([
      import('../history/ask/context-report.js'),
      import('../history/ask/token-count.js'),
    ]);
    const reported = await reportList(timeline, contexts, session, flags.limit);
    return {
      lines: (colours) => reportLines(reported, colours),
      holds: `tokens by ${TOKENIZER}, counted piece by piece`,
      json: reportListAnswer(session, TOKENIZER, reported),
    };
  });
}

/** `report detail <session>[@when]` */
export async function reportDetailAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const { session, when, contexts } = await askContexts(timeline, reference, flags);
    const { reportDetail } = await import('../history/ask/context-report.js');
    const reported = await reportDetail(contexts, session, when);
    return {
      lines: (colours) => [...headLines(reported.context, colours), ...ledgerLines(reported.ledger, colours)],
      holds: `tokens by ${reported.ledger.tokenizer}, counted piece by piece`,
      json: reportDetailAnswer(reported),
    };
  });
}
