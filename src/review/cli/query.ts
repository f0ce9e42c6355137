import { type Colours, columns, escapedLine } from '../../cli/output.js';
import { answerReview, pointText, type ReviewFlags } from '../../cli/review/answer.js';
import type { Json } from '../../objects/canonical-json.js';
import { askQuery } from '../ask/ask.js';
import type { QueryAnswer } from '../ask/run-query.js';

const cell = (value: Json): string => escapedLine(typeof value === 'string' ? value : JSON.stringify(value));

/** Formats the rows of a query. */
function rowLines({ columns: headings, rows, limit, isCut }: QueryAnswer, colours: Colours): readonly string[] {
  const table = columns(
    headings,
    rows.map((row) => row.map(cell)),
    colours,
  );
  const cut = isCut ? [colours.yellow(`# cut at ${limit} rows: there are more (--limit, or :limit in the query)`)] : [];
  return [...table, colours.dim(`# ${rows.length} rows`), ...cut];
}

/** Runs `query '<datalog>'`. */
export async function queryAction(
  text: string,
  { at, asOf, validTime, tx, session, limit, args, timeout, storage, ...flags }: ReviewFlags,
): Promise<void> {
  const timeoutMs = timeout === undefined ? undefined : timeout * 1_000;
  await answerReview(flags, async ({ timeline }) => {
    const asked = { at: at ?? asOf, validTime, tx, session, limit, args, timeoutMs, storage };
    const { point, answer } = await askQuery(timeline, text, asked);
    return {
      lines: (colours) => rowLines(answer, colours),
      holds: pointText(point),
      json: async () => (await import('../http/review-answers.js')).queryAnswer(point.basis, answer),
    };
  });
}
