import * as z from 'zod';
import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { withoutSecretValues } from '../../redaction/secrets.js';
import { defined } from '../../values/defined.js';
import { stableUuid } from './stable-uuid.js';
import { TyrumError } from './tyrum-error.js';

const name = z.string().min(1);
const time = z.iso.datetime();
const confidence = z.number().min(0).max(1);
const LONGEST_BODY = 50_000;
const body = z.string().min(1).max(LONGEST_BODY);

const provenance = z.strictObject({
  source_kind: z.enum(['user', 'operator', 'tool', 'system', 'import']),
  channel: name.optional(),
  thread_id: name.optional(),
  conversation_id: name.optional(),
  message_id: name.optional(),
  tool_call_id: name.optional(),
  refs: z.array(name).default([]),
  metadata: z.unknown().optional(),
});

/** The fields of each kind of item, in addition to the common ones. */
const KINDS = {
  fact: { key: name.max(400), value: z.unknown(), observed_at: time, confidence },
  note: { title: name.max(400).optional(), body_md: body },
  procedure: { title: name.max(400).optional(), body_md: body, confidence: confidence.optional() },
  episode: { occurred_at: time, summary_md: body },
} as const;

const tags = z.array(name.max(400)).max(100).default([]);
const sensitivity = z.enum(['public', 'private', 'sensitive']).default('private');

const common = {
  v: z.literal(1),
  memory_item_id: z.uuid(),
  agent_id: z.uuid(),
  tags,
  sensitivity,
  provenance,
  created_at: time,
  updated_at: time.optional(),
};

const memoryItemSchema = z.discriminatedUnion('kind', [
  z.strictObject({ ...common, kind: z.literal('fact'), ...KINDS.fact }),
  z.strictObject({ ...common, kind: z.literal('note'), ...KINDS.note }),
  z.strictObject({ ...common, kind: z.literal('procedure'), ...KINDS.procedure }),
  z.strictObject({ ...common, kind: z.literal('episode'), ...KINDS.episode }),
]);

const drafted = { memory_item_id: z.uuid().optional(), tags, sensitivity, provenance: provenance.optional() };

/**
 * An item before it has an id. A draft with `memory_item_id` replaces the item with that id. A fact
 * replaces the fact with its key.
 */
const memoryDraftSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    ...drafted,
    kind: z.literal('fact'),
    ...KINDS.fact,
    observed_at: time.optional(),
    confidence: confidence.default(1),
  }),
  z.strictObject({ ...drafted, kind: z.literal('note'), ...KINDS.note }),
  z.strictObject({ ...drafted, kind: z.literal('procedure'), ...KINDS.procedure }),
  z.strictObject({ ...drafted, kind: z.literal('episode'), ...KINDS.episode, occurred_at: time.optional() }),
]);

/** An item of an agent's memory in Tyrum's exact fields. */
export type MemoryItem = z.output<typeof memoryItemSchema>;
type MemoryDraft = z.output<typeof memoryDraftSchema>;

/** The tombstone of a forgotten item in Tyrum's exact fields. */
export interface MemoryTombstone {
  readonly v: 1;
  readonly memory_item_id: string;
  readonly agent_id: string;
  readonly deleted_at: string;
  readonly deleted_by: ContextRecord<'tombstone'>['body']['by'];
  readonly reason?: string;
}

/** The agent and session of an item, and the time in milliseconds since 1970. */
export interface Remembering {
  readonly agent: string;
  readonly session?: string;
  readonly at: number;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Returns an agent's id on Tyrum's surface: its name if that is a UUID, or else a stable UUID made
 * from the name.
 */
export const agentUuid = (agent: string): string =>
  UUID.test(agent) ? agent.toLowerCase() : stableUuid(['agent', agent], []);

function idOf(agent: string, draft: MemoryDraft): string {
  if (draft.memory_item_id !== undefined) return draft.memory_item_id.toLowerCase();
  const own =
    draft.kind === 'fact'
      ? [draft.key]
      : draft.kind === 'episode'
        ? [draft.summary_md]
        : [draft.title ?? '', draft.body_md];
  return stableUuid(['memory', agent], [draft.kind, ...own]);
}

/** Removes secrets from a draft. The key of a fact can also show that its value is a secret. */
function withoutSecretsOf(draft: MemoryDraft): MemoryDraft {
  const clean = withoutSecretValues(draft as unknown as Json) as unknown as MemoryDraft;
  if (draft.kind !== 'fact' || clean.kind !== 'fact') return clean;
  const [value] = Object.values(withoutSecretValues({ [draft.key]: draft.value as Json }) as object);
  return { ...clean, value };
}

/**
 * Creates an item without secrets. `before` returns the current item with an id.
 * @throws {TyrumError} `invalid-memory`, with the field
 */
export function memoryItem(
  value: unknown,
  { agent, session, at }: Remembering,
  before: (id: string) => MemoryItem | undefined = () => undefined,
): MemoryItem {
  const read = memoryDraftSchema.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new TyrumError(
      'invalid-memory',
      `the memory item is not valid at ${issue?.path.join('.') || 'its top level'}: ${issue?.message ?? 'unknown'}`,
    );
  }
  const draft = withoutSecretsOf(read.data);
  const now = new Date(at).toISOString();
  const { memory_item_id: _given, provenance: from, ...own } = draft;
  const id = idOf(agent, draft);
  const there = before(id);
  return memoryItemSchema.parse({
    ...own,
    ...(own.kind === 'fact' ? { observed_at: own.observed_at ?? now } : {}),
    ...(own.kind === 'episode' ? { occurred_at: own.occurred_at ?? now } : {}),
    v: 1,
    memory_item_id: id,
    agent_id: agentUuid(agent),
    provenance: { source_kind: 'system', refs: [], ...defined({ conversation_id: session }), ...from },
    created_at: there?.created_at ?? now,
    ...(there === undefined ? {} : { updated_at: now }),
  });
}

/** Returns the last write time of an item in milliseconds since 1970. */
export const writtenAt = ({ created_at, updated_at }: MemoryItem): number => Date.parse(updated_at ?? created_at);

/** Returns an item's content as one text. */
export function memoryText(item: MemoryItem): string {
  switch (item.kind) {
    case 'fact':
      return `${item.key} = ${typeof item.value === 'string' ? item.value : JSON.stringify(item.value)}`;
    case 'episode':
      return item.summary_md;
    default:
      return item.title === undefined ? item.body_md : `${item.title}\n${item.body_md}`;
  }
}

/** Creates the record of an item. A forgotten item has no content but keeps its tags. */
export function memoryRecord(
  item: MemoryItem,
  { agent, at }: Remembering,
  isForgotten = false,
): ContextRecord<'memory'> {
  const {
    v: _v,
    memory_item_id,
    agent_id: _agent,
    kind,
    tags: own,
    sensitivity: how,
    provenance: from,
    created_at,
    updated_at: _at,
    ...content
  } = item;
  return {
    kind: 'memory',
    owner: { agent },
    turn: 0,
    seq: 0,
    at,
    basis: null,
    body: {
      name: memory_item_id,
      item: kind,
      content: isForgotten ? null : (content as ContextRecord<'memory'>['body']['content']),
      tags: [...own],
      sensitivity: how,
      provenance: from as ContextRecord<'memory'>['body']['provenance'],
      extra: { created_at },
    },
  };
}

/**
 * Returns the item in a record. Undefined if the item was forgotten or belongs to another program's
 * surface.
 */
export function itemOf({ owner, at, body: held }: ContextRecord<'memory'>): MemoryItem | undefined {
  if (!('agent' in owner) || held.content === null || typeof held.content !== 'object') return undefined;
  const { created_at = new Date(at).toISOString() } = (held.extra ?? {}) as { readonly created_at?: string };
  const updated = new Date(at).toISOString();
  const read = memoryItemSchema.safeParse({
    ...held.content,
    v: 1,
    kind: held.item,
    memory_item_id: held.name,
    agent_id: agentUuid(owner.agent),
    tags: held.tags,
    sensitivity: held.sensitivity,
    provenance: held.provenance,
    created_at,
    ...(updated === created_at ? {} : { updated_at: updated }),
  });
  return read.success ? read.data : undefined;
}
