const REVIEW_VERBS: ReadonlySet<string> = new Set([
  'sessions',
  'log',
  'show',
  'cat',
  'diff',
  'context',
  'who',
  'query',
  'report',
  'search',
  'verify',
  'restore',
  'note',
]);

/**
 * Returns whether the first word of a command line is a question about the past. `answerOnly`
 * handles those.
 */
export const isReviewVerb = (word: string | undefined): boolean => word !== undefined && REVIEW_VERBS.has(word);
