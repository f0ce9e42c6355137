import * as z from 'zod';
import type { AssemblyProof } from '../objects/assembly-proof.js';
import { EDITORS, GIT_MOVES } from '../objects/file-author.js';
import type { ObjectType } from '../objects/object-type.js';
import type { Step } from '../objects/step.js';
import { digestShape, STEP_SHAPES } from '../objects/step-shapes.js';

const count = z.int().nonnegative();
const text = z.string();
const id = z.string().min(1).max(1_100);
const ids = z.array(id);
const folder = z.strictObject({ type: z.literal('filesystem'), filesystemId: id, path: z.string().min(1).max(4_096) });

/** A shape with a member for each field of a type. The compiler requires all of them. */
type Fields<T> = { readonly [Name in keyof Required<T>]: z.ZodType };

const STEP: Fields<Omit<Step, 'session' | 'seq'>> = {
  turn: count,
  at: count,
  ...STEP_SHAPES,
  message: z
    .strictObject({
      role: text,
      text: text.optional(),
      text_hash: digestShape.optional(),
      name: text.optional(),
      toolcall_refs: ids.optional(),
    })
    .refine(
      (message) => (message.text === undefined) !== (message.text_hash === undefined),
      'must have either `text` or `text_hash`, and not both',
    )
    .optional(),
  by: z.literal('person').optional(),
  undoes: count.optional(),
  erased: z.literal(true).optional(),
};

const note = z.strictObject({
  after: count,
  lines: ids.optional(),
  contents: ids.optional(),
  changes: ids.optional(),
  seen: ids.optional(),
  reads: z.array(z.strictObject({ call: id, file: id, inBlock: z.boolean() })).optional(),
  refs: ids.optional(),
  chat: count.optional(),
});

const epoch = z.strictObject({
  number: count,
  border: count,
  reason: z.enum(['first', 'saving', 'cold', 'pressure', 'asked', 'history']),
  price: z.strictObject({ written: z.number(), savedPerCall: z.number() }).optional(),
  list: z.strictObject({ from: count, count, sha256: digestShape }).optional(),
  calls: count,
  previous: z.strictObject({ step: count, sha256: digestShape }).optional(),
  note: note.optional(),
});

const sent = z.strictObject({
  wire: text,
  model: text.optional(),
  answer: text.optional(),
  stop: text.optional(),
  usage: STEP_SHAPES.usage,
  blocks: z.array(text).optional(),
  verdicts: z.json().optional(),
  compaction: z.enum(['asked', 'carried']).optional(),
  rebuilt: z.int().positive().optional(),
});

const ASSEMBLY: Fields<Omit<AssemblyProof, 'session' | 'step'>> = {
  turn: count,
  renderer: text,
  layout: text,
  version: count,
  options: z.strictObject({
    strict: z.boolean(),
    shortIds: z.boolean(),
    described: z.boolean().optional(),
    inputs: z.boolean().optional(),
    guide: count.optional(),
  }),
  tail: z.strictObject({ turn: count, results: ids }).optional(),
  epoch: epoch.optional(),
  sections: z.array(z.strictObject({ name: text, chars: count, sha256: digestShape })),
  blocks: count,
  chars: count,
  sha256: digestShape,
  basis: z.strictObject({ validTime: count, txId: count }).nullable(),
  ahead: z.array(z.strictObject({ id, object_hash: digestShape, gone: z.literal(true).optional() })).optional(),
  behind: count.nullable().optional(),
  absent: z.strictObject({ lines: ids, texts: ids }).optional(),
  mounts: z.array(z.strictObject({ agentPrefix: text, canonicalPrefix: text, filesystemId: id })).optional(),
  folders: z.array(folder).optional(),
  redacted: z.literal(true).optional(),
  delivered: z.enum(['library', 'http', 'pi', 'opencode', 'replay', 'gateway']),
  sent: sent.optional(),
  handed: z.strictObject({ sha256: digestShape, chars: count, messages: count }).optional(),
  rescuedFrom: id.optional(),
  at: count,
};

const running = {
  epoch: count.optional(),
  upto: count.optional(),
  parent: z.strictObject({ session: id, seq: count }).optional(),
};

/** Shapes of the bodies of steps and assembly records. Other parts have their own checks. */
export const BODY_SHAPES = { step: z.strictObject(STEP), assembly: z.strictObject(ASSEMBLY) } as const;

const author = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('git'),
    action: z.enum(GIT_MOVES),
    commit: z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/),
  }),
  z.strictObject({ kind: z.literal('editor'), editor: z.enum(EDITORS) }),
]);

/** Shapes of heads, by type. Other code checks the hashes and ids, by computing them again. */
export const HEAD_SHAPES: Readonly<Record<ObjectType, z.ZodType>> = {
  file: z.looseObject({
    file_type: text,
    char_count: count,
    gone: z.literal(true).optional(),
    whole: digestShape.optional(),
    author: author.optional(),
  }),
  toolcall: z.looseObject({
    tool: text,
    args: z.record(z.string(), z.json()),
    args_display: text.optional(),
    status: z.enum(['ok', 'fail']),
    chat_ref: id,
    file_refs: ids.optional(),
    whole: digestShape.optional(),
    size: count.optional(),
  }),
  system_prompt: z.looseObject({ whole: digestShape.optional() }),
  chat: z.looseObject(running),
  session: z.looseObject({ ...running, roots: z.array(folder).optional() }),
};

/** Returns which field of a value does not fit a shape, and why. Undefined if the value fits. */
export function misfit(shape: z.ZodType, value: unknown): string | undefined {
  const { error } = shape.safeParse(value);
  const [issue] = error?.issues ?? [];
  return issue === undefined ? undefined : `${issue.path.map(String).join('.') || 'it'}: ${issue.message}`;
}
