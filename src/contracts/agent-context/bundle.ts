import type { ContextRecord } from '../../objects/context-record.js';
import { hashText } from '../../objects/hashes.js';
import type { Step } from '../../objects/step.js';
import { textsOf } from '../projection/item-texts.js';
import type { Projection } from '../projection/project-session.js';
import { Redactor } from '../projection/redaction-rules.js';
import type { Bundle } from './bundle-parts.js';
import { contextEvents } from './context-events.js';
import { type HandedOutContext, handedOutAssembly } from './handed-out-assemblies.js';
import type { Item } from './item-parts.js';
import { ItemTable } from './item-table.js';
import { type FactRecord, recordedFacts } from './recorded-facts.js';
import { SCHEMA_VERSION, type Shaped, timeText } from './shapes.js';

/**
 * The input of a bundle. Everything is read at one basis except redactions, which are the newest.
 */
export interface BundleSource {
  readonly projection: Projection;
  /**
   * The newest transaction that wrote a part of the bundle. Set if the basis is not the end of a
   * step, so that writes of other sessions do not change the bundle.
   */
  readonly newest?: number | undefined;
  /** Whether the bundle covers a turn or the whole session up to the basis. */
  readonly scope: 'turn' | 'session';
  readonly steps: readonly Step[];
  readonly records: readonly FactRecord[];
  /** The handed-out contexts of the scope, oldest first. */
  readonly delivered: readonly HandedOutContext[];
  /**
   * All event records of the session, including later ones. Text that is redacted now is also
   * hidden in past bundles.
   */
  readonly redactions: readonly ContextRecord<'event'>[];
  /**
   * Returns those texts of a wholly redacted object that the projection lacks. These are the
   * object's texts at other moments, and the texts of files that the projection shows as a line.
   */
  readonly redactedTexts: (name: string) => readonly string[];
}

const PRODUCER = { name: 'palimpsest', contract: 'agent-context' } as const;

/** Derives from the sets which items the model had in full, and which only as a line [§3.1]. */
function setsSelection(projection: Projection, table: ItemTable, surface: string) {
  const { entries, files, sets } = projection;
  const candidates: string[] = [];
  const selected: string[] = [];
  const omitted: Shaped<'context_selection'>['omitted_item_refs'][number][] = [];
  for (const entry of entries) {
    if (entry.kind === 'approval') continue;
    candidates.push(entry.id);
    if (entry.kind !== 'result' || entry.active) selected.push(entry.id);
    else omitted.push({ item_ref: entry.id, reason: 'custom', metadata: { reason: 'not_active', shown_as: 'line' } });
  }
  for (const { metadata, active } of files) {
    candidates.push(metadata.id);
    if (active) selected.push(metadata.id);
    else if (metadata.state === 'deleted') omitted.push({ item_ref: metadata.id, reason: 'stale' });
    else
      omitted.push({ item_ref: metadata.id, reason: 'custom', metadata: { reason: 'not_active', shown_as: 'line' } });
  }
  const pinned = table.refs(sets.pinned);
  const selection: Omit<Shaped<'context_selection'>, 'created_at' | 'budget_ref'> = {
    schema_version: SCHEMA_VERSION,
    selection_id: 'selection-sets',
    surface_id: surface,
    candidate_item_refs: candidates,
    selected_item_refs: selected,
    omitted_item_refs: omitted,
    ranking_signals: { user_pin: pinned },
    selection_policy: 'the sets of the session: what is active is shown whole, the rest as a line',
  };
  return selection;
}

/** The segments of the selected items, in the order of a context. */
const SEGMENTS: readonly (readonly [role: string, kinds: ReadonlySet<Item['context_kind']>])[] = [
  ['system', new Set(['system_prompt'])],
  ['chat', new Set(['user_message', 'session_history', 'developer_instruction', 'runtime_state'])],
  ['active', new Set(['tool_result', 'file_excerpt', 'peer_agent_message'])],
];

/**
 * Sums the token counts of the selected items. The budget states no limit, because the sets have
 * none.
 */
function setsBudget(
  selected: readonly Item[],
  omitted: number,
  { counter, created_at }: { counter: string; created_at: string },
) {
  const tokens = (items: readonly Item[]): number =>
    items.reduce((sum, { token_estimate = 0 }) => sum + token_estimate, 0);
  const segments = SEGMENTS.map(([role, kinds], order) => {
    const items = selected.filter(({ context_kind }) => kinds.has(context_kind));
    return {
      segment_id: `segment-${role}`,
      role,
      target: 'model',
      actual_tokens: tokens(items),
      item_refs: items.map(({ item_id }) => item_id),
      order,
      truncation_records: [],
    };
  });
  const budget: Shaped<'context_budget'> = {
    schema_version: SCHEMA_VERSION,
    budget_id: 'budget-sets',
    target: 'model',
    actual_tokens: tokens(selected),
    actual_bytes: selected.reduce((sum, { byte_size = 0 }) => sum + byte_size, 0),
    actual_items: selected.length,
    overflow_strategy: 'custom',
    truncation_records: [],
    window_segments: segments.map(({ segment_id }) => ({ kind: 'window_segment', id: segment_id })),
    created_at,
    metadata: { counter, limit: 'none is configured', shown_as_lines: omitted },
  };
  const window: Shaped<'context_window'> = {
    schema_version: SCHEMA_VERSION,
    window_id: 'window-sets',
    target: 'model',
    budget_ref: budget.budget_id,
    segments,
    created_at,
  };
  return { budget, window };
}

/** Reports files that a failed call asked for and whose text is not stored. */
function unreadFiles({ entries, files, session }: Projection, table: ItemTable): readonly Shaped<'missing_context'>[] {
  const asked = new Map<string, Extract<Projection['entries'][number], { kind: 'result' }>>();
  for (const entry of entries)
    if (entry.kind === 'result' && entry.status === 'fail') for (const file of entry.files) asked.set(file, entry);
  return files.flatMap(({ metadata }): readonly Shaped<'missing_context'>[] => {
    const by = asked.get(metadata.id);
    if (metadata.state !== 'stub' || by === undefined) return [];
    const title = table.get(metadata.id)?.title ?? metadata.id;
    const source = table.fileSource(metadata.id);
    return [
      {
        schema_version: SCHEMA_VERSION,
        missing_id: `missing-${metadata.id.slice(0, 24)}`,
        scope: 'session',
        question:
          `What does ${title} hold? ` + `The call ${by.native} (${by.tool}) asked for it, and nothing of it is known.`,
        severity: 'medium',
        candidate_sources: source === undefined ? [] : [{ source_ref: source }],
        blocked_actions: [`${by.tool} ${title}`],
        requested_from: session,
        status: 'open',
        resolution_refs: [],
        created_at: timeText(by.at),
        metadata: { owner: session, safe_summary: 'a file that was asked for is not known', requested_by: by.id },
      },
    ];
  });
}

/** Returns the newest time in the bundle, so that an equal basis gives an equal time. */
function momentOf({ projection, records, delivered }: BundleSource): number {
  const times = [
    ...projection.entries.map(({ at }) => at),
    ...records.map(({ at }) => at),
    ...delivered.map(({ proof }) => proof.at),
  ];
  for (const { validTime } of projection.versions.values()) times.push(validTime);
  return times.reduce((latest, at) => Math.max(latest, at), 0);
}

/** Makes the bundle of a session at a basis. Equal sources give equal bundles. */
export function makeBundle(source: BundleSource): Bundle {
  const { projection, newest, scope, steps, records, delivered, redactions, redactedTexts } = source;
  const basis = newest === undefined ? projection.basis : { validTime: momentOf(source), txId: newest };
  const { session, counter, entries, turn, seq, digest } = projection;
  const held = textsOf(projection);
  const redactor = new Redactor(redactions, (name) => [...held(name), ...redactedTexts(name)]);
  const table = new ItemTable(projection, redactor);
  const created_at = timeText(momentOf(source));
  const identity = JSON.stringify([session, scope, seq, basis.validTime, basis.txId]);
  const context_id = `context-${hashText(identity).slice(0, 32)}`;
  const surface_id = `surface-${scope}-${scope === 'turn' ? turn : 'all'}`;
  const facts = recordedFacts(records, { table, redactor, surface: surface_id, session });
  const handed = delivered.map((context) => handedOutAssembly(context, { table, entries, session }));
  const chosen = setsSelection(projection, table, surface_id);
  const selected = chosen.selected_item_refs.flatMap((id) => table.get(id) ?? []);
  const sets = setsBudget(selected, chosen.omitted_item_refs.length, { counter: counter.name, created_at });
  const missing = [...facts.missing, ...unreadFiles(projection, table)];
  const approvals = entries.flatMap((entry) => (entry.kind === 'approval' ? [`approval:${entry.approval}`] : []));
  const policies = [...new Set([...redactor.policies, ...approvals])];
  const assemblies = [...facts.assemblies, ...handed.map(({ assembly }) => assembly)];
  const injections = [...facts.injections, ...handed.map(({ injection }) => injection)];
  const selections = [{ ...chosen, budget_ref: sets.budget.budget_id, created_at }, ...facts.selections];
  // Read last, because each reference to a missing item adds that item to the table.
  const { items, sources } = table;
  const surface: Shaped<'context_surface'> = {
    schema_version: SCHEMA_VERSION,
    surface_id,
    scope,
    surface_kind: scope === 'turn' ? 'turn_surface' : 'session_surface',
    producer: PRODUCER,
    available_source_refs: sources.map(({ source_id }) => source_id),
    available_item_refs: items.map(({ item_id }) => item_id),
    ...(policies.length === 0 ? {} : { policy_refs: policies }),
    visibility: ['model', 'reviewer'],
    created_at,
  };
  const envelope: Shaped<'context_envelope'> = {
    schema_version: SCHEMA_VERSION,
    context_id,
    scope,
    lifecycle: injections.length > 0 ? 'injected' : items.length > 0 ? 'selected' : 'available',
    created_at,
    producer: PRODUCER,
    runtime_refs: [
      { kind: 'session', id: session },
      { kind: 'thread', id: session },
      { kind: 'turn', id: `turn:${turn}` },
      { kind: 'step', id: `step:${seq}` },
    ],
    surface_refs: [surface_id],
    item_refs: items.map(({ item_id }) => item_id),
    selection_refs: selections.map(({ selection_id }) => selection_id),
    budget_ref: sets.budget.budget_id,
    assembly_refs: assemblies.map(({ assembly_id }) => assembly_id),
    injection_refs: injections.map(({ injection_id }) => injection_id),
    compaction_refs: facts.compactions.map(({ compaction_id }) => compaction_id),
    missing_context_refs: missing.map(({ missing_id }) => missing_id),
    policy_refs: policies,
    evidence_refs: delivered.map(({ id }) => ({ kind: 'assembly_record', id })),
    metadata: {
      valid_time: basis.validTime,
      tx_id: basis.txId,
      turn,
      step: seq,
      entries: entries.length,
      digest: `sha256:${digest}`,
      counter: counter.name,
    },
  };
  const whole = {
    envelope,
    surfaces: [surface],
    items,
    sources,
    selections,
    budgets: [sets.budget, ...facts.budgets],
    windows: [sets.window, ...facts.windows],
    assemblies,
    injections,
    compactions: facts.compactions,
    summaries: facts.summaries,
    missing,
  };
  return { ...whole, events: contextEvents(whole, { session, steps, records, redactor, table }) };
}
