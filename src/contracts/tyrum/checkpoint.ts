import * as z from 'zod';

const texts = z.array(z.string()).default([]);

/** A checkpoint in Tyrum's exact fields. It replaces the messages that a compaction leaves out. */
export const checkpointSchema = z.strictObject({
  goal: z.string(),
  user_constraints: texts,
  decisions: texts,
  discoveries: texts,
  completed_work: texts,
  pending_work: texts,
  unresolved_questions: texts,
  critical_identifiers: texts,
  relevant_files: texts,
  handoff_md: z.string(),
});

/** A checkpoint in Tyrum's exact fields. */
export type Checkpoint = z.output<typeof checkpointSchema>;

/** A checkpoint field that is a list. */
export type CheckpointList = {
  [Name in keyof Checkpoint]: Checkpoint[Name] extends string ? never : Name;
}[keyof Checkpoint];

/** The title of each list in the model's text, in reading order. Names and files share one line. */
const LISTS: { readonly [Name in CheckpointList]: { readonly title: string; readonly isLine: boolean } } = {
  user_constraints: { title: 'Constraints and preferences of the user', isLine: false },
  decisions: { title: 'Decided', isLine: false },
  pending_work: { title: 'Still to do', isLine: false },
  unresolved_questions: { title: 'Open questions', isLine: false },
  discoveries: { title: 'Found out', isLine: false },
  critical_identifiers: { title: 'Names', isLine: true },
  relevant_files: { title: 'Files', isLine: true },
  completed_work: { title: 'Done', isLine: false },
};

const CHECKPOINT_LISTS = Object.keys(LISTS) as readonly CheckpointList[];

/** The lists of obligations (unsettled notes and decisions), which every checkpoint contains. */
export const OBLIGATION_LISTS = [
  'user_constraints',
  'decisions',
  'pending_work',
  'unresolved_questions',
] as const satisfies readonly CheckpointList[];

/** Formats one more element of a list, with its separator. */
export function listedText(list: CheckpointList, text: string): string {
  return LISTS[list].isLine ? `, ${text}` : `\n- ${text}`;
}

/** Formats the title of a list, with its separator. */
export const titleText = (list: CheckpointList): string => `\n${LISTS[list].title}:`;

/** Formats a checkpoint for the model; an empty checkpoint gives an empty text. */
export function checkpointText(checkpoint: Checkpoint): string {
  const { goal, handoff_md: handoff } = checkpoint;
  const lists = CHECKPOINT_LISTS.flatMap((list) => {
    const held = checkpoint[list];
    if (held.length === 0) return [];
    const { title, isLine } = LISTS[list];
    return isLine ? [`${title}: ${held.join(', ')}`] : [`${title}:`, ...held.map((one) => `- ${one}`)];
  });
  return [...(handoff === '' ? [] : [handoff]), ...(goal === '' ? [] : [`Goal: ${goal}`]), ...lists].join('\n');
}
