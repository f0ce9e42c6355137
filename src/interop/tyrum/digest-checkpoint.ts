import { cutText } from '../../projection/cut-text.js';
import type { TokenCounter } from '../../projection/entry.js';
import { criticalIdentifiers, lostIdentifiers } from '../../projection/identifiers.js';
import { DIGEST, lastThatFit, leftOutLine, type Summary, type SummaryRequest, turnLines } from '../../projection/summary.js';
import { CHECKPOINT_LISTS, type Checkpoint, type CheckpointList, checkpointText, listedText, titleText } from './checkpoint.js';
import type { SessionFacts } from './session-facts.js';

/** The most that each list may take of what is left when it is filled, in the order in which they are: obligations first. */
const SHARES: readonly (readonly [CheckpointList, number])[] = [
  ['user_constraints', 0.4],
  ['decisions', 0.4],
  ['pending_work', 0.4],
  ['unresolved_questions', 0.3],
  ['critical_identifiers', 0.6],
  ['discoveries', 0.4],
  ['relevant_files', 0.5],
  ['completed_work', 1],
];
const SHARE_OF_GOAL = 0.25;

/** What is in a list, so that each stands once. */
const distinct = (texts: readonly string[]): readonly string[] => [...new Set(texts.filter((text) => text !== ''))];

/** Takes the oldest of the least important away until a checkpoint fits. */
function fitted(checkpoint: Checkpoint, limit: number, counter: TokenCounter): Checkpoint {
  let left = checkpoint;
  const isOver = (): boolean => counter.count(checkpointText(left)) > limit;
  for (const [list] of SHARES.toReversed()) while (left[list].length > 0 && isOver()) left = { ...left, [list]: left[list].slice(1) };
  if (isOver()) left = { ...left, goal: '' };
  return isOver() ? { ...left, handoff_md: '' } : left;
}

/**
 * The checkpoint that is made without a model, the same for the same entries and facts: obligations first (constraints and preferences, decisions, open work, open questions), then names, findings,
 * files and what was done, of each the newest as far as they fit. Its text is never over the limit, so that it may be empty.
 */
export function digestCheckpoint({ entries, counter, limit }: SummaryRequest, facts: SessionFacts): Summary {
  const identifiers = criticalIdentifiers(entries);
  const found = facts.of(entries);
  const texts: Readonly<Record<CheckpointList, readonly string[]>> = {
    ...found,
    critical_identifiers: identifiers,
    completed_work: [...found.completed_work, ...turnLines(entries)],
  };
  const handoff = leftOutLine(entries);
  let room = limit - counter.count(handoff);
  const goal = room <= 0 ? '' : cutText(facts.goal, room * SHARE_OF_GOAL, counter);
  room -= counter.count(`\nGoal: ${goal}`);
  const lists = Object.fromEntries(CHECKPOINT_LISTS.map((list) => [list, [] as string[]])) as Record<CheckpointList, string[]>;
  for (const [list, share] of SHARES) {
    const pieces = distinct(texts[list]).map((text) => listedText(list, text));
    const title = counter.count(titleText(list));
    const kept = lastThatFit(pieces, room * share - title, counter);
    if (kept.length === 0) continue;
    room -= kept.reduce((sum, piece) => sum + counter.count(piece) + 1, title);
    lists[list] = kept.map((piece) => piece.slice(listedText(list, '').length));
  }
  const checkpoint = fitted({ goal, ...lists, handoff_md: handoff }, limit, counter);
  const text = checkpointText(checkpoint);
  return {
    text,
    tokens: counter.count(text),
    by: DIGEST,
    identifiers,
    lost: lostIdentifiers(text, identifiers),
    refused: [],
    form: checkpoint,
  };
}
