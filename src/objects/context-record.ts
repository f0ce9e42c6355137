import * as z from 'zod';
import { isDeeperThan } from '../values/json-object.js';
import { canonicalJson, type Json } from './canonical-json.js';
import { DocumentError, quoted } from './errors.js';
import { type SessionId, type Sha256, sessionId } from './ids.js';
import { CHUNK_UNITS } from './large-text.js';

const DEEPEST = 200;

/** The latest time that the database accepts: 9999-12-31. */
const LATEST = Date.UTC(9999, 11, 31);

const count = z.int().nonnegative();
const word = z.string().min(1).max(400);
const words = z.array(word);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const json = z.json();
/** Fields that an integration adds to the common ones. */
const extra = json.optional();

const segment = z.strictObject({
  name: word,
  role: word.optional(),
  target: word.optional(),
  reserved: count.optional(),
  actual: count,
  items: words.optional(),
});

/**
 * The fields of each kind of record. Items, candidates and the like are ids of entries (`m41`) or
 * objects. Token counts name their counter.
 *
 * - `budget`: a limit and the amount used
 * - `selection`: the candidates, the shown ones, and the omitted ones with the reason
 * - `injection`: the content that a target received, and its place; independent of any selection
 * - `compaction`: the entries that a view shows as lines or as a summary, and the `state` with
 *   which the next view continues
 * - `report`: the sizes of a context's parts, in a format of its own
 * - `event`: a named event
 * - `missing`: known missing data
 * - `memory`: an item that an agent keeps; null content after its eviction
 * - `tombstone`: the eviction of a memory item
 * - `note`: a fact, decision, open work, constraint or question, with its origin
 * - `approval`: a request for an approval, or its decision
 * - `review`: a reviewer's verdict on the session at a step, or on an object; never shown to a
 *   model
 * - `call`: a call of the model whose result has not arrived
 * - `import`: an imported piece of another program's record of the session
 */
const BODIES = {
  budget: z.strictObject({
    target: word,
    counter: word,
    max: count,
    actual: count,
    reserved: count.optional(),
    maxBytes: count.optional(),
    actualBytes: count.optional(),
    maxItems: count.optional(),
    actualItems: count.optional(),
    overflow: word.optional(),
    segments: z.array(segment).optional(),
    truncated: z.array(z.strictObject({ item: word, reason: word })).optional(),
    extra,
  }),
  selection: z.strictObject({
    surface: word,
    counter: word.optional(),
    query: z.string().optional(),
    intent: z.string().optional(),
    policy: word.optional(),
    rationale: z.string().optional(),
    candidates: words,
    selected: words,
    omitted: z.array(z.strictObject({ item: word, reason: word })),
    budget: word.optional(),
    extra,
  }),
  injection: z.strictObject({
    target: word,
    point: word,
    visibility: words,
    sha256,
    items: words,
    assembly: word.optional(),
    native: word.optional(),
    extra,
  }),
  compaction: z.strictObject({
    counter: word,
    trigger: word,
    method: word,
    before: count,
    after: count,
    limit: count.optional(),
    lines: words,
    gone: words,
    cut: words,
    summary: z
      .strictObject({ text: z.string(), by: word, identifiers: z.array(z.string()), lost: z.array(z.string()) })
      .optional(),
    loss: z.array(z.string()).optional(),
    state: json.optional(),
    extra,
  }),
  report: z.strictObject({ format: word, name: word, body: json }),
  event: z.strictObject({ type: word, subject: word.optional(), data: json }),
  missing: z.strictObject({
    question: z.string().min(1),
    severity: z.enum(['info', 'low', 'medium', 'high', 'blocking']),
    status: z.enum(['open', 'requested', 'waiting', 'resolved', 'declined', 'blocked', 'expired']),
    neededFor: z.string().optional(),
    candidates: z.array(z.string()),
    blocked: z.array(z.string()),
    requestedFrom: word.optional(),
    resolvedBy: words.optional(),
    extra,
  }),
  memory: z.strictObject({
    name: word,
    item: z.enum(['fact', 'note', 'procedure', 'episode']),
    content: json,
    tags: words,
    sensitivity: z.enum(['public', 'private', 'sensitive']),
    provenance: json,
    extra,
  }),
  tombstone: z.strictObject({
    name: word,
    by: z.enum(['user', 'operator', 'system', 'budget', 'consolidation']),
    reason: z.string().optional(),
    extra,
  }),
  note: z.strictObject({
    name: word,
    note: z.enum(['fact', 'decision', 'todo', 'constraint', 'question', 'goal', 'done']),
    text: z.string().min(1),
    source: z.string().optional(),
    isOpen: z.boolean().optional(),
    extra,
  }),
  approval: z.strictObject({
    approval: word,
    state: z.enum(['pending', 'approved', 'denied', 'cancelled', 'expired']),
    text: z.string(),
    tool: word.optional(),
    native: word.optional(),
    reason: z.string().optional(),
    extra,
  }),
  review: z.strictObject({
    object: z.string().min(1).max(1_024).optional(),
    verdict: z.enum(['right', 'wrong', 'unclear']).optional(),
    text: z.string().min(1).max(100_000).optional(),
    by: word.optional(),
    extra,
  }),
  call: z.strictObject({ native: word, tool: word, args: json, by: count, extra }),
  /** `whole` is the SHA-256 of all pieces together. `part` counts the pieces from 0. */
  import: z.strictObject({ format: word, whole: sha256, part: count, parts: z.int().positive(), text: z.string() }),
};

/** A kind of record. */
export type RecordKind = keyof typeof BODIES;
/** Every kind of record. */
export const RECORD_KINDS = Object.keys(BODIES) as readonly RecordKind[];
/** The fields of a record of one kind. */
export type RecordBody<Kind extends RecordKind> = z.output<(typeof BODIES)[Kind]>;

/** The owner of a record: a session, or an agent across all of its sessions. */
export type RecordOwner = { readonly session: SessionId } | { readonly agent: string };

/** The version of an object that a record was derived from. */
export interface RecordSource {
  readonly id: string;
  readonly objectHash: string;
}

/**
 * A fact about a session's context, or data derived from it, as a separate document. A record is
 * never one of the five object types and never in a session's sets. It is written once. Only a
 * memory item has later versions, which replace earlier ones.
 */
export type ContextRecord<Kind extends RecordKind = RecordKind> = {
  readonly [K in Kind]: {
    readonly kind: K;
    readonly owner: RecordOwner;
    /** The turn and the last step that the record belongs to. Both are 0 for an agent's record. */
    readonly turn: number;
    readonly seq: number;
    /** Time of the event in milliseconds since 1970, before 9999-12-31. */
    readonly at: number;
    /** The basis that was read for it. Null if nothing was read. */
    readonly basis: { readonly validTime: number; readonly txId: number } | null;
    readonly sources?: readonly RecordSource[];
    /** The hashes of the texts that it refers to. Each text is stored whole under its hash. */
    readonly texts?: readonly Sha256[];
    readonly body: RecordBody<K>;
  };
}[Kind];

const owner = z.union([
  z.strictObject({ session: z.string() }),
  z.strictObject({ agent: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._@+-]{0,199}$/) }),
]);

const envelope = z.strictObject({
  kind: z.string(),
  owner,
  turn: count,
  seq: count,
  at: count.max(LATEST, `it is later than ${new Date(LATEST).toISOString()}; give milliseconds since 1970`),
  basis: z.strictObject({ validTime: z.int(), txId: count }).nullable(),
  sources: z.array(z.strictObject({ id: word, objectHash: sha256 })).optional(),
  texts: z.array(sha256).optional(),
  body: z.unknown(),
});

function refused(kind: string, issues: z.ZodError['issues'], inside: readonly string[] = []): DocumentError {
  const [issue] = issues;
  const path = [...inside, ...(issue?.path ?? [])].map(String).join('.');
  return new DocumentError(
    'invalid-value',
    `a record of kind ${quoted(kind)} is not valid at ${path || 'its top level'}: ${issue?.message ?? 'unknown'}`,
  );
}

/** Returns whether a value names a kind of record. */
export function isRecordKind(value: unknown): value is RecordKind {
  return typeof value === 'string' && Object.hasOwn(BODIES, value);
}

/**
 * Parses a value as a record. Every field must be known and have its type, and the canonical JSON
 * may have at most 524,288 characters.
 *
 * @throws {DocumentError} `unknown-type` or `invalid-value`, naming the field; `invalid-id` for its
 *   session; `lone-surrogate`; `not-finite`
 */
export function contextRecord(value: unknown): ContextRecord {
  const kind = typeof value === 'object' && value !== null && 'kind' in value ? value.kind : undefined;
  if (!isRecordKind(kind)) {
    throw new DocumentError('unknown-type', `unknown record kind ${quoted(kind)}; known: ${RECORD_KINDS.join(', ')}`);
  }
  if (isDeeperThan(value, DEEPEST))
    throw new DocumentError('invalid-value', `a record of kind ${kind} is nested deeper than ${DEEPEST} levels`);
  const read = envelope.safeParse(value);
  if (!read.success) throw refused(kind, read.error.issues);
  const body = (BODIES[kind] as z.ZodType).safeParse(read.data.body);
  if (!body.success) throw refused(kind, body.error.issues, ['body']);
  if ('session' in read.data.owner) sessionId(read.data.owner.session);
  const record = { ...read.data, body: body.data } as unknown as ContextRecord;
  const { length } = canonicalJson(record as unknown as Json);
  if (length > CHUNK_UNITS) {
    throw new DocumentError(
      'invalid-value',
      `a record of kind ${kind} has ${length} characters; at most ${CHUNK_UNITS} can be kept`,
    );
  }
  return record;
}
