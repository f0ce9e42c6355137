import { cutText } from '../projection/cut-text.js';
import type { TokenCounter } from '../projection/entry.js';
import { criticalIdentifiers } from '../projection/identifiers.js';
import {
  digestSummary,
  lastThatFit,
  leftOutLine,
  reminderOverhead,
  type Summary,
  type SummaryRequest,
  turnLines,
} from '../projection/summary.js';
import type { RequiredText } from '../projection/view-budget.js';
import {
  type Checkpoint,
  type CheckpointList,
  checkpointSchema,
  checkpointText,
  listedText,
  OBLIGATION_LISTS,
  titleText,
} from './checkpoint.js';
import type { KnownFacts, SessionFacts } from './session-facts.js';

/**
 * The lists in the order in which they are filled. Each may use this share of the remaining room
 * for texts other than its obligations.
 */
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

/** Removes duplicate and empty texts. */
const distinct = (texts: readonly string[]): readonly string[] => [...new Set(texts.filter((text) => text !== ''))];

const EMPTY: Checkpoint = checkpointSchema.parse({ goal: '', handoff_md: '' });

/** Returns the smallest checkpoint of a session: only its obligations. */
function obligationsAlone({ obligations }: SessionFacts): Checkpoint {
  return { ...EMPTY, ...Object.fromEntries(OBLIGATION_LISTS.map((list) => [list, [...distinct(obligations[list])]])) };
}

/** Returns the text that every checkpoint must contain; undefined if there is none. */
export function requiredOf(facts: SessionFacts, counter: TokenCounter): RequiredText | undefined {
  const text = checkpointText(obligationsAlone(facts));
  if (text === '') return undefined;
  const all = OBLIGATION_LISTS.flatMap((list) => distinct(facts.obligations[list]));
  // Adds 1, because joining texts can add a token.
  const tokens = counter.count(text) + reminderOverhead(counter) + counter.perMessage + 1;
  return { tokens, isIn: (said) => all.every((one) => said.includes(one)) };
}

/**
 * Removes texts until a checkpoint fits: the least important lists first, the oldest texts first,
 * obligations last.
 */
function fitted(checkpoint: Checkpoint, least: Checkpoint, { limit, counter }: SummaryRequest): Checkpoint {
  let left = checkpoint;
  const isOver = (): boolean => counter.count(checkpointText(left)) > limit;
  const takeFrom = (kept: (list: CheckpointList) => number): void => {
    for (const [list] of SHARES.toReversed())
      while (left[list].length > kept(list) && isOver()) left = { ...left, [list]: left[list].slice(1) };
  };
  takeFrom((list) => least[list].length);
  if (isOver()) left = { ...left, goal: '' };
  if (isOver()) left = { ...left, handoff_md: '' };
  takeFrom(() => 0);
  return left;
}

/** Returns the requirements stated by users that a checkpoint lacks. */
export const unsaidDemands = (
  { user_constraints: said }: Checkpoint,
  { user_constraints: all }: KnownFacts,
): readonly string[] => distinct(all).filter((one) => !said.includes(one));

/**
 * Returns a checkpoint within a limit: its obligations, then the newest other texts of each list
 * that fit.
 */
function checkpointWithin(
  texts: Readonly<Record<CheckpointList, readonly string[]>>,
  {
    goal: asked,
    handoff,
    least,
    shareOfDemands,
  }: { readonly goal: string; readonly handoff: string; readonly least: Checkpoint; readonly shareOfDemands?: number },
  request: SummaryRequest,
): Checkpoint {
  const { counter, limit } = request;
  let room = limit - counter.count(handoff) - counter.count(checkpointText(least));
  const goal = room <= 0 ? '' : cutText(asked, room * SHARE_OF_GOAL, counter);
  room -= counter.count(`\nGoal: ${goal}`);
  const lists: Partial<Record<CheckpointList, string[]>> = {};
  for (const [list, share] of SHARES) {
    const required = least[list];
    const pieces = distinct(texts[list])
      .filter((text) => !required.includes(text))
      .map((text) => listedText(list, text));
    const title = required.length > 0 ? 0 : counter.count(titleText(list));
    const part = list === 'user_constraints' ? (shareOfDemands ?? share) : share;
    const kept = lastThatFit(pieces, room * part - title, counter);
    if (kept.length > 0) room -= kept.reduce((sum, piece) => sum + counter.count(piece) + 1, title);
    // Obligations come last in a list, because removal starts at the front.
    lists[list] = [...kept.map((piece) => piece.slice(listedText(list, '').length)), ...required];
  }
  return fitted({ ...EMPTY, goal, ...lists, handoff_md: handoff }, least, request);
}

/**
 * Makes a checkpoint without a model. Equal entries and facts give an equal checkpoint. Obligations
 * come first and stay whole: constraints, decisions, open work, open questions. Requirements of
 * users, names, findings, files and finished work follow, newest first, as far as they fit. If
 * requirements do not fit, the limit rises up to `spare`. The text never exceeds that limit, so it
 * can be empty.
 */
export function digestCheckpoint(request: SummaryRequest, facts: SessionFacts): Summary {
  const { entries, counter, limit, spare = limit } = request;
  const identifiers = criticalIdentifiers(entries);
  const found = facts.of(entries);
  const texts: Readonly<Record<CheckpointList, readonly string[]>> = {
    ...found,
    critical_identifiers: identifiers,
    completed_work: [...found.completed_work, ...turnLines(entries)],
  };
  const about = { goal: facts.goal, handoff: leftOutLine(entries), least: obligationsAlone(facts) };
  let checkpoint = checkpointWithin(texts, about, request);
  const unsaid = unsaidDemands(checkpoint, found);
  if (unsaid.length > 0 && spare > limit) {
    const more = unsaid.reduce((sum, one) => sum + counter.count(listedText('user_constraints', one)) + 1, 0);
    checkpoint = checkpointWithin(
      texts,
      { ...about, shareOfDemands: 1 },
      { ...request, limit: Math.min(spare, limit + more) },
    );
  }
  return { ...digestSummary(checkpointText(checkpoint), identifiers, counter), form: checkpoint };
}
