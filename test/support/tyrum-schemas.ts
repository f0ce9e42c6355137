import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

type Schema = Readonly<Record<string, unknown>>;

const name = { type: 'string', minLength: 1 };
const text = { type: 'string' };
const count = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const time = { type: 'string', format: 'date-time', pattern: 'Z$' };
const uuid = { type: 'string', format: 'uuid' };
const share = { type: 'number', minimum: 0, maximum: 1 };
const list = (items: Schema): Schema => ({ type: 'array', items });
const oneOf = (...words: readonly string[]): Schema => ({ type: 'string', enum: words });

/** An object; names that end in `?` are optional. Only reports may have additional fields. */
function object(fields: Readonly<Record<string, Schema>>, isOpen = false): Schema {
  const entries = Object.entries(fields).map(([key, schema]) => [key.replace(/\?$/, ''), schema] as const);
  const required = Object.keys(fields).filter((key) => !key.endsWith('?'));
  return {
    type: 'object',
    properties: Object.fromEntries(entries),
    required,
    ...(isOpen ? {} : { additionalProperties: false }),
  };
}

const open = (fields: Readonly<Record<string, Schema>>): Schema => object(fields, true);
const sized = open({ id: name, chars: count });

const checkpoint = object({
  goal: text,
  'user_constraints?': list(text),
  'decisions?': list(text),
  'discoveries?': list(text),
  'completed_work?': list(text),
  'pending_work?': list(text),
  'unresolved_questions?': list(text),
  'critical_identifiers?': list(text),
  'relevant_files?': list(text),
  handoff_md: text,
});

const memory = (kind: string, fields: Readonly<Record<string, Schema>>): Schema =>
  object({
    v: { type: 'number', const: 1 },
    memory_item_id: uuid,
    agent_id: uuid,
    kind: { type: 'string', const: kind },
    'tags?': list(name),
    'sensitivity?': oneOf('public', 'private', 'sensitive'),
    provenance: object({
      source_kind: oneOf('user', 'operator', 'tool', 'system', 'import'),
      'channel?': name,
      'thread_id?': name,
      'conversation_id?': name,
      'message_id?': name,
      'tool_call_id?': name,
      'refs?': list(name),
      'metadata?': {},
    }),
    created_at: time,
    'updated_at?': time,
    ...fields,
  });

/** Tyrum's published schemas for each kind of our answers. */
const PUBLISHED = {
  ContextReport: open({
    context_report_id: uuid,
    generated_at: time,
    conversation_id: name,
    channel: name,
    thread_id: name,
    'agent_id?': uuid,
    'workspace_id?': uuid,
    system_prompt: open({ chars: count, 'sections?': list(sized) }),
    'user_parts?': list(sized),
    'selected_tools?': list(name),
    'tool_schema_top?': list(sized),
    'tool_schema_total_chars?': count,
    'enabled_skills?': list(name),
    'mcp_servers?': list(name),
    'memory?': open({ 'keyword_hits?': count, 'semantic_hits?': count }),
    'pre_turn_tools?': list(
      open({ tool_id: name, status: oneOf('succeeded', 'failed', 'skipped'), injected_chars: count, 'error?': name }),
    ),
    'tool_calls?': list(open({ tool_call_id: name, tool_id: name, injected_chars: count })),
    'injected_files?': list(
      open({
        tool_call_id: name,
        path: name,
        'offset?': count,
        'limit?': { ...count, minimum: 1 },
        raw_chars: count,
        selected_chars: count,
        injected_chars: count,
        truncated: { type: 'boolean' },
        'truncation_marker?': name,
      }),
    ),
  }),
  ConversationState: object({
    version: { type: 'number', const: 1 },
    'compacted_through_message_id?': name,
    'recent_message_ids?': list(name),
    'checkpoint?': { anyOf: [checkpoint, { type: 'null' }] },
    'pending_approvals?': list(
      object({
        approval_id: name,
        'approved?': { type: 'boolean' },
        state: oneOf('approved', 'cancelled', 'denied', 'expired', 'pending'),
        tool_call_id: name,
        tool_name: name,
      }),
    ),
    'pending_tool_state?': list(object({ summary: text, tool_call_id: name, tool_name: name })),
    updated_at: time,
  }),
  CheckpointSummary: checkpoint,
  MemoryItem: {
    oneOf: [
      memory('fact', { key: name, value: {}, observed_at: time, confidence: share }),
      memory('note', { 'title?': name, body_md: name }),
      memory('procedure', { 'title?': name, body_md: name, 'confidence?': share }),
      memory('episode', { occurred_at: time, summary_md: name }),
    ],
  },
  MemoryTombstone: object({
    v: { type: 'number', const: 1 },
    memory_item_id: uuid,
    agent_id: uuid,
    deleted_at: time,
    deleted_by: oneOf('user', 'operator', 'system', 'budget', 'consolidation'),
    'reason?': name,
  }),
} as const satisfies Readonly<Record<string, Schema>>;

/** A kind of value with a published schema of Tyrum. */
export type TyrumThing = keyof typeof PUBLISHED;

const ajv = new Ajv2020({ strict: true, allErrors: true });
addFormats.default(ajv);
const VALIDATORS = new Map<TyrumThing, ValidateFunction>();

/** Returns the findings of Tyrum's published schema on a value; empty if it is valid. */
export function tyrumFindings(thing: TyrumThing, value: unknown): readonly string[] {
  const validate = VALIDATORS.get(thing) ?? ajv.compile(PUBLISHED[thing]);
  VALIDATORS.set(thing, validate);
  validate(value);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath || 'top'}: ${message}`);
}
