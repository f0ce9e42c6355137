import { Timeline } from '../history/rebuild/timeline.js';
import { announcementRecord } from '../interop/tyrum/announced-tools.js';
import type { ReportRow } from '../interop/tyrum/read-reports.js';
import { visiblePrompt } from '../interop/tyrum/visible-prompt.js';
import { defined } from '../values/defined.js';
import type { OpenContext } from './amplifier-routes.js';
import type { AnswerBody, RequestBody } from './api-schemas.js';
import type { ReviewAnswer } from './review-schemas.js';

/** A report as `/context` has it. */
export function tyrumRow({ report, turn, at }: ReportRow): ReviewAnswer<'TyrumReport'>['report'] {
  return { ...report, turn_id: turn, created_at: at.toISOString() };
}

/** Keeps which tools a model is offered: their names and sizes, never the schemas. */
export async function announceTools(
  open: OpenContext,
  { tools, skills = [], mcp_servers = [] }: RequestBody<'Tools'>,
): Promise<AnswerBody<'ToolsAnnounced'>> {
  const { client, session } = open;
  const sized = tools.map(({ id, chars, schema }) => ({ id, chars: chars ?? (schema === undefined ? 0 : JSON.stringify(schema).length) }));
  const { id, state } = session.session;
  const announced = { tools: sized, skills, mcp_servers };
  await session.session.keepRecords([announcementRecord({ session: id, turn: state.turn, seq: state.seq }, announced, client.now())]);
  return { tools: sized.length, total_chars: sized.reduce((sum, { chars }) => sum + chars, 0) };
}

/** What a model is sent of a session, pruned. */
export async function promptOfTyrum(open: OpenContext, body: RequestBody<'TyrumPrompt'>): Promise<AnswerBody<'TyrumPromptMessages'>> {
  const store = await open.client.delivered({ others: false });
  const { readProjection } = await import('../history/project/read-projection.js');
  const { entries } = await readProjection(await Timeline.open(store, open.client.files), open.session.session.id);
  const { messages, pruned } = visiblePrompt(
    entries,
    defined({ maxMessages: body.max_messages, keepLastMessages: body.tool_prune_keep_last_messages }),
  );
  return {
    messages: messages.map(({ tool_calls: calls, ...message }) => ({ ...message, ...defined({ tool_calls: calls && [...calls] }) })),
    pruned: { results: [...pruned.results], messages: [...pruned.messages] },
  };
}
