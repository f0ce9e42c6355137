import type { Timeline } from '../history/rebuild/timeline.js';
import type { ObjectId } from '../objects/ids.js';
import { parseSource } from '../objects/source.js';
import { escapedJson } from './escape-text.js';
import { openReview, type Review } from './open-review.js';
import { type Colours, coloursFor, standardOutput, writeExactly, writeOutput } from './output.js';
import { closingLines } from './print-basis.js';
import { type NameOf, shortName } from './print-log.js';
import { reportFailure } from './report-failure.js';
import type { ReviewFlags } from './review-flags.js';

/** An answer, for people and for programs. */
export interface Answer {
  readonly lines: (colours: Colours) => readonly string[];
  /** What it holds at, in words. */
  readonly holds?: string;
  readonly json: object;
  /** What was left out, in sentences. */
  readonly notes?: readonly string[];
  /** Text that is written as it is, unless a terminal would act on it. */
  readonly exact?: string;
}

/** Opens the database, answers one question, closes. Failures become one line, or one object with `--json`. */
export async function answerReview(flags: ReviewFlags, ask: (review: Review) => Promise<Answer>): Promise<void> {
  await reportFailure(flags, async () => {
    const review = await openReview(flags);
    try {
      const answer = await ask(review);
      const notes = [...review.notes, ...(answer.notes ?? [])];
      const target = standardOutput(flags);
      const colours = coloursFor(target);
      if (flags.json === true) return await writeExactly(`${escapedJson({ ...answer.json, notes })}\n`);
      if (answer.exact !== undefined && !target.isTerminal) {
        for (const note of notes) process.stderr.write(`# ${note}\n`);
        return await writeExactly(answer.exact);
      }
      const closing = closingLines(answer.holds ?? '', notes, colours).slice(answer.holds === undefined ? 1 : 0);
      await writeOutput([...answer.lines(colours), ...closing].join('\n'), target);
    } finally {
      await review.close();
    }
  });
}

/** What objects are called: files by their paths, all else by id. One query. */
export async function namesFor({ present, paths }: Timeline, ids: readonly ObjectId[]): Promise<NameOf> {
  const digests = [...new Set(ids)].filter((id) => /^[0-9a-f]{64}$/.test(id));
  const names = new Map<string, string>();
  for (const [id, { document }] of await present.heads(digests)) {
    const source = parseSource(document.source);
    if (source !== null) names.set(id, paths.display(source));
  }
  return (id) => names.get(id) ?? shortName(id);
}
