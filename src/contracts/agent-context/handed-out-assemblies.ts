import type { AssemblyInput } from '../../assembly/layout.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import type { Entry } from '../projection/entry.js';
import type { ItemTable } from './item-table.js';
import { type Metadata, SCHEMA_VERSION, type Shaped, timeText } from './shapes.js';

/** A handed-out context, identified by its record. */
export interface HandedOutContext {
  /** The record's id in the database. */
  readonly id: string;
  readonly proof: AssemblyProof;
  /** The input of the context, if it could be rebuilt from the database. */
  readonly input?: Pick<AssemblyInput, 'pool' | 'active' | 'systemPrompt'>;
}

type Assembly = Shaped<'context_assembly'>;
type Injection = Shaped<'context_injection'>;
type Visibility = Assembly['visibility'];

/**
 * The recipient of a context, by the harness that got it. A replay makes contexts that no model
 * sees.
 */
const TARGETS: Readonly<
  Record<AssemblyProof['delivered'], { readonly target: string; readonly visibility: Visibility }>
> = {
  library: { target: 'model', visibility: ['model'] },
  http: { target: 'model', visibility: ['model'] },
  pi: { target: 'model', visibility: ['model'] },
  opencode: { target: 'model', visibility: ['model'] },
  gateway: { target: 'model', visibility: ['model'] },
  replay: { target: 'runtime', visibility: ['runtime'] },
};

/** Returns the items of each section of a rebuilt context. */
function itemsOf(
  { input, proof }: HandedOutContext,
  entries: readonly Entry[],
  table: ItemTable,
): ReadonlyMap<string, readonly string[]> {
  if (input === undefined) return new Map();
  const isOfChat = ({ kind, seq }: Entry): boolean =>
    kind !== 'approval' && kind !== 'result' && seq > 0 && seq <= proof.step;
  const ids = (objects: readonly { readonly id: ObjectId }[]): readonly string[] =>
    table.refs(objects.map(({ id }) => id));
  const { note } = proof.epoch ?? {};
  const noted = [note?.lines, note?.contents, note?.changes].flatMap((objects) => objects ?? []);
  return new Map([
    ['system', input.systemPrompt === null || !table.has('system') ? [] : ['system']],
    ['pool', ids(input.pool)],
    ['chat', entries.filter(isOfChat).map(({ id }) => id)],
    ['active', ids(input.active.map(({ metadata }) => metadata))],
    ['notes', table.refs(noted.filter((id) => table.has(id)))],
  ]);
}

/**
 * Converts a handed-out context to an assembly and the injection that its record proves. If the
 * context could not be rebuilt, its sections have hashes but no items.
 */
export function handedOutAssembly(
  context: HandedOutContext,
  {
    table,
    entries,
    session,
  }: { readonly table: ItemTable; readonly entries: readonly Entry[]; readonly session: string },
): { readonly assembly: Assembly; readonly injection: Injection } {
  const { id, proof, input } = context;
  const { turn, step, renderer, layout, version, delivered, sections, chars, sha256, at, basis, handed } = proof;
  const assembly_id = `assembly-${id}`;
  const { target, visibility } = TARGETS[delivered];
  const record = { kind: 'assembly_record', id };
  const items = itemsOf(context, entries, table);
  const created_at = timeText(at);
  const where = { turn_id: `turn:${turn}`, step_id: `step:${step}`, session_id: session } as const;
  const blocks = sections.map((section, position) => {
    const item_refs = items.get(section.name) ?? [];
    return {
      block_id: `${assembly_id}-${section.name}`,
      item_refs,
      content_ref: record,
      wrapper: section.name,
      position,
      visibility,
      hash: `sha256:${section.sha256}`,
      redaction_state: table.redactionOf(item_refs),
    };
  });
  const sources = [...new Set(blocks.flatMap(({ item_refs }) => item_refs))];
  const shown = (input?.active ?? []).map(({ metadata }) => ({
    item_ref: table.ref(metadata.id),
    content_hash: metadata.contentHash,
  }));
  const assembly: Assembly = {
    schema_version: SCHEMA_VERSION,
    assembly_id,
    target,
    ordered_blocks: blocks,
    wrapping_policy: `${renderer} ${layout}`,
    visibility,
    source_item_refs: sources,
    redaction_state: table.redactionOf(sources),
    created_at,
    metadata: {
      ...where,
      renderer,
      layout,
      renderer_version: version,
      chars,
      sha256,
      valid_time: basis === null ? null : basis.validTime,
      tx_id: basis === null ? null : basis.txId,
      items:
        input === undefined ? 'not made again here: an export of its turn names them' : 'made again from the database',
      ...(input === undefined ? {} : { active_versions: shown }),
    } satisfies Metadata,
  };
  const injection: Injection = {
    schema_version: SCHEMA_VERSION,
    injection_id: `injection-${id}`,
    assembly_id,
    target,
    injection_point: renderer === 'text' || target !== 'model' ? 'custom' : 'message_history',
    visibility,
    final_ref: record,
    hash: `sha256:${handed?.sha256 ?? sha256}`,
    created_at,
    metadata: {
      ...where,
      delivery: delivered,
      ...defined({ handed_chars: handed?.chars, handed_messages: handed?.messages }),
    },
  };
  return { assembly, injection };
}
