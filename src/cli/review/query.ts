import { askQuery } from '../../history/ask/ask.js';
import type { QueryAnswer } from '../../history/ask/run-query.js';
import { queryAnswer } from '../../http/review-answers.js';
import type { Json } from '../../objects/canonical-json.js';
import { type Colours, columns, escapedLine } from '../output.js';
import type { ReviewFlags } from './answer.js';
import { answerReview, pointText } from './answer.js';

const shown = (value: Json): string => escapedLine(typeof value === 'string' ? value : JSON.stringify(value));

/** The rows that a query found. */
function rowLines({ columns: headings, rows, limit, isCut }: QueryAnswer, colours: Colours): readonly string[] {
  const table = columns(
    headings,
    rows.map((row) => row.map(shown)),
    colours,
  );
  const cut = isCut ? [colours.yellow(`# cut at ${limit} rows: there are more (--limit, or :limit in the query)`)] : [];
  return [...table, colours.dim(`# ${rows.length} rows`), ...cut];
}

/** `query '<datalog>'` */
export async function queryAction(
  text: string,
  { at, asOf, validTime, tx, session, limit, args, timeout, ...flags }: ReviewFlags,
): Promise<void> {
  const timeoutMs = timeout === undefined ? undefined : timeout * 1_000;
  await answerReview(flags, async ({ timeline }) => {
    const { point, answer } = await askQuery(timeline, text, { at: at ?? asOf, validTime, tx, session, limit, args, timeoutMs });
    return { lines: (colours) => rowLines(answer, colours), holds: pointText(point), json: queryAnswer(point.basis, answer) };
  });
}
