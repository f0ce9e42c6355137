import * as z from 'zod';

/** The formats that importers read. */
export const RECORDING_FORMATS = [
  'claude-code',
  'codex',
  'pi',
  'swe-agent',
  'mini-swe-agent',
  'openhands-legacy',
  'openhands-sdk',
  'gemini-cli',
  'cline',
  'opencode',
  'openai-chat',
  'atif',
  'dataclaw',
] as const;
export type RecordingFormat = (typeof RECORDING_FORMATS)[number];

/** The roles of messages. */
export const MESSAGE_ROLES = ['user', 'assistant', 'system', 'developer'] as const;

const json: z.ZodType<unknown> = z.json();
const id = z.string().min(1);
const moment = z.number().describe("The recording's own clock, milliseconds since 1970");

/** The fields that every entry may have. */
const common = {
  session: id.describe('The session that it belongs to: `native_id` of a session entry before it'),
  place: z.string().describe('Its position in the recording: `line 172`, `messages[3]`'),
  at: moment.optional(),
  native_id: id.optional().describe("The recording's own id of the record"),
  parent_id: id.optional().describe('The record that it follows, where the recording is a tree'),
  copied: z.boolean().optional().describe('Taken over from the history of the parent session, and counted there'),
};

const usage = z
  .strictObject({
    input: z.number().optional(),
    output: z.number().optional(),
    cache_read: z.number().optional(),
    cache_write: z.number().optional(),
    cache_write_hour: z.number().optional().describe('The part of `cache_write` that lives for an hour'),
    total: z.number().optional(),
    cost: z.number().nonnegative().optional().describe('Cost of the answer as the agent recorded it, US dollars'),
  })
  .describe('Tokens as the provider counted them, once for each answer of the model');

/** A recorded file's state at one moment. */
const shownFile = z.strictObject({
  path: z
    .string()
    .min(1)
    .describe('As the recording names it; relative paths start in the working directory of the call'),
  moment: z.enum(['before', 'after']).describe('Before or after the effect of the call'),
  text: z.string().optional().describe('Without line-number gutters; absent if only its name is shown'),
  whole: z.boolean().describe('Whether `text` is all of the file'),
  start_line: z.int().positive().optional().describe('Line of the file where `text` begins; default 1'),
  total_lines: z.int().nonnegative().optional(),
});

const entries = {
  session: z.strictObject({
    kind: z.literal('session'),
    format: z.enum(RECORDING_FORMATS),
    native_id: id,
    place: common.place,
    agent: z.string().optional().describe('Name of the recorded agent'),
    agent_version: z.string().optional(),
    model: z.string().optional(),
    cwd: z.string().optional(),
    started_at: moment.optional(),
    system_prompt: z.string().optional(),
    parent: z
      .strictObject({
        native_id: id,
        relation: z.enum(['fork', 'subagent', 'resume']),
        call_id: id.optional().describe('The call that began a sub-agent'),
      })
      .optional(),
  }),
  message: z.strictObject({
    kind: z.literal('message'),
    ...common,
    role: z.enum(MESSAGE_ROLES),
    origin: z
      .enum(['person', 'model', 'harness'])
      .describe('`harness`: put in by the program, such as reminders and environment notes'),
    text: z.string().describe('The text that the model saw or wrote; other parts take one line each'),
    name: z.string().optional(),
    thinking: z.string().optional(),
    usage: usage.optional(),
  }),
  call: z.strictObject({
    kind: z.literal('call'),
    ...common,
    call_id: id.describe('Unique in the session; made from the place where the recording has none'),
    tool: z.string().describe('As the recording names it'),
    args: z.record(z.string(), json).describe('Text that is not JSON comes as `{input: text}`'),
    cwd: z.string().optional().describe('Where it differs from the session'),
  }),
  result: z.strictObject({
    kind: z.literal('result'),
    ...common,
    call_id: id,
    text: z.string().describe('The text that the model saw'),
    is_error: z.boolean(),
    truncated: z.boolean().optional().describe('Whether the recording says that it was cut'),
    files: z.array(shownFile).optional().describe('Files in the structured form of the result, beyond the text'),
    listed: z.array(z.string()).optional().describe('Paths that the structured twin lists'),
  }),
  compaction: z.strictObject({
    kind: z.literal('compaction'),
    ...common,
    trigger: z.string().optional(),
    summary: z.string().optional(),
    tokens_before: z.number().optional(),
    kept_from: id.optional().describe('`native_id` of the first earlier entry that stays in the context'),
    dropped: z
      .array(id)
      .optional()
      .describe('`native_id` of the entries that leave the context, where the recording names them'),
  }),
  event: z.strictObject({
    kind: z.literal('event'),
    ...common,
    name: z
      .string()
      .describe(
        'Such as `model-change`, `aborted`, `file-attached`. The text of `titled` names the session. ' +
          'After `rewind` the conversation continues from `parent_id`; `text` is the abandoned part',
      ),
    text: z.string().optional(),
    undone_from: id
      .optional()
      .describe('Of a `rewind`: `native_id` of the first entry that was taken back, where the recording names it'),
    undone_turns: z.int().positive().optional().describe('Of a `rewind`: how many turns of the person were taken back'),
    files: z.array(shownFile).optional(),
    usage: usage.optional().describe('Of an answer without a message'),
  }),
};

/** The schema of an entry: a message, call, result or event of any recorded agent. */
export const recordedEntrySchema = z.discriminatedUnion('kind', [
  entries.session,
  entries.message,
  entries.call,
  entries.result,
  entries.compaction,
  entries.event,
]);

/** One entry of a recording, in the same shape for every format. */
export type RecordedEntry = z.infer<typeof recordedEntrySchema>;
export type EntryKind = RecordedEntry['kind'];
export type EntryOf<K extends EntryKind> = Extract<RecordedEntry, { kind: K }>;
/** A recorded file's state at one moment. */
export type ShownFile = z.infer<typeof shownFile>;
