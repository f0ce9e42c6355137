import type { Item } from './item-parts.js';
import type { Shaped, ShapeName } from './shapes.js';

/**
 * A bundle of the Agent Context draft: a session's context at a basis. Each object has an id, and
 * every reference between objects resolves within the bundle.
 */
export interface Bundle {
  readonly envelope: Shaped<'context_envelope'>;
  readonly surfaces: readonly Shaped<'context_surface'>[];
  readonly items: readonly Item[];
  readonly sources: readonly Shaped<'context_source_ref'>[];
  readonly selections: readonly Shaped<'context_selection'>[];
  readonly budgets: readonly Shaped<'context_budget'>[];
  readonly windows: readonly Shaped<'context_window'>[];
  readonly assemblies: readonly Shaped<'context_assembly'>[];
  readonly injections: readonly Shaped<'context_injection'>[];
  readonly compactions: readonly Shaped<'context_compaction'>[];
  readonly summaries: readonly Shaped<'context_summary'>[];
  readonly missing: readonly Shaped<'missing_context'>[];
  readonly events: readonly Shaped<'context_event'>[];
}

/** Where each kind of object appears in a bundle, and the field that holds its id. */
export const BUNDLE_PARTS = {
  envelope: { file: 'context_envelope.json', shape: 'context_envelope', key: 'context_id' },
  surfaces: { file: 'context_surface.jsonl', shape: 'context_surface', key: 'surface_id' },
  items: { file: 'context_item.jsonl', shape: 'context_item', key: 'item_id' },
  sources: { file: 'context_source_ref.jsonl', shape: 'context_source_ref', key: 'source_id' },
  selections: { file: 'context_selection.jsonl', shape: 'context_selection', key: 'selection_id' },
  budgets: { file: 'context_budget.jsonl', shape: 'context_budget', key: 'budget_id' },
  windows: { file: 'context_window.jsonl', shape: 'context_window', key: 'window_id' },
  assemblies: { file: 'context_assembly.jsonl', shape: 'context_assembly', key: 'assembly_id' },
  injections: { file: 'context_injection.jsonl', shape: 'context_injection', key: 'injection_id' },
  compactions: { file: 'context_compaction.jsonl', shape: 'context_compaction', key: 'compaction_id' },
  summaries: { file: 'context_summary.jsonl', shape: 'context_summary', key: 'summary_id' },
  missing: { file: 'missing_context.jsonl', shape: 'missing_context', key: 'missing_id' },
  events: { file: 'context_event.jsonl', shape: 'context_event', key: 'event_id' },
} as const satisfies {
  readonly [Part in keyof Bundle]: { readonly file: string; readonly shape: ShapeName; readonly key: string };
};

/** The name of a part of a bundle. */
export type BundlePart = keyof Bundle;
/** All part names, in the order of `BUNDLE_PARTS`. */
export const PART_NAMES = Object.keys(BUNDLE_PARTS) as readonly BundlePart[];

/** Returns the objects of a part. */
export function objectsOf(bundle: Bundle, part: BundlePart): readonly object[] {
  return part === 'envelope' ? [bundle.envelope] : bundle[part];
}
