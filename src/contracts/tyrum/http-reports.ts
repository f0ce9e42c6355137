import type { AskedPast } from '../../http/http-contract.js';
import { tyrumRow } from './http-handlers.js';
import type { AnswerBody } from './http-schemas.js';
import type { TyrumReports } from './read-reports.js';
import { TyrumError } from './tyrum-error.js';

/** Opens the reports of sessions that the request may read, with the token vocabulary. */
async function reportsOf({ timeline, access }: AskedPast): Promise<TyrumReports> {
  const [{ TyrumReports }, { countHere }] = await Promise.all([
    import('./read-reports.js'),
    import('../../review/ask/token-count.js'),
  ]);
  return new TyrumReports(timeline, countHere, {
    maySee: async (sessions) =>
      (await access.openable(sessions.map((session) => ({ session })))).map(({ session }) => session),
    require: (session) => access.requireSession(session),
  });
}

/**
 * Returns the newest report.
 * @throws {TyrumError} `unknown-report`
 */
export async function lastReport(
  asked: AskedPast,
  { conversation_id: conversation }: { readonly conversation_id?: string | undefined },
): Promise<AnswerBody<'TyrumReport'>> {
  const [row] = await (await reportsOf(asked)).list({ conversation, limit: 1 });
  if (row === undefined)
    throw new TyrumError('unknown-report', 'there is no context report yet: no visible session has a turn');
  return { status: 'ok', report: tyrumRow(row) };
}

/** Returns reports, newest first. */
export async function reportList(
  asked: AskedPast,
  {
    conversation_id: conversation,
    turn_id: turn,
    limit,
  }: {
    readonly conversation_id?: string | undefined;
    readonly turn_id?: string | undefined;
    readonly limit?: number | undefined;
  },
): Promise<AnswerBody<'TyrumReports'>> {
  const rows = await (await reportsOf(asked)).list({ conversation, turn, limit });
  return { status: 'ok', reports: rows.map(tyrumRow) };
}

/** Returns the report with an id. */
export async function reportDetail(
  asked: AskedPast,
  { id, conversation_id: conversation }: { readonly id: string; readonly conversation_id?: string | undefined },
): Promise<AnswerBody<'TyrumReport'>> {
  return { status: 'ok', report: tyrumRow(await (await reportsOf(asked)).detail(id, conversation)) };
}

/** Returns the tools that the harness last reported for a session. */
export async function announcedTools(
  asked: AskedPast,
  { conversation_id: conversation }: { readonly conversation_id?: string | undefined },
): Promise<AnswerBody<'TyrumTools'>> {
  const { session, tools } = await (await reportsOf(asked)).lastTools(conversation);
  const total = (tools?.tools ?? []).reduce((sum, { chars }) => sum + chars, 0);
  const { tools: offered = [], skills = [], mcp_servers = [] } = tools ?? {};
  return { status: 'ok', conversation_id: session, tools: [...offered], total_chars: total, skills, mcp_servers };
}
