import * as z from 'zod';
import { givenSessionName, REQUESTS as OWN_REQUESTS } from '../../http/api-schemas.js';
import { VERBS } from '../../session/verb-outcome.js';
import { messageSchema, toolCallReportSchema } from '../message-schema.js';

const turn = z.string().min(1).max(180).optional().describe("The harness's own id of the turn");
const ids = z.array(z.string());
const count = z.int().nonnegative();
const digest = z.string().regex(/^[0-9a-f]{64}$/);
const objectId = z.string().describe('Id of an object');
const notes = z.array(z.string()).describe('Files of calls that could not be recorded, and the reasons');
const changes = z
  .object({ activate: ids.optional(), deactivate: ids.optional(), pin: ids.optional(), unpin: ids.optional() })
  .describe('Changes of the sets');

/** Schemas of request bodies, for operations on open sessions. */
export const SESSION_REQUESTS = {
  OpenSession: z
    .strictObject({
      id: givenSessionName.optional().describe('The session to open or resume; default: a new one'),
      must_exist: z.boolean().optional().describe('Only resume: 404 if there is no such session'),
      take_over: z
        .boolean()
        .optional()
        .describe(
          'Take the session over from another process; default: true for a session that this server lost with ' +
            'taken-over',
        ),
      fork: z
        .strictObject({
          parent: givenSessionName,
          at: z
            .union([count, z.string().min(1).max(100)])
            .optional()
            .describe("The last step that both share, or a moment such as turn:7; default: the parent's last step"),
        })
        .optional()
        .describe('Create a session with the chat and the sets of another one'),
      system_prompt: z.string().nullable().optional().describe('Set at once; null for none'),
      mine_shell: z
        .boolean()
        .optional()
        .describe('Search the output of reported shell commands for paths (default false)'),
    })
    .describe('Opens, resumes or forks a session'),
  Nothing: OWN_REQUESTS.Nothing,
  SystemPrompt: z.strictObject({ text: z.string().nullable().describe('null for none') }),
  Messages: z.strictObject({
    messages: z.array(messageSchema),
    mode: z
      .enum(['append', 'history'])
      .optional()
      .describe('append (default): only new messages; history: the whole history, in which new messages are detected'),
    turn,
  }),
  ToolCalls: z.strictObject({ calls: z.array(toolCallReportSchema).min(1).max(1_000), turn }),
  Context: z
    .strictObject({
      format: z.enum(['text', 'messages']).optional().describe('Default: text; layout epoch supports only messages'),
      layout: z
        .enum(['ssot', 'epoch'])
        .optional()
        .describe(
          'epoch: each request begins with the whole previous one. It contains the given messages if they are a ' +
            'whole history, otherwise the recorded chat. Default: ssot',
        ),
      model: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe('With layout epoch: the name of the model, which selects its prices'),
      window: z.int().min(1).optional().describe("With layout epoch: the model's window in tokens (default 200000)"),
      tidy: z.boolean().optional().describe('With layout epoch: the next user message begins an epoch'),
      strict: z.boolean().optional().describe('The literal rendering'),
      short_ids: z.boolean().optional().describe('Shortest unique prefixes instead of full ids'),
      messages: z.array(messageSchema).optional().describe('Reported first'),
      mode: z.enum(['append', 'history']).optional(),
      turn,
    })
    .describe('Begins a turn or step'),
  Verb: z.strictObject({
    ids: z
      .array(z.string().min(1))
      .min(1)
      .max(200)
      .describe('Ids, unique prefixes of 8 or more characters, or display paths'),
    call_id: z.string().min(1).optional().describe("The harness's id of the agent's call"),
    turn,
  }),
  PersonVerb: z.strictObject({
    verb: z.enum(VERBS),
    ids: z
      .array(z.string().min(1))
      .min(1)
      .max(200)
      .describe('Ids, unique prefixes of 8 or more characters, or display paths'),
  }),
  Undo: z.strictObject({
    step: z.int().min(1).describe('The step whose changes to the sets are reverted'),
    plan: z.boolean().optional().describe('Only preview the changes'),
  }),
} as const;

const session = z.object({
  id: z.string(),
  resumed: z.boolean().describe('Whether it had content before'),
  turn: count,
  step: count,
  index: count.describe('Objects in the session index'),
  active: z.array(objectId),
  pinned: z.array(objectId),
});

const recorded = z.object({
  index: count.describe('The message of the entry'),
  kind: z.enum(['message', 'call']),
  call_id: objectId.optional(),
});

const notice = z
  .object({ kind: z.enum(['shortened', 'compacted', 'diverged']), kept: count, missing: count })
  .describe('The history does not simply continue the known one; no known message was deleted');

const messages = z.object({
  recorded: z.array(recorded),
  known: count,
  notice: notice.nullable(),
  notes,
  turn: count,
  step: count,
});

const record = z
  .object({
    renderer: z.enum(['text', 'messages', 'around', 'epoch', 'sent']),
    layout: z.string().describe('The name of the layout; default `ssot`'),
    version: count,
    options: z.object({ strict: z.boolean(), short_ids: z.boolean() }),
    sections: z.array(
      z.object({ name: z.enum(['system', 'pool', 'chat', 'active', 'notes']), chars: count, sha256: digest }),
    ),
    blocks: z.array(z.object({ id: objectId, offset: count, chars: count })),
    chars: count,
    sha256: digest,
    session: z.string(),
    turn: count,
    step: count,
    basis: z
      .object({
        valid_time: z.string().nullable().describe('null: the newest versions known after the transaction'),
        tx_id: count.nullable(),
      })
      .nullable()
      .describe('null if it was assembled while the database was away'),
    delivered: z.enum(['library', 'http', 'pi', 'opencode', 'replay', 'gateway']),
  })
  .describe('Proof for checking this context later');

const rendered = z.object({
  section: z.enum(['pool', 'chat', 'active', 'notes']),
  role: z.string(),
  name: z.string().optional(),
  parts: z.array(z.object({ text: z.string(), id: objectId.optional().describe('The active object of the block') })),
});

/** Schemas of response bodies, for operations on open sessions. */
export const SESSION_ANSWERS = {
  Session: session,
  Closed: z.object({ id: z.string(), closed: z.literal(true) }),
  MessagesReport: messages,
  ToolCallsReport: z.object({
    calls: z.array(
      z.object({
        call_id: objectId,
        outcome: z.enum(['recorded', 'known']),
        files: count.describe('Files that were recorded'),
        collapsed: z.array(objectId).describe('Tool results that the window deactivated'),
        notes,
      }),
    ),
    turn: count,
    step: count,
  }),
  TurnContext: z.object({
    format: z.enum(['text', 'messages']),
    text: z.string().optional().describe('With format text'),
    system: z.string().nullable().optional().describe('With format messages'),
    messages: z
      .array(rendered)
      .optional()
      .describe("With format messages; with list: the messages before the harness's own"),
    epoch: z
      .object({
        number: count.describe('From 1'),
        begins: z.boolean().describe('Whether it begins with this context'),
        reason: z.enum(['first', 'saving', 'cold', 'pressure', 'asked', 'history']).describe('Why it began'),
      })
      .optional()
      .describe('With layout epoch'),
    list: z
      .object({
        from: count.describe('Index of the first message of the request list that stays'),
        inserts: z.array(
          z.object({ index: count.describe('Index of the message directly before it'), message: rendered }),
        ),
        references: z.array(
          z.object({
            index: count.describe('Index of the message that contains the result'),
            call_id: objectId,
            text: z.string().describe('The text that replaces the result'),
          }),
        ),
      })
      .optional()
      .describe('With layout epoch and a whole history: its messages in the request, and our messages between them'),
    record,
    report: messages
      .omit({ turn: true, step: true })
      .nullable()
      .describe('The result of the messages that were sent with the request'),
  }),
  VerbReport: z.object({
    call_id: objectId,
    text: z.string().describe('Message for the agent'),
    ok: z.boolean(),
    entries: z.array(
      z.object({
        reference: z.string(),
        ok: z.boolean(),
        id: objectId.optional(),
        failure: z.string().optional(),
        candidates: z.array(objectId).optional(),
        chars: count.optional(),
      }),
    ),
    collapsed: z.array(objectId),
  }),
  SetsChanged: z.object({
    session: z.string(),
    verb: z.string(),
    step: count.nullable().describe('The recorded step; null without changes'),
    entries: z.array(
      z.object({
        reference: z.string(),
        ok: z.boolean(),
        id: z.string().optional(),
        changes: z.boolean().optional().describe('Whether this changes its state'),
        failure: z.string().optional(),
        candidates: ids.optional(),
      }),
    ),
  }),
  StepUndone: z.object({
    session: z.string(),
    undoes: count,
    step: count.nullable().describe('The recorded step; null for a plan'),
    changes,
  }),
} as const;

/** The body of a request, after parsing. */
export type SessionRequest<N extends keyof typeof SESSION_REQUESTS> = z.output<(typeof SESSION_REQUESTS)[N]>;
/** The body of an answer, before serialising. */
export type SessionAnswer<N extends keyof typeof SESSION_ANSWERS> = z.input<(typeof SESSION_ANSWERS)[N]>;
