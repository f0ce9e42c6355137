import * as z from 'zod';
import type { SessionId } from '../../objects/ids.js';
import type { ContextLedger, ReportedContext } from '../../review/ask/context-report.js';
import type { AnnouncedTools } from './announced-tools.js';
import { sharesFirst, stableUuid } from './stable-uuid.js';

const count = z.int().nonnegative();
const name = z.string().min(1);
const sized = z.strictObject({ id: name, chars: count });

/**
 * A context report in Tyrum's exact fields: names, and sizes in characters (UTF-16 units). It does
 * not contain the prompt's text. Fields without data are empty.
 */
export const tyrumReportSchema = z.strictObject({
  context_report_id: z.uuid(),
  generated_at: z.iso.datetime().describe('When the last step that the context includes was acknowledged'),
  conversation_id: name.describe('The session'),
  channel: name,
  thread_id: name,
  system_prompt: z.strictObject({ chars: count, sections: z.array(sized) }),
  user_parts: z.array(sized),
  selected_tools: z.array(name),
  tool_schema_top: z.array(sized).max(5),
  tool_schema_total_chars: count,
  enabled_skills: z.array(name),
  mcp_servers: z.array(name),
  memory: z.strictObject({ keyword_hits: count, semantic_hits: count }),
  pre_turn_tools: z.array(
    z.strictObject({
      tool_id: name,
      status: z.enum(['succeeded', 'failed', 'skipped']),
      injected_chars: count,
      error: name.optional(),
    }),
  ),
  tool_calls: z.array(z.strictObject({ tool_call_id: name, tool_id: name, injected_chars: count })),
  injected_files: z.array(
    z.strictObject({
      tool_call_id: name,
      path: name,
      offset: count.optional(),
      limit: z.int().positive().optional(),
      raw_chars: count,
      selected_chars: count,
      injected_chars: count,
      truncated: z.boolean(),
      truncation_marker: name.optional(),
    }),
  ),
});

/** A context report in Tyrum's exact fields. */
export type TyrumReport = z.output<typeof tyrumReportSchema>;

/** A context for which a report can be made. */
export interface ReportedMoment {
  readonly session: SessionId;
  readonly step: number;
  /**
   * The hash in the context's record. Undefined for a context that was not handed out but assembled
   * at the end of a turn.
   */
  readonly sha256: string | undefined;
}

const ofSession = (session: SessionId): readonly string[] => ['context-report', session];

/**
 * Returns the id of a context's report. A context always gets the same id. The id's first half
 * depends only on the session.
 */
export function tyrumReportId({ session, step, sha256 = 'assembled' }: ReportedMoment): string {
  return stableUuid(ofSession(session), [step, sha256]);
}

/** Returns true if the first half of a report's id is that of a session. */
export const isReportOf = (report: string, session: SessionId): boolean =>
  sharesFirst(report, stableUuid(ofSession(session), []));

const LARGEST_SCHEMAS = 5;
/** The tools whose calls recall items of an agent's memory. */
const RECALLS: ReadonlySet<string> = new Set(['memory.seed', 'memory.search']);

const charsOf = ({ sections }: ContextLedger, wanted: ContextLedger['sections'][number]['name']): number =>
  sections.find((section) => section.name === wanted)?.chars ?? 0;

function userParts({ context, ledger }: ReportedContext): TyrumReport['user_parts'] {
  const messages = context.input.turns.flatMap((turn) => turn.messages);
  const request = messages.findLast(({ role }) => role === 'user')?.text.length ?? 0;
  return [
    { id: 'metadata_pool', chars: charsOf(ledger, 'pool') },
    { id: 'conversation_state', chars: Math.max(0, charsOf(ledger, 'chat') - request) },
    { id: 'active_content', chars: charsOf(ledger, 'active') },
    { id: 'user_request', chars: request },
  ];
}

function injectedFiles({ context: { input } }: ReportedContext): TyrumReport['injected_files'] {
  return input.active.flatMap(({ metadata, content }) => {
    if (metadata.type !== 'file') return [];
    const call = input.pool.findLast((object) => object.type === 'toolcall' && object.fileRefs.includes(metadata.id));
    const injected = content?.length ?? 0;
    const raw = Math.max(metadata.charCount, injected);
    return [
      {
        tool_call_id: call?.id ?? metadata.id,
        path: metadata.displayPath,
        raw_chars: raw,
        selected_chars: raw,
        injected_chars: injected,
        truncated: injected < raw,
      },
    ];
  });
}

/**
 * Returns the report of a context. `at` is the time when its last step was acknowledged, in
 * milliseconds since 1970. The harness's last tool report at that time is `tools`. Each character
 * of the context counts in exactly one of `system_prompt.chars` and `user_parts`. Calls and files
 * also appear in lists by name.
 */
export function tyrumReport(
  reported: ReportedContext,
  { at, tools }: { readonly at: number; readonly tools?: AnnouncedTools | undefined },
): TyrumReport {
  const { context, ledger } = reported;
  const { session, step, source, sha256 } = context;
  const system = charsOf(ledger, 'system');
  const offered = tools?.tools ?? [];
  const calls = ledger.objects.filter(({ type }) => type === 'toolcall');
  return {
    context_report_id: tyrumReportId({ session, step, sha256: source === 'record' ? sha256 : undefined }),
    generated_at: new Date(at).toISOString(),
    conversation_id: session,
    channel: 'palimpsest',
    thread_id: session,
    system_prompt: { chars: system, sections: system === 0 ? [] : [{ id: 'system_prompt', chars: system }] },
    user_parts: userParts(reported),
    selected_tools: offered.map(({ id }) => id),
    tool_schema_top: offered.toSorted((a, b) => b.chars - a.chars).slice(0, LARGEST_SCHEMAS),
    tool_schema_total_chars: offered.reduce((sum, { chars }) => sum + chars, 0),
    enabled_skills: tools?.skills ?? [],
    mcp_servers: tools?.mcp_servers ?? [],
    memory: { keyword_hits: calls.filter((call) => RECALLS.has(call.name)).length, semantic_hits: 0 },
    pre_turn_tools: [],
    tool_calls: calls.map((call) => ({ tool_call_id: call.id, tool_id: call.name, injected_chars: call.shown.chars })),
    injected_files: injectedFiles(reported),
  };
}
