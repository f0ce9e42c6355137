import * as z from 'zod';
import { isDeeperThan } from '../values/json-depth.js';
import { canonicalJson, type Json } from './canonical-json.js';
import { DocumentError, quoted } from './errors.js';
import { type SessionId, type Sha256, sessionId } from './ids.js';
import { CHUNK_UNITS } from './large-text.js';

const DEEPEST = 200;

/** Whatever happens later has no place in the database's calendar: 9999-12-31. */
export const LATEST = Date.UTC(9999, 11, 31);

const count = z.int().nonnegative();
const word = z.string().min(1).max(400);
const words = z.array(word);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const json = z.json();
/** What a surface keeps of its own beside the common fields. */
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
 * What a record of each kind holds. Items, candidates and the like are ids of entries (`m41`) or objects; counts of tokens stand beside the name of their counter.
 *
 * - `budget`: a limit and what was used of it
 * - `selection`: what could have been shown, what was, what was left out and why
 * - `injection`: what a target was given, where; a fact of its own that no selection implies
 * - `compaction`: that entries stand as lines or as a summary in a view; `state` goes on in the next view
 * - `report`: how large the parts of a context were, in a format of its own
 * - `event`: something that happened, by its name
 * - `missing`: what is known to be missing
 * - `memory`: an item that an agent keeps; null content where it was evicted
 * - `tombstone`: that a memory item was evicted
 * - `note`: a fact, decision, open work, constraint or question, with where it comes from
 * - `approval`: that an approval was asked for, or decided
 * - `review`: what a reviewer says of the session at a step, or of an object; never shown to a model
 * - `call`: that the model made a call whose result has not come
 * - `import`: a piece of what another program wrote of the session, as it was brought in
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
    summary: z.strictObject({ text: z.string(), by: word, identifiers: z.array(z.string()), lost: z.array(z.string()) }).optional(),
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
  /** `whole` is the SHA-256 of all pieces together; `part` counts them from 0. */
  import: z.strictObject({ format: word, whole: sha256, part: count, parts: z.int().positive(), text: z.string() }),
};

/** A kind of record. */
export type RecordKind = keyof typeof BODIES;
/** Every kind of record. */
export const RECORD_KINDS = Object.keys(BODIES) as readonly RecordKind[];
/** What a record of a kind holds. */
export type RecordBody<Kind extends RecordKind> = z.output<(typeof BODIES)[Kind]>;

/** Whose record it is: a session's, or of an agent over all of its sessions. */
export type RecordOwner = { readonly session: SessionId } | { readonly agent: string };

/** A version of an object that a record was derived from. */
export interface RecordSource {
  readonly id: string;
  readonly objectHash: string;
}

/**
 * What happened to, or was derived from, a session's context, as a document of its own: never one of the five object types and never in a session's sets. Written once,
 * but for the items of a memory, whose later versions stand over the earlier ones.
 */
export type ContextRecord<Kind extends RecordKind = RecordKind> = {
  readonly [K in Kind]: {
    readonly kind: K;
    readonly owner: RecordOwner;
    /** Of a session: the turn and the last step that it belongs to; 0 of an agent. */
    readonly turn: number;
    readonly seq: number;
    /** When it happened, milliseconds since 1970, before 9999-12-31. */
    readonly at: number;
    /** What was read for it; null where nothing was. */
    readonly basis: { readonly validTime: number; readonly txId: number } | null;
    readonly sources?: readonly RecordSource[];
    /** The hashes of texts that it names, each kept whole under its own. */
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
  at: count.max(LATEST, `it is later than ${new Date(LATEST).toISOString()}, milliseconds since 1970 are asked for`),
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
    `a record of kind ${quoted(kind)} is not valid at ${path === '' ? 'its top' : path}: ${issue?.message ?? 'unknown'}`,
  );
}

/** Whether a text names a kind of record. */
export function isRecordKind(value: unknown): value is RecordKind {
  return typeof value === 'string' && Object.hasOwn(BODIES, value);
}

/**
 * A value as a record: every field is known and of its type, and it is not larger than the database takes in one piece (524,288 characters of canonical JSON).
 * @throws {DocumentError} `unknown-type`, `invalid-value`, naming the field; `invalid-id` for its session; `lone-surrogate`, `not-finite`
 */
export function contextRecord(value: unknown): ContextRecord {
  const kind = typeof value === 'object' && value !== null && 'kind' in value ? value.kind : undefined;
  if (!isRecordKind(kind)) {
    throw new DocumentError('unknown-type', `there is no kind of record ${quoted(kind)}: there are ${RECORD_KINDS.join(', ')}`);
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
    throw new DocumentError('invalid-value', `a record of kind ${kind} has ${length} characters; at most ${CHUNK_UNITS} can be kept`);
  }
  return record;
}
