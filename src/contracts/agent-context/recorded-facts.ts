import type { ContextRecord, RecordKind } from '../../objects/context-record.js';
import { defined } from '../../values/defined.js';
import type { Redactor } from '../projection/redaction-rules.js';
import { compactionOf } from './compaction-facts.js';
import { type FactSource, metadataOf, oneOf } from './fact-source.js';
import { recordName } from './item-table.js';
import { injectionPoints, omissions, overflows, visibilities } from './shape-words.js';
import { type Metadata, SCHEMA_VERSION, type Shaped, timeText } from './shapes.js';

/** The record kinds from which a session's facts are made. */
export const FACT_KINDS = [
  'budget',
  'selection',
  'injection',
  'compaction',
  'missing',
  'note',
  'event',
] as const satisfies readonly RecordKind[];
/** A record from which a fact is made. */
export type FactRecord = ContextRecord<(typeof FACT_KINDS)[number] | 'memory'>;

/** The recorded facts of a session's context as objects of the draft. */
export interface RecordedFacts {
  readonly selections: Shaped<'context_selection'>[];
  readonly budgets: Shaped<'context_budget'>[];
  readonly windows: Shaped<'context_window'>[];
  readonly assemblies: Shaped<'context_assembly'>[];
  readonly injections: Shaped<'context_injection'>[];
  readonly compactions: Shaped<'context_compaction'>[];
  readonly summaries: Shaped<'context_summary'>[];
  readonly missing: Shaped<'missing_context'>[];
}

const LONGEST_WORD = 400;

/** Redacts a short text, then cuts it to the draft's limit. A mask can be longer than the text. */
const shownWord = (redactor: Redactor, word: string): string => redactor.without(word).slice(0, LONGEST_WORD);

const reasonOf = (
  word: string,
  redactor: Redactor,
): {
  readonly reason: Shaped<'context_selection'>['omitted_item_refs'][number]['reason'];
  readonly metadata?: Metadata;
} => {
  const reason = oneOf(omissions.options, word);
  return reason === undefined ? { reason: 'custom', metadata: { reason: redactor.without(word) } } : { reason };
};

function omittedOf(
  { table, redactor }: FactSource,
  omitted: readonly { readonly item: string; readonly reason: string }[],
) {
  return omitted.map(({ item, reason }) => ({ item_ref: table.ref(item), ...reasonOf(reason, redactor) }));
}

/** Maps visibility words to those of the draft. Drops words that the draft lacks. */
function visibleTo(words: readonly string[]): Shaped<'context_injection'>['visibility'] {
  const known = visibilities.options.filter((one) => words.includes(one));
  return known.length === 0 ? ['runtime'] : known;
}

function selectionOf(record: ContextRecord<'selection'>, source: FactSource): Shaped<'context_selection'> {
  const { body, at } = record;
  const { table, redactor, surface } = source;
  const omitted = omittedOf(source, body.omitted);
  return {
    schema_version: SCHEMA_VERSION,
    selection_id: recordName('selection', record),
    surface_id: surface,
    candidate_item_refs: table.refs([...body.candidates, ...body.selected, ...body.omitted.map(({ item }) => item)]),
    selected_item_refs: table.refs(body.selected),
    omitted_item_refs: omitted,
    selection_policy: body.policy === undefined ? 'as recorded' : shownWord(redactor, body.policy),
    created_at: timeText(at),
    ...redactor.without(defined({ query: body.query, intent: body.intent, rationale: body.rationale })),
    metadata: metadataOf(record, redactor, { surface: body.surface, counter: body.counter }),
  };
}

function budgetOf(record: ContextRecord<'budget'>, source: FactSource) {
  const { body, at } = record;
  const { table, redactor } = source;
  const id = recordName('budget', record);
  const truncated = omittedOf(source, body.truncated ?? []);
  const overflow = oneOf(overflows.options, body.overflow);
  const created_at = timeText(at);
  const segments = (body.segments ?? []).map((segment, order) => ({
    segment_id: `${id}-${order + 1}`,
    role: shownWord(redactor, segment.role ?? segment.name),
    target: segment.target ?? body.target,
    actual_tokens: segment.actual,
    item_refs: table.refs(segment.items ?? []),
    order,
    truncation_records: truncated.filter(({ item_ref }) => table.refs(segment.items ?? []).includes(item_ref)),
    ...defined({ reserved_tokens: segment.reserved }),
  }));
  const budget: Shaped<'context_budget'> = {
    schema_version: SCHEMA_VERSION,
    budget_id: id,
    target: body.target,
    max_tokens: body.max,
    actual_tokens: body.actual,
    overflow_strategy: overflow ?? 'custom',
    truncation_records: truncated,
    window_segments: segments.map(({ segment_id }) => ({ kind: 'window_segment', id: segment_id })),
    created_at,
    ...defined({
      reserved_tokens: body.reserved,
      max_bytes: body.maxBytes,
      actual_bytes: body.actualBytes,
      max_items: body.maxItems,
      actual_items: body.actualItems,
    }),
    metadata: {
      ...metadataOf(record, redactor, { overflow: overflow === undefined ? body.overflow : undefined }),
      counter: body.counter,
    },
  };
  const window: Shaped<'context_window'> = {
    schema_version: SCHEMA_VERSION,
    window_id: id.replace('budget', 'window'),
    target: body.target,
    budget_ref: id,
    segments,
    created_at,
  };
  return { budget, window };
}

/**
 * Converts a recorded injection to two objects of the draft: an injection, and the assembly that it
 * names. The assembly has one block, with the hash of the injected text.
 */
function injectionOf(record: ContextRecord<'injection'>, { table, redactor }: FactSource) {
  const { body, at } = record;
  const id = recordName('injection', record);
  const assemblyId = id.replace('injection', 'assembly');
  const items = table.refs(body.items);
  const visibility = visibleTo(body.visibility);
  const point = oneOf(injectionPoints.options, body.point);
  const hash = `sha256:${body.sha256}`;
  const redaction = table.redactionOf(items);
  const created_at = timeText(at);
  const assembly: Shaped<'context_assembly'> = {
    schema_version: SCHEMA_VERSION,
    assembly_id: assemblyId,
    target: body.target,
    ordered_blocks: [
      {
        block_id: `${assemblyId}-1`,
        item_refs: items,
        wrapper: 'none',
        position: 0,
        visibility,
        hash,
        redaction_state: redaction,
      },
    ],
    wrapping_policy: 'as recorded',
    visibility,
    source_item_refs: items,
    redaction_state: redaction,
    created_at,
    metadata: metadataOf(record, redactor, { assembly: body.assembly }),
  };
  const injection: Shaped<'context_injection'> = {
    schema_version: SCHEMA_VERSION,
    injection_id: id,
    assembly_id: assemblyId,
    target: body.target,
    injection_point: point ?? 'custom',
    visibility,
    final_ref: { kind: 'injection_record', id },
    hash,
    created_at,
    ...defined({ native_id: body.native }),
    metadata: metadataOf(record, redactor, { point: point === undefined ? body.point : undefined }),
  };
  return { assembly, injection };
}

const LONGEST_LINE = 200;

/** Returns a question as one short line without control characters, safe to display. */
function safeLine(text: string): string {
  const line = text.replaceAll(/[\p{Cc}\p{Bidi_Control}\s]+/gu, ' ').trim();
  return line.length <= LONGEST_LINE
    ? line || 'something is missing'
    : `${line.slice(0, LONGEST_LINE - 2).replace(/[\ud800-\udbff]$/, '')} …`;
}

function missingOf(
  record: ContextRecord<'missing'>,
  { table, redactor, session }: FactSource,
): Shaped<'missing_context'> {
  const { body, at } = record;
  const question = redactor.without(body.question);
  return {
    schema_version: SCHEMA_VERSION,
    missing_id: recordName('missing', record),
    scope: 'session',
    question,
    severity: body.severity,
    candidate_sources: body.candidates.map((candidate) => {
      const source = table.fileSource(candidate);
      return source === undefined ? { uri: redactor.without(candidate) } : { source_ref: source };
    }),
    blocked_actions: redactor.without(body.blocked),
    status: body.status,
    resolution_refs: table.refs(body.resolvedBy ?? []),
    created_at: timeText(at),
    ...defined({
      needed_for: redactor.without(body.neededFor),
      requested_from: body.requestedFrom === undefined ? undefined : shownWord(redactor, body.requestedFrom),
    }),
    metadata: { ...metadataOf(record, redactor), owner: session, safe_summary: safeLine(question) },
  };
}

/**
 * Converts records to facts, each once. References to items that the session lacks become opaque
 * items.
 */
export function recordedFacts(records: readonly FactRecord[], source: FactSource): RecordedFacts {
  const facts: RecordedFacts = {
    selections: [],
    budgets: [],
    windows: [],
    assemblies: [],
    injections: [],
    compactions: [],
    summaries: [],
    missing: [],
  };
  const makers: { readonly [Kind in FactRecord['kind']]: (record: ContextRecord<Kind>) => void } = {
    note: (record) => source.table.addNote(record),
    memory: (record) => source.table.addMemory(record),
    event: () => undefined,
    selection: (record) => facts.selections.push(selectionOf(record, source)),
    budget: (record) => {
      const { budget, window } = budgetOf(record, source);
      facts.budgets.push(budget);
      facts.windows.push(window);
    },
    injection: (record) => {
      const { assembly, injection } = injectionOf(record, source);
      facts.assemblies.push(assembly);
      facts.injections.push(injection);
    },
    compaction: (record) => {
      const { compaction, summary } = compactionOf(record, source);
      facts.compactions.push(compaction);
      if (summary !== undefined) facts.summaries.push(summary);
    },
    missing: (record) => facts.missing.push(missingOf(record, source)),
  };
  for (const record of records) (makers[record.kind] as (record: FactRecord) => void)(record);
  return facts;
}
