import * as z from 'zod';
import type { ReportedMessage } from '../../harness/message-schema.js';
import type { Json } from '../../objects/canonical-json.js';
import { defined } from '../../values/defined.js';
import { isDeeperThan } from '../../values/json-object.js';
import { ownMember } from '../../values/own-member.js';

/**
 * Maximum nesting of a message. A record has at most 200 levels, a few of them around the message.
 */
const DEEPEST = 190;
const LONGEST_NAME = 400;
/** The members that hold a call's id or a tool's name, by type of block. */
const NAMING: Readonly<Record<string, readonly string[]>> = {
  tool_call: ['id', 'name'],
  tool_use: ['id', 'name'],
  tool_result: ['tool_call_id', 'tool_use_id'],
};

/**
 * Returns true if a value of bounded depth holds a number that JSON cannot write. `1e999` parses to
 * such a number.
 */
function hasInfinite(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isFinite(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(hasInfinite);
}

/**
 * Rejects messages that no record can store. If they were accepted, storing them would fail at
 * every retry.
 */
function requireKeepable(message: { readonly content?: unknown }, context: Pick<z.RefinementCtx, 'addIssue'>): void {
  if (isDeeperThan(message, DEEPEST)) {
    context.addIssue({ code: 'custom', message: `is nested deeper than ${DEEPEST} levels` });
    return;
  }
  if (hasInfinite(message))
    context.addIssue({ code: 'custom', message: 'holds a number that is too large for JSON, such as 1e999' });
  const blocks = Array.isArray(message.content) ? (message.content as readonly Block[]) : [];
  for (const [i, block] of blocks.entries()) {
    for (const member of ownMember(NAMING, block.type) ?? []) {
      const name = block[member];
      if (typeof name !== 'string' || (name.length > 0 && name.length <= LONGEST_NAME)) continue;
      context.addIssue({
        code: 'custom',
        path: ['content', i, member],
        message: `has ${name.length} characters; give 1 to ${LONGEST_NAME}`,
      });
    }
  }
}

const blockSchema = z.looseObject({
  type: z.string().min(1).max(64).describe('text, thinking, tool_call, tool_result, image, ...'),
});
const callSchema = z
  .looseObject({
    id: z.string().min(1).max(400),
    function: z.looseObject({ name: z.string().min(1).max(400), arguments: z.unknown().optional() }).optional(),
    tool: z.string().min(1).max(400).optional(),
    name: z.string().min(1).max(400).optional(),
    arguments: z.unknown().optional(),
  })
  .describe('{id, type: "function", function: {name, arguments}}, or {id, tool, arguments}');

/** A message of Amplifier's contract. Unlisted members are kept and returned. */
export const amplifierMessageSchema = z
  .looseObject({
    role: z.enum(['system', 'developer', 'user', 'assistant', 'function', 'tool']),
    content: z.union([z.string(), z.array(blockSchema), z.null()]).optional(),
    name: z.string().min(1).max(400).nullish(),
    tool_call_id: z.string().min(1).max(400).nullish(),
    tool_calls: z.array(callSchema).nullish(),
    metadata: z.record(z.string(), z.unknown()).nullish(),
  })
  .superRefine(requireKeepable)
  .describe("A message as Amplifier's kernel passes it");

export type AmplifierMessage = z.output<typeof amplifierMessageSchema>;

/** A message with the id that its sender gave it. A message sent again has the same id. */
export interface NamedMessage {
  readonly id: string;
  readonly message: AmplifierMessage;
}

/** A block of a message. */
export type Block = z.output<typeof blockSchema>;

/** A call as it appears in a message. */
export interface MadeCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: Json;
}

const UNKNOWN_TOOL = 'unknown';
/**
 * Blocks that do not count as text of the message. The model's thinking is only returned to its
 * provider, unchanged.
 */
const SILENT_BLOCKS: ReadonlySet<string> = new Set([
  'thinking',
  'redacted_thinking',
  'reasoning',
  'tool_call',
  'tool_use',
]);
/** Roles whose messages form the prompt if they precede all others. */
export const SYSTEM_ROLES: ReadonlySet<string> = new Set(['system', 'developer']);
/** Roles whose messages are results of calls. */
export const RESULT_ROLES: ReadonlySet<string> = new Set(['tool', 'function']);

/** Replaces lone surrogates in every text: neither the database nor a model accepts them. */
function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name.toWellFormed(), wellFormed(member)]));
}

const blocksOf = ({ content }: AmplifierMessage): readonly Block[] => (Array.isArray(content) ? content : []);
const isResultBlock = ({ type }: Block): boolean => type === 'tool_result';

function resultText(block: Block): string {
  const output = block.output ?? block.content ?? '';
  return typeof output === 'string' ? output : JSON.stringify(output);
}

function messagesIn(given: AmplifierMessage, now: number): readonly AmplifierMessage[] {
  const sound = wellFormed(given) as AmplifierMessage;
  const metadata = { ...sound.metadata, timestamp: sound.metadata?.timestamp ?? new Date(now).toISOString() };
  const message = { ...sound, metadata };
  const blocks = blocksOf(message);
  if (!blocks.some(isResultBlock)) return [message];
  const results = blocks.filter(isResultBlock).map((block): AmplifierMessage => {
    const id = block.tool_call_id ?? block.tool_use_id;
    return {
      role: 'tool',
      ...(typeof id === 'string' ? { tool_call_id: id } : {}),
      content: resultText(block),
      metadata,
    };
  });
  const rest = blocks.filter((block) => !isResultBlock(block));
  return rest.length === 0 ? results : [...results, { ...message, content: rest }];
}

/**
 * Splits a message into entries. Result blocks become separate messages before the remaining text.
 * A message without a time gets the current time.
 */
export function namedEntries({ id, message }: NamedMessage, now: number): readonly NamedMessage[] {
  return messagesIn(message, now).map((one, i) => ({ id: i === 0 ? id : `${id}.${i}`, message: one }));
}

/**
 * Returns the calls of a message in order: those of `tool_calls`, or its call blocks if it has no
 * `tool_calls`.
 */
export function callsIn(message: AmplifierMessage): readonly MadeCall[] {
  if (message.role !== 'assistant') return [];
  const listed = (message.tool_calls ?? []).map((call) => ({
    id: call.id,
    name: call.function?.name ?? call.tool ?? call.name ?? UNKNOWN_TOOL,
    arguments: (call.function?.arguments ?? call.arguments ?? {}) as Json,
  }));
  if (listed.length > 0) return listed;
  return blocksOf(message).flatMap((block) => {
    const { type, id, name, input } = block;
    return (type === 'tool_call' || type === 'tool_use') && typeof id === 'string'
      ? [{ id, name: typeof name === 'string' && name !== '' ? name : UNKNOWN_TOOL, arguments: (input ?? {}) as Json }]
      : [];
  });
}

/**
 * Converts a message to the form that the session accepts. A result without a name whose call is
 * unknown gets the tool `unknown`.
 */
export function reportedOf(message: AmplifierMessage, id: string): ReportedMessage {
  const { role, content, name, tool_call_id: call } = message;
  const spoken = Array.isArray(content) ? content.filter(({ type }) => !SILENT_BLOCKS.has(type)) : (content ?? '');
  const calls = callsIn(message);
  const isResult = RESULT_ROLES.has(role);
  return {
    role,
    id,
    content: spoken as ReportedMessage['content'],
    ...defined({
      name: name ?? (isResult ? UNKNOWN_TOOL : undefined),
      tool_call_id: isResult ? (call ?? undefined) : undefined,
      tool_calls:
        calls.length === 0 ? undefined : calls.map((one) => ({ ...one, arguments: argumentsOf(one.arguments) })),
    }),
  };
}

/** Returns a message with this id, without text, that makes one call. */
export function announcementOf(call: MadeCall, id: string): ReportedMessage {
  return { role: 'assistant', id, content: '', tool_calls: [{ ...call, arguments: argumentsOf(call.arguments) }] };
}

function argumentsOf(value: Json): string | null | { readonly [name: string]: Json } {
  if (value === null || typeof value === 'string') return value;
  return typeof value === 'object' && !Array.isArray(value)
    ? (value as { readonly [name: string]: Json })
    : JSON.stringify(value);
}
