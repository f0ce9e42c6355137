import { BUNDLE_QUESTIONS } from '../../src/bundle/bundle-http.js';
import { hiddenBy, servedContracts } from '../../src/cli/contract.js';
import { CONTRACTS } from '../../src/contract-list.js';
import { AMPLIFIER_OPERATIONS } from '../../src/contracts/amplifier/http.js';
import { AMPLIFIER_ANSWERS } from '../../src/contracts/amplifier/http-schemas.js';
import { TYRUM_HTTP, TYRUM_OPERATIONS, TYRUM_QUESTIONS } from '../../src/contracts/tyrum/http.js';
import { TYRUM_ANSWERS } from '../../src/contracts/tyrum/http-schemas.js';
import { SESSION_OPERATIONS } from '../../src/harness/http/session-operations.js';
import { SESSION_ANSWERS } from '../../src/harness/http/session-schemas.js';
import { ANSWERS } from '../../src/http/api-schemas.js';
import type { ContractQuestion } from '../../src/http/http-contract.js';
import { OPERATIONS } from '../../src/http/operations.js';
import { allQuestions, questionAt } from '../../src/http/review-routes.js';
import { PAGE_QUESTIONS } from '../../src/page/server/page-questions.js';
import { PAGE_ANSWERS } from '../../src/page/server/page-schemas.js';
import { shareQuestions } from '../../src/page/server/share-questions.js';
import { RESTORE_ANSWERS, RESTORE_OPERATIONS, RESTORE_QUESTIONS } from '../../src/restore/restore-http.js';
import { NOTE_ANSWERS, REVIEW_OPERATIONS } from '../../src/review/http/review-http.js';
import { QUESTIONS } from '../../src/review/http/review-questions.js';
import { REVIEW_ANSWERS } from '../../src/review/http/review-schemas.js';

/** The operations of the server and of all contracts, by OpenAPI ids. */
export const ALL_OPERATIONS = {
  ...OPERATIONS,
  ...SESSION_OPERATIONS,
  ...REVIEW_OPERATIONS,
  ...RESTORE_OPERATIONS,
  ...AMPLIFIER_OPERATIONS,
  ...TYRUM_OPERATIONS,
};

/** The answers of all operations. A problem has the members that contracts add. */
export const ALL_ANSWERS = {
  ...ANSWERS,
  ...SESSION_ANSWERS,
  ...NOTE_ANSWERS,
  ...RESTORE_ANSWERS,
  ...AMPLIFIER_ANSWERS,
  ...TYRUM_ANSWERS,
  Problem: ANSWERS.Problem.extend({ error: TYRUM_HTTP.problem.error }),
};

/** The questions of the server and of all contracts, by OpenAPI ids. */
export const ALL_QUESTIONS = {
  ...QUESTIONS,
  ...RESTORE_QUESTIONS,
  ...BUNDLE_QUESTIONS,
  ...PAGE_QUESTIONS,
  ...shareQuestions(''),
  ...TYRUM_QUESTIONS,
};

/** The answers to all questions. */
export const ALL_REVIEW_ANSWERS = { ...REVIEW_ANSWERS, ...RESTORE_ANSWERS, ...PAGE_ANSWERS, ...TYRUM_ANSWERS };

/** The built program. */
export const PARTS = { version: '0', home: new URL('../../', import.meta.url), contracts: CONTRACTS };

/** The contracts as a server loads them. */
export const SERVED = await servedContracts(PARTS);

/** Finds what the redaction rules of a session hide. */
export const hiddenTexts = hiddenBy(CONTRACTS);

/** Returns the question at a path. */
export function question(path: string): ContractQuestion {
  const found = questionAt(allQuestions(SERVED.contracts), path);
  if (found === undefined) throw new Error(`no question at ${path}`);
  return found;
}
