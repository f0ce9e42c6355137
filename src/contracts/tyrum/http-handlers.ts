import type { OpenContext } from '../../harness/http/session-entries.js';
import { Timeline } from '../../history/rebuild/timeline.js';
import type { ContextRecord, RecordBody } from '../../objects/context-record.js';
import { defined } from '../../values/defined.js';
import { announcementRecord, readAnnouncements } from './announced-tools.js';
import { SentCheckpoint } from './checkpoint-writer.js';
import type { CompactedConversation, CompactionWish } from './compact-conversation.js';
import type { Conversation } from './conversation.js';
import type { ConversationState } from './conversation-state.js';
import type { Flushed } from './flush-memory.js';
import { memoryOf } from './http-memory.js';
import type { AnswerBody, RequestBody } from './http-schemas.js';
import type { ReportRow } from './read-reports.js';
import { messagesOf, type PromptMessage, visiblePrompt } from './visible-prompt.js';

/** Formats a report as the route `/context` returns it. */
export function tyrumRow({ report, turn, at }: ReportRow): AnswerBody<'TyrumReport'>['report'] {
  return { ...report, turn_id: turn, created_at: at.toISOString() };
}

/** Stores the names and sizes of the tools offered to a model, never their schemas. */
export async function announceTools(
  open: OpenContext,
  { tools, skills = [], mcp_servers = [] }: RequestBody<'Tools'>,
): Promise<AnswerBody<'ToolsAnnounced'>> {
  const { client, session } = open;
  const sized = tools.map(({ id, chars, schema }) => ({
    id,
    chars: chars ?? (schema === undefined ? 0 : JSON.stringify(schema).length),
  }));
  const { id, state } = session.session;
  const announced = { tools: sized, skills, mcp_servers };
  await session.session.keepRecords([
    announcementRecord({ session: id, turn: state.turn, seq: state.seq }, announced, client.now()),
  ]);
  return { tools: sized.length, total_chars: sized.reduce((sum, { chars }) => sum + chars, 0) };
}

/**
 * Returns a session as a conversation. Loads the code on the first request, because it loads a
 * large token vocabulary.
 */
async function conversationOf({ client, session }: OpenContext): Promise<Conversation> {
  const timeline = await Timeline.open(await client.delivered({ others: false }), client.files);
  const [{ SessionMoment }, { conversationAt }] = await Promise.all([
    import('../projection/session-moment.js'),
    import('./conversation.js'),
  ]);
  return conversationAt(await SessionMoment.read(timeline, session.session.id));
}

const sentMessages = (messages: readonly PromptMessage[]) =>
  messages.map(({ tool_calls: calls, ...message }) => ({
    ...message,
    ...defined({ tool_calls: calls && [...calls] }),
  }));

/** Returns the pruned prompt of a session, as Tyrum sends it. */
export async function promptOfTyrum(
  open: OpenContext,
  body: RequestBody<'TyrumPrompt'>,
): Promise<AnswerBody<'TyrumPromptMessages'>> {
  const { projection, state } = await conversationOf(open);
  const settings = defined({ maxMessages: body.max_messages, keepLastMessages: body.tool_prune_keep_last_messages });
  const { messages, pruned } = visiblePrompt(projection, settings, state);
  return { messages: sentMessages(messages), pruned: { results: [...pruned.results], messages: [...pruned.messages] } };
}

/** Returns the state of a conversation. */
export async function tyrumState(open: OpenContext): Promise<AnswerBody<'TyrumConversationState'>> {
  const conversation = await conversationOf(open);
  const { conversationState } = await import('./conversation.js');
  return { status: 'ok', conversation_id: conversation.projection.session, state: conversationState(conversation) };
}

/** Stores pending items and facts as records at the session's last step, all or none. */
export async function keepTyrumObligations(
  { client, session }: OpenContext,
  { approvals = [], calls = [], notes = [] }: RequestBody<'TyrumObligations'>,
): Promise<AnswerBody<'TyrumObligationsKept'>> {
  const { id, state } = session.session;
  const common = { owner: { session: id }, turn: state.turn, seq: state.seq, at: client.now(), basis: null };
  const records: readonly ContextRecord[] = [
    ...approvals.map(
      ({ approval_id: approval, state: stands, text = '', tool_name: tool, tool_call_id: native, reason }) => ({
        kind: 'approval' as const,
        ...common,
        body: { approval, state: stands, text, ...defined({ tool, native, reason }) },
      }),
    ),
    ...calls.map(({ tool_call_id: native, tool_name: tool, args = {} }) => ({
      kind: 'call' as const,
      ...common,
      body: { native, tool, args: args as RecordBody<'call'>['args'], by: state.seq },
    })),
    ...notes.map(({ name, note, text, source, open: isOpen }) => ({
      kind: 'note' as const,
      ...common,
      body: { name, note, text, ...defined({ source, isOpen }) },
    })),
  ];
  if (records.length > 0) await session.session.keepRecords(records);
  return { approvals: approvals.length, calls: calls.length, notes: notes.length };
}

/**
 * Approximate characters per token of a tool's schema. A caller with a better estimate sends
 * `reserved_tokens`.
 */
const CHARS_OF_TOKEN = 4;

/** Formats a compaction. */
export function compactedAnswer(
  { view, state, identifiers }: CompactedConversation,
  {
    recorded,
    reserved,
    flushed,
  }: { readonly recorded: boolean; readonly reserved: number; readonly flushed?: Flushed },
): AnswerBody<'TyrumCompacted'> & { readonly state: ConversationState } {
  const made = view.state.summary?.summary;
  const { checkpoint } = state;
  return {
    status: 'ok',
    compacted: view.shrunk !== undefined,
    recorded,
    state,
    messages: sentMessages(messagesOf(view.items)),
    tokens: view.tokens,
    before_tokens: view.shrunk?.before ?? view.tokens,
    reserved_tokens: reserved,
    limit: view.limits.most,
    counter: view.counter,
    checkpoint_by: made?.by ?? null,
    refused: [...new Set(made?.refused)],
    flush:
      flushed === undefined
        ? null
        : {
            outcome: flushed.outcome,
            hash: flushed.hash,
            memory_item_id: flushed.item?.memory_item_id ?? null,
            why: flushed.why ?? null,
          },
    to_summarise:
      checkpoint === null
        ? null
        : { message_ids: [...view.state.gone], critical_identifiers: [...identifiers], checkpoint },
  };
}

/** Stores memory from the text that a compaction is about to remove, and records the flush. */
async function flush(
  open: OpenContext,
  { agent, item }: NonNullable<RequestBody<'TyrumCompaction'>['memory']>,
  {
    conversation,
    compacted,
    at,
  }: { readonly conversation: Conversation; readonly compacted: CompactedConversation; readonly at: number },
): Promise<{ readonly flushed: Flushed; readonly record: ContextRecord<'event'> }> {
  const { flushMemory } = await import('./flush-memory.js');
  const { projection, facts, state } = conversation;
  const [before, gone] = [new Set<string>(state.gone), new Set<string>(compacted.view.state.gone)];
  const leaving = projection.entries.filter(({ id }) => gone.has(id) && !before.has(id));
  const flushed = await flushMemory(leaving, facts, {
    memory: await memoryOf(open, agent),
    session: projection.session,
    at,
    remember: item === undefined ? undefined : async () => item,
  });
  const { outcome, hash, why, item: kept } = flushed;
  const data = { agent, outcome, hash, ...defined({ why, memory_item_id: kept?.memory_item_id }) };
  const { session, turn, seq, basis } = projection;
  return {
    flushed,
    record: { kind: 'event', owner: { session }, turn, seq, at, basis, body: { type: 'tyrum.memory.flush', data } },
  };
}

/**
 * Compacts a conversation to a token limit. A checkpoint in the request is used like one attempt of
 * a checkpoint writer.
 */
export async function compactTyrumConversation(
  open: OpenContext,
  body: RequestBody<'TyrumCompaction'>,
): Promise<AnswerBody<'TyrumCompacted'>> {
  const { client, session } = open;
  const conversation = await conversationOf(open);
  const { compactConversation, compactionRecords } = await import('./compact-conversation.js');
  const { id } = session.session;
  const store = await client.delivered({ others: false });
  const announced =
    body.reserved_tokens === undefined ? (await readAnnouncements(await store.latest(), id)).at(-1) : undefined;
  const chars = (announced?.tools.tools ?? []).reduce((sum, tool) => sum + tool.chars, 0);
  const reserved = body.reserved_tokens ?? Math.ceil(chars / CHARS_OF_TOKEN);
  const wish: CompactionWish = {
    tokens: body.max_tokens,
    reserved,
    reason: body.reason ?? 'token_pressure',
    ...defined({
      threshold: body.threshold,
      target: body.target,
      keepLastMessages: body.keep_last_messages,
      keepResults: body.keep_results,
      checkpointTokens: body.checkpoint_tokens,
      reported: body.reported_tokens,
    }),
  };
  const at = client.now();
  const writer =
    body.checkpoint === undefined ? undefined : new SentCheckpoint(body.writer ?? 'model', body.checkpoint);
  const compacted = await compactConversation(conversation, wish, { writer, rewrite: true, at });
  if (body.last_try !== true) writer?.requireTaken();
  const records = body.preview === true ? [] : compactionRecords(conversation.projection, compacted, { wish, at });
  const flushed =
    records.length > 0 && body.memory !== undefined
      ? await flush(open, body.memory, { conversation, compacted, at })
      : undefined;
  if (records.length > 0)
    await session.session.keepRecords([...records, ...(flushed === undefined ? [] : [flushed.record])]);
  return compactedAnswer(compacted, {
    recorded: records.length > 0,
    reserved,
    ...defined({ flushed: flushed?.flushed }),
  });
}
