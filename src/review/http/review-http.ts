import * as z from 'zod';
import type { ContextClient } from '../../client/session/context-client.js';
import { Timeline } from '../../history/rebuild/timeline.js';
import { contractEntries, type HttpContract } from '../../http/http-contract.js';
import { ReviewAccess } from '../../http/review-access.js';
import { noteOf, reviewRecord } from '../ask/review-notes.js';
import { notesAnswer } from './review-answers.js';
import { QUESTIONS } from './review-questions.js';
import { noteAnswer, REVIEW_ANSWERS } from './review-schemas.js';

/** Request bodies of reviewers. */
export const REVIEW_REQUESTS = {
  Note: z.strictObject({
    at: z
      .string()
      .max(100)
      .optional()
      .describe('The moment of the note, such as turn:7 or step:41; default: the last step'),
    object: z
      .string()
      .min(1)
      .max(5_000)
      .optional()
      .describe('The object or call of the note: its id, a unique prefix of it, or a path'),
    verdict: z.enum(['right', 'wrong', 'unclear']).optional(),
    text: z.string().max(100_000).optional(),
    by: z.string().min(1).max(200).optional().describe('Name of the reviewer'),
  }),
} as const;

/** The answer to a new note. */
export const NOTE_ANSWERS = { NoteAdded: z.object({ note: noteAnswer }) } as const;

const { operation } = contractEntries({ requests: REVIEW_REQUESTS, answers: NOTE_ANSWERS });

/**
 * Stores a reviewer's note on an open or closed session.
 * @throws {HistoryError} unknown session, moment or object; `empty-note`
 * @throws {SessionError} `other-roots`
 * @throws {SourceError} `outside-roots` – a file that is not visible here
 */
export async function addNote(
  client: ContextClient,
  session: string,
  said: z.output<typeof REVIEW_REQUESTS.Note>,
): Promise<z.input<typeof NOTE_ANSWERS.NoteAdded>> {
  const store = await client.delivered();
  const timeline = await Timeline.open(store, client.files);
  const access = new ReviewAccess(client, timeline);
  await access.requireNamed(session);
  const record = await reviewRecord(timeline, { session, ...said }, { at: client.now(), mask: client.mask });
  if (record.body.object !== undefined)
    await access.requireObject(record.body.object as Parameters<typeof access.requireObject>[0]);
  await store.putRecords([record]);
  const [note] = notesAnswer([noteOf(record, session as never)]).said;
  if (note === undefined) throw new Error('BUG: a new note was not returned');
  return { note };
}

/** The operations of reviewers by their OpenAPI ids. */
export const REVIEW_OPERATIONS = {
  addNote: operation({
    method: 'POST',
    path: '/v1/sessions/{id}/notes',
    summary:
      "Add a reviewer's note to a session, a step or an object; the session need not be open, and no context shows it",
    request: 'Note',
    example: { at: 'turn:7', verdict: 'wrong', text: 'It had not read src/cart.ts.', by: 'Ada' },
    answer: 'NoteAdded',
    statuses: [201],
    handle: async ({ client, id }, said) => addNote(await client(), id, said),
  }),
};

/** The HTTP interface of reviewers: questions about the past, and notes. */
export const REVIEW_HTTP: HttpContract = {
  requests: REVIEW_REQUESTS,
  answers: { ...REVIEW_ANSWERS, ...NOTE_ANSWERS },
  operations: REVIEW_OPERATIONS,
  questions: QUESTIONS,
};
