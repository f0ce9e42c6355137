import { escapedLine, textLines } from '../../cli/output.js';
import { type Answer, answerReview, type ReviewFlags, shownTime } from '../../cli/review/answer.js';
import { NO_MASK } from '../../client/record-mask.js';
import { openMask } from '../../host/open-mask.js';
import { maskSetting } from '../../host/settings.js';
import { askNotes, noteOf, type ReviewNote, reviewRecord, type Verdict } from '../ask/review-notes.js';
import { namesFor } from './object-names.js';

/** The flags of `note`. */
export interface NoteFlags extends ReviewFlags {
  readonly verdict?: Verdict;
  readonly text?: string;
  readonly by?: string;
}

/** Runs `note <session>`. */
export async function noteAction(session: string, flags: NoteFlags): Promise<void> {
  const { object, verdict, text, by, at, validTime, tx } = flags;
  await answerReview(flags, async ({ timeline, dataDir }): Promise<Answer> => {
    const place = { session, object, at, validTime, tx };
    let notes: readonly ReviewNote[];
    if (verdict === undefined && text === undefined) ({ notes } = await askNotes(timeline, place));
    else {
      const mask = (await openMask(dataDir, maskSetting(process.env))) ?? NO_MASK;
      const record = await reviewRecord(timeline, { ...place, verdict, text, by }, { at: Date.now(), mask });
      await timeline.store.putRecords([record]);
      notes = [noteOf(record, session as never)];
    }
    const nameOf = await namesFor(
      timeline,
      notes.flatMap((note) => note.object ?? []),
    );
    const linesOf = (note: ReviewNote): readonly string[] => {
      const about = note.object === undefined ? '' : `  ${escapedLine(nameOf(note.object))}`;
      const who = note.by === undefined ? '' : `  by ${escapedLine(note.by)}`;
      const said = note.text === undefined ? [] : textLines(note.text).map((line) => `  ${line}`);
      return [
        `turn ${note.turn}, step ${note.seq}  ${note.verdict ?? 'noted'}${about}  ${shownTime(note.at)}${who}`,
        ...said,
      ];
    };
    return {
      lines: () => (notes.length === 0 ? ['no notes'] : notes.flatMap(linesOf)),
      json: async () => (await import('../http/review-answers.js')).notesAnswer(notes),
    };
  });
}
