import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/**
 * Types of a field: `text`, `map`, `count`, `number`, `time`, `any`, alternatives with `|`, a list
 * with `[]`.
 */
const TYPES: Readonly<Record<string, object>> = {
  text: { type: 'string' },
  map: { type: 'object' },
  list: { type: 'array' },
  count: { type: 'integer', minimum: 0 },
  number: { type: 'number' },
  time: { type: 'string', format: 'date-time' },
  any: {},
  ref: { type: ['string', 'object'] },
  scope: { type: 'string', enum: ['turn', 'task', 'session', 'tool_invocation', 'review', 'handoff', 'custom'] },
};

/**
 * The published schemas of the draft, version 0.1.1: required fields, then all others with their
 * types.
 */
const PUBLISHED = {
  context_envelope: `schema_version! context_id! scope!:scope lifecycle! created_at!:time producer:ref
    actor_refs:ref[] runtime_refs:ref[] surface_refs:ref[]
    item_refs:ref[] selection_refs:ref[] budget_ref:ref assembly_refs:ref[] injection_refs:ref[] compaction_refs:ref[]
    missing_context_refs:ref[] policy_refs:ref[]
    evidence_refs:ref[] telemetry_refs:ref[] metadata:map`,
  context_surface: `schema_version! surface_id! scope! surface_kind producer:ref available_source_refs:ref[]
    available_item_refs:ref[] capability_refs:ref[]
    policy_refs:ref[] visibility:text[] created_at!:time expires_at:time metadata:map`,
  context_item: `schema_version! item_id! context_kind! title content_mode! content:any content_ref:ref mime_type
    language source_refs:ref[] token_estimate:count
    byte_size:count freshness:ref trust_level sensitivity redaction_state visibility!:text[] priority:number
    created_at:time metadata:map`,
  context_source_ref: `schema_version! source_id! uri! source_kind! selector:map|list|text digest authority
    provenance_refs:ref[] external_mappings:map[] license
    retrieved_at:time modified_at:time metadata:map`,
  context_selection: `schema_version! selection_id! surface_id! query intent candidate_item_refs:ref[]
    selected_item_refs:ref[] omitted_item_refs:ref[]
    ranking_signals:map selection_policy:ref budget_ref:ref rationale actor_ref:ref model_ref:ref created_at!:time
    metadata:map`,
  context_budget: `schema_version! budget_id! target! max_tokens:count reserved_tokens:count max_bytes:count
    max_items:count actual_tokens:count actual_bytes:count
    actual_items:count overflow_strategy truncation_records:map[] window_segments:map[] created_at!:time metadata:map`,
  context_assembly: `schema_version! assembly_id! target! ordered_blocks!:map[] wrapping_policy:ref
    separator_policy:ref visibility:text[] budget_ref:ref
    source_item_refs:ref[] redaction_state created_at!:time metadata:map`,
  context_compaction: `schema_version! compaction_id! scope! source_item_refs!:ref[] summary_ref:ref method! trigger
    coverage:map loss_notes:text[] validation:ref
    replacement_policy created_at!:time metadata:map`,
  missing_context: `schema_version! missing_id! scope! question! needed_for severity! candidate_sources:map[]
    blocked_actions:text[] requested_from:ref status!
    resolution_refs:ref[] created_at!:time metadata:map`,
  context_event: `schema_version! event_id! event_type! source! subject time!:time context_id runtime_id session_id
    thread_id turn_id task_id run_id attempt_id
    step_id tool_call_id action_id evidence_id data:map policy_refs:ref[] evidence_refs:ref[] telemetry_refs:ref[]
    metadata:map`,
} as const;

function typeOf(name: string): object {
  if (name.endsWith('[]')) return { type: 'array', items: typeOf(name.slice(0, -2)) };
  const names = name.split('|');
  return names.length === 1
    ? { ...TYPES[name] }
    : { type: names.flatMap((one) => (TYPES[one] as { readonly type: string }).type) };
}

/**
 * Returns the published schema of an object as JSON Schema 2020-12. The draft has none for windows,
 * injections and summaries.
 */
function publishedSchema(fields: string): {
  readonly type: string;
  readonly properties: Readonly<Record<string, object>>;
  readonly required: readonly string[];
} {
  const read = fields.split(/\s+/u).map((field) => {
    const [name = '', type = 'text'] = field.split(':');
    return { name: name.replace('!', ''), isRequired: name.endsWith('!'), type };
  });
  return {
    type: 'object',
    properties: Object.fromEntries(read.map(({ name, type }) => [name, typeOf(type)])),
    required: read.flatMap(({ name, isRequired }) => (isRequired ? [name] : [])),
  };
}

/** Returns validators of the published schemas, by object name. */
export function publishedValidators(): ReadonlyMap<string, ValidateFunction> {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true });
  addFormats.default(ajv);
  return new Map(Object.entries(PUBLISHED).map(([name, fields]) => [name, ajv.compile(publishedSchema(fields))]));
}
