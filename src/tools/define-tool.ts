import type { CallReport, RecordedCall } from '../client/session/call-report.js';
import { assertPlainJson, type Json } from '../objects/canonical-json.js';
import type { ObjectId } from '../objects/ids.js';
import { defined } from '../values/defined.js';
import { codeOf } from '../values/thrown.js';
import { requireAllowed } from './agent-sandbox.js';
import { type ArgumentShape, inputSchema, type ParsedArguments, parseArguments } from './arguments.js';
import { describeFailure } from './describe-failure.js';
import { frame, withinLimits } from './framing.js';
import type { OutputLimits } from './page.js';
import { failureText, type Tool, type ToolAnnotations, type ToolAnswer, type ToolContext, ToolError } from './tool.js';

/** What all tools of one server have in common. */
export interface ToolSettings {
  /** The longest answer, header and hints included. */
  readonly limits: OutputLimits;
  /** Literal behaviour of every divergence that has one (decision E8). */
  readonly strict: boolean;
  /** Shows the shortest unique prefixes instead of full ids (decision D6). */
  readonly shortIds: boolean;
}

/** What a tool works with; its limits are a little less than those of the settings when remarks have to be added. */
export interface Work extends ToolContext, ToolSettings {}

/** What a tool did, before it is recorded. */
export interface Performed extends Pick<CallReport, 'readings' | 'mentions' | 'plan'> {
  /** The output as it is stored: whole, without our header and hints (decision B8). */
  readonly content: string;
  /** `ok` if left out. */
  readonly status?: 'ok' | 'fail';
  /** What the agent is shown; never empty. */
  readonly show: (callId: ObjectId) => string;
  /** Data about the answer for programs. */
  readonly meta?: { readonly [key: string]: Json };
  /** Why it failed, as a code. */
  readonly failure?: string;
  /** What has happened outside the database and stays so even if the call cannot be recorded. */
  readonly effect?: string;
}

/** What a tool is made of. */
export interface ToolDefinition<Shape extends ArgumentShape> {
  readonly name: string;
  readonly description: string;
  readonly shape: Shape;
  readonly annotations: ToolAnnotations;
  perform(args: ParsedArguments<Shape>['values'], work: Work): Promise<Performed>;
}

/** Keys that belong to the way a call was sent, not to the call. */
const TRANSPORT_KEYS: ReadonlySet<string> = new Set(['wait_for_previous', 'session']);

/** The arguments as they are recorded: as given, if they can be stored exactly. */
function recordableArgs(raw: unknown): { readonly [key: string]: Json } {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return {};
  const hasOthers = Object.keys(raw).some((key) => TRANSPORT_KEYS.has(key));
  const given: unknown = hasOthers
    ? Object.fromEntries(Object.entries(raw).filter(([key]) => !TRANSPORT_KEYS.has(key)))
    : raw;
  assertPlainJson(given, 'arguments');
  return given as { readonly [key: string]: Json };
}

async function perform<Shape extends ArgumentShape>(
  definition: ToolDefinition<Shape>,
  raw: unknown,
  work: Work,
): Promise<Performed> {
  requireAllowed(definition.name, definition.annotations, work.sandbox);
  const { values, remarks } = parseArguments(definition.name, definition.shape, raw);
  work.signal.throwIfAborted();
  const notes = remarks.map((remark) => `[${remark}]`);
  if (notes.length === 0) return definition.perform(values, work);
  const taken = notes.reduce((sum, note) => sum + note.length + 1, 0);
  const limits = { chars: work.limits.chars - taken, lines: work.limits.lines - notes.length };
  const performed = await definition.perform(values, { ...work, limits });
  return { ...performed, show: (callId) => frame(performed.show(callId), '', notes) };
}

function answerOf(performed: Performed, recorded: RecordedCall): ToolAnswer {
  return {
    text: recorded.answer,
    isError: performed.status === 'fail',
    ...defined({ failure: performed.failure }),
    meta: {
      ...performed.meta,
      call: recorded.callId,
      ...(recorded.collapsed.length === 0 ? {} : { collapsed: recorded.collapsed.slice(0, 50) }),
    },
  };
}

/** The answer when a call could not be recorded: what did happen is said first, so that nobody repeats it blindly. */
async function unrecorded(error: unknown, performed: Performed, work: Work): Promise<ToolAnswer> {
  const { message, next } = await describeFailure(error, work);
  const effect =
    performed.effect === undefined
      ? 'Nothing was changed.'
      : `${performed.effect} That stays, only its record is missing.`;
  return {
    text: failureText(`the call could not be recorded: ${message}`, `${effect}${next === undefined ? '' : ` ${next}`}`),
    isError: true,
    failure: codeOf(error) ?? 'unrecorded',
    meta: {},
    unrecorded: error,
  };
}

/** Makes a tool, once its settings are given: reads the arguments, performs, records the call as an object, answers within the limits. */
export function defineTool<Shape extends ArgumentShape>(
  definition: ToolDefinition<Shape>,
): (settings: ToolSettings) => Tool {
  const { name, description, annotations } = definition;
  return (settings) => ({
    name,
    description,
    annotations,
    inputSchema: inputSchema(definition.shape),
    run: async (raw, call) => {
      const startedAt = Date.now();
      const work: Work = { ...call, ...settings };
      let args: CallReport['args'] = {};
      let performed: Performed;
      try {
        args = recordableArgs(raw);
        performed = await perform(definition, raw, work);
      } catch (error) {
        const { message, next } = await describeFailure(error, work);
        const text = failureText(message, next);
        const failure = defined({ failure: codeOf(error) });
        performed = {
          content: text,
          status: 'fail',
          show: () => text,
          ...failure,
          ...(error instanceof ToolError ? error.learned : {}),
        };
      }
      const { content, status = 'ok', show, readings, mentions, plan } = performed;
      try {
        const recorded = await call.session.recordCall({
          tool: name,
          args,
          status,
          content,
          startedAt,
          answer: (callId) => withinLimits(show(callId), settings.limits),
          ...defined({ callId: call.callId, turnRef: call.turnRef, readings, mentions, plan }),
        });
        return answerOf(performed, recorded);
      } catch (error) {
        return unrecorded(error, performed, work);
      }
    },
  });
}
