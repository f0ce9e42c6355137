import type { AnswerBody } from '../http/api-schemas.js';
import type { ReviewAnswer } from '../http/review-schemas.js';
import type { RestoreAnswer } from '../restore/restore-http.js';
import type { PageBody } from './server/page-schemas.js';

/** The server's answers, as its schemas define them. */
export type Strip = PageBody<'Strip'>;
export type StripChange = PageBody<'StripChange'>;
export type StripCall = Strip['calls'][number];
export type StripBand = Strip['bands'][number];
export type StripMark = Strip['marks'][number];
export type BandState = StripBand['changes'][number]['state'];
/** `redacted`: text was masked before it was written to the file. */
export type RequestView = PageBody<'Request'> & { readonly redacted?: boolean };
export type RequestItem = RequestView['items'][number];
export type Changes = PageBody<'Changes'>;
export type Change = Changes['changes'][number];
export type Search = ReviewAnswer<'Search'>;
export type SearchHit = Search['hits'][number];
export type PastContext = ReviewAnswer<'PastContext'>;
export type ReportDetail = ReviewAnswer<'ReportDetail'>;
export type Log = ReviewAnswer<'Log'>;
export type LoggedVersion = NonNullable<Log['versions']>[number];
export type LoggedTurn = NonNullable<Log['turns']>[number];
export type Show = ReviewAnswer<'Show'>;
export type Who = ReviewAnswer<'Who'>;
export type Query = ReviewAnswer<'Query'>;
export type Notes = ReviewAnswer<'Notes'>;
export type VerbPrice = PageBody<'VerbPrice'>;
export type RestorePlan = RestoreAnswer<'RestorePlan'>;
export type SetsChanged = AnswerBody<'SetsChanged'>;
export type StepUndone = AnswerBody<'StepUndone'>;
export type Forked = AnswerBody<'Forked'>;
export type FilesCopied = RestoreAnswer<'FilesCopied'>;
export type Sessions = AnswerBody<'Sessions'>;
export type SessionRow = Sessions['sessions'][number];
