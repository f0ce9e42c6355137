import { Command, Option } from 'commander';
import type { ReviewNote, Verdict } from '../history/ask/review-notes.js';
import type { Answer, ReviewFlags } from './review/answer.js';
import { withMoment } from './review/commands.js';

interface NoteFlags extends ReviewFlags {
  readonly verdict?: Verdict;
  readonly text?: string;
  readonly by?: string;
}

async function noteAction(session: string, flags: NoteFlags): Promise<void> {
  const [{ answerReview, namesFor, shownTime, wireAnswers }, { askNotes, noteOf, reviewRecord }, { escapedLine, escapedText }] =
    await Promise.all([import('./review/answer.js'), import('../history/ask/review-notes.js'), import('./output.js')]);
  const { object, verdict, text, by, at, validTime, tx } = flags;
  await answerReview(flags, async ({ timeline }): Promise<Answer> => {
    const place = { session, object, at, validTime, tx };
    let notes: readonly ReviewNote[];
    if (verdict === undefined && text === undefined) ({ notes } = await askNotes(timeline, place));
    else {
      const record = await reviewRecord(timeline, { ...place, verdict, text, by }, Date.now());
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
      const said =
        note.text === undefined
          ? []
          : escapedText(note.text)
              .split('\n')
              .map((line) => `  ${line}`);
      return [`turn ${note.turn}, step ${note.seq}  ${note.verdict ?? 'noted'}${about}  ${shownTime(note.at)}${who}`, ...said];
    };
    return {
      lines: () => (notes.length === 0 ? ['no notes'] : notes.flatMap(linesOf)),
      json: async () => (await wireAnswers()).notesAnswer(notes),
    };
  });
}

/** `palimpsest note`: what a reviewer says of a session, a step or an object of it; kept beside the session and never shown to a model. */
export function noteCommand(): Command {
  return withMoment(new Command('note'))
    .description(
      'say what you hold of a session, of a step, or of an object or call in it; without --verdict and --text show what was said',
    )
    .argument('<session>', 'its id or the beginning of it, perhaps with @MOMENT, such as @step:41 (default: its last step)')
    .addOption(new Option('--object <object>', 'the object or call that is meant: id, beginning of an id, or path'))
    .addOption(new Option('--verdict <verdict>', 'what you hold of it').choices(['right', 'wrong', 'unclear']))
    .addOption(new Option('--text <text>', 'what you have to say'))
    .addOption(new Option('--by <name>', 'who says it'))
    .action(noteAction);
}
