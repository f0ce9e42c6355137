import * as z from 'zod';

/**
 * A block of a message or result: text, an image, or any other block that a provider's API has.
 * Unknown fields are kept.
 */
const contentPartSchema = z
  .looseObject({ type: z.string().min(1).max(64).describe('text, image, tool_use, tool_result, ...') })
  .describe('A content block; blocks that are not text are kept as one line such as [image image/png 18234 bytes]');

const contentSchema = z
  .union([z.string(), z.array(contentPartSchema), z.null()])
  .describe('Text, content blocks, or null for a message that only calls tools');

/** A file that is included in a result, because only the agent's container can read it. */
const reportedFileSchema = z
  .strictObject({
    path: z.string().min(1).max(4096).describe('As the agent sees it'),
    content: z.string().optional().describe('Its text; read from the source instead wherever that can be reached'),
    complete: z
      .boolean()
      .optional()
      .describe('Whether content is the whole file; without it the file is only mentioned'),
    mtime_ms: z.number().nonnegative().optional().describe('Time of its last modification, milliseconds since 1970'),
  })
  .describe('A file that the call read or wrote and that may be out of reach of this service');

const callArguments = z
  .union([z.record(z.string(), z.unknown()), z.string(), z.null()])
  .describe('Arguments by name, or the JSON text that the model wrote');

/** A call in an assistant message, in the forms of the common APIs. */
const toolCallSchema = z
  .looseObject({
    id: z.string().min(1).optional().describe('The call id, where the wire gives one'),
    function: z.looseObject({ name: z.string().min(1), arguments: callArguments.optional() }).optional(),
    name: z.string().min(1).optional(),
    arguments: callArguments.optional(),
    input: callArguments.optional(),
  })
  .describe('{id, type: "function", function: {name, arguments}}, or {id, name, arguments}');

const tokens = z.int().nonnegative().optional();

/** The token counts of one model call. */
const usageSchema = z
  .looseObject({
    input: tokens.describe('Input tokens that were neither read from nor written to a cache'),
    output: tokens,
    cache_read: tokens.describe("Tokens read from the provider's prompt cache"),
    cache_write: tokens.describe('Tokens written to the cache'),
    cache_miss: z
      .looseObject({ reason: z.string().min(1).max(100), tokens })
      .nullish()
      .describe(
        "Why the cache missed the previous request, in the provider's own word such as messages_changed, " +
          'and how many tokens it missed',
      ),
    thinking_dropped: tokens.describe(
      'Thinking blocks that the provider dropped from the request because they are bound to another beginning',
    ),
  })
  .describe(
    'The token counts of the model call that produced this message, as the provider reported them; ' +
      'other members are ignored',
  );

/**
 * Fields of other APIs with the same meaning as one of our fields. Without this check, their
 * content would be lost without an error.
 */
const MISPLACED: Readonly<Record<string, 'content' | 'tool_calls'>> = {
  text: 'content',
  parts: 'content',
  output: 'content',
  toolCalls: 'tool_calls',
  function_call: 'tool_calls',
};

const SHAPES =
  'a message is {role, content}, content a text or blocks such as [{type: "text", text}]; ' +
  'one that only calls is {role: "assistant", content: null, tool_calls: [{id, name, arguments}]}, ' +
  'and a result {role: "tool", tool_call_id, content}';

const holds = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
const isNamed = (call: unknown): boolean =>
  typeof call === 'object' && call !== null && 'name' in call && holds(call.name);

/**
 * Rejects a message that would lose content. It has text or calls in a field that is not read, has
 * no content, or has a call without a name.
 */
function refuseLoss(message: Readonly<Record<string, unknown>>, context: z.RefinementCtx): void {
  const refuse = (path: readonly PropertyKey[], text: string): void =>
    context.addIssue({ code: 'custom', path: [...path], message: text });
  const misplaced = Object.entries(MISPLACED).filter(
    ([member, place]) => holds(message[member]) && !holds(message[place]),
  );
  for (const [member, place] of misplaced) refuse([member], `${member} is not read; write it as ${place}: ${SHAPES}`);
  const { content, tool_calls: calls = [] } = message;
  if (misplaced.length === 0 && content === undefined && !holds(calls))
    refuse(['content'], `content is missing: ${SHAPES}`);
  for (const [i, call] of (calls as readonly Readonly<Record<string, unknown>>[]).entries()) {
    if (![call, call.function, call.custom].some(isNamed))
      refuse(['tool_calls', i], `a call without a name: ${SHAPES}`);
  }
  if (!Array.isArray(content)) return;
  for (const [i, part] of (content as readonly { readonly type: string }[]).entries()) {
    if (/^(?:tool_use|toolCall)$/.test(part.type) && !isNamed(part))
      refuse(['content', i], 'a call without a name: give it as {type: "tool_use", id, name, input}');
  }
}

/** A message of a harness. If a field's content would be lost, the error names the field. */
export const messageSchema = z
  .looseObject({
    role: z.string().min(1).max(64).describe('system, developer, user, assistant, tool, or a custom role'),
    content: contentSchema.optional(),
    id: z.string().min(1).max(400).optional().describe('The id of the message or entry, where there is one'),
    name: z.string().min(1).max(400).optional(),
    tool_calls: z.array(toolCallSchema).optional().describe('Calls that an assistant message makes'),
    tool_call_id: z.string().min(1).optional().describe('On a result: the call that it answers'),
    is_error: z.boolean().optional().describe('On a result: the call failed'),
    usage: usageSchema.nullish(),
    cwd: z
      .string()
      .min(1)
      .optional()
      .describe('On a result: the working directory of the call, if it differs from the usual one'),
    files: z
      .array(reportedFileSchema)
      .max(2000)
      .optional()
      .describe('On a result: files that may be out of reach of this service'),
  })
  .superRefine(refuseLoss)
  .describe(
    'A message with content or tool_calls; other members are ignored, but text or calls in text, ' +
      'parts, output, toolCalls or function_call are rejected',
  );

/** A finished tool call that is reported without its message. */
export const toolCallReportSchema = z
  .strictObject({
    id: z.string().min(1).optional().describe("The harness's id of the call; reporting it twice records it once"),
    name: z.string().min(1).max(400).describe('The tool'),
    args: callArguments.optional(),
    content: contentSchema.optional().describe('The output as the tool produced it, whole'),
    shown: contentSchema.optional().describe('The text that the model was shown, if that is not the output'),
    status: z.enum(['ok', 'fail']).optional().describe('Default ok'),
    cwd: z.string().min(1).optional().describe('Working directory of the call, as the agent sees it'),
    files: z.array(reportedFileSchema).max(2000).optional(),
    started_at: z.number().nonnegative().optional().describe('When the call began, milliseconds since 1970'),
  })
  .describe('One finished tool call');

export type ReportedMessage = z.input<typeof messageSchema>;
export type ReportedContent = z.input<typeof contentSchema>;
export type ReportedFile = z.input<typeof reportedFileSchema>;
export type ToolCallReport = z.input<typeof toolCallReportSchema>;
