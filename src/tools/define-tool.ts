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

/** Settings that all tools of a server share. */
export interface ToolSettings {
  /** Maximum size of an answer, header and hints included. */
  readonly limits: OutputLimits;
  /** Whether to follow the specification literally where docs/ssot.md allows it (decision E8). */
  readonly strict: boolean;
  /** Whether to show the shortest unique prefixes of ids (decision D6). */
  readonly shortIds: boolean;
}

/**
 * The environment of a tool call. Its limits are lower than those of the settings if remarks must
 * be added to the answer.
 */
export interface Work extends ToolContext, ToolSettings {}

/** The result of a tool call, before it is recorded. */
export interface Performed extends Pick<CallReport, 'readings' | 'mentions' | 'plan'> {
  /** The whole output as it is stored, without header and hints (decision B8). */
  readonly content: string;
  /** Default: `ok`. */
  readonly status?: 'ok' | 'fail';
  /** Returns the answer for the agent. It is never empty. */
  readonly show: (callId: ObjectId) => string;
  /** Data about the answer, for programs. */
  readonly meta?: { readonly [key: string]: Json };
  /** Error code of a failure. */
  readonly failure?: string;
  /**
   * The change that the call made outside the database. It stays even if the call cannot be
   * recorded.
   */
  readonly effect?: string;
}

/** The parts of a tool. */
export interface ToolDefinition<Shape extends ArgumentShape> {
  readonly name: string;
  readonly description: string;
  readonly shape: Shape;
  readonly annotations: ToolAnnotations;
  perform(args: ParsedArguments<Shape>['values'], work: Work): Promise<Performed>;
}

/** Arguments for the transport, which are not recorded. */
const TRANSPORT_KEYS: ReadonlySet<string> = new Set(['wait_for_previous', 'session']);

/** Returns the arguments to record: those given, if they can be stored exactly. */
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
  if (work.sandbox !== undefined) requireAllowed(definition.name, definition.annotations, work.sandbox);
  const { values, remarks } = parseArguments(definition.name, definition.shape, raw);
  work.signal.throwIfAborted();
  const notes = remarks.map((remark) => `[${remark}]`);
  if (notes.length === 0) return definition.perform(values, work);
  const taken = notes.reduce((sum, note) => sum + note.length + 1, 0);
  const limits = { chars: work.limits.chars - taken, lines: work.limits.lines - notes.length };
  const performed = await definition.perform(values, { ...work, limits });
  return { ...performed, show: (callId) => frame(performed.show(callId), '', notes) };
}

function answerOf(performed: Performed, recorded: Omit<RecordedCall, 'applied'>): ToolAnswer {
  return {
    text: recorded.answer,
    isError: performed.status === 'fail',
    ...defined({ failure: performed.failure }),
    meta: {
      ...performed.meta,
      ...(recorded.callId === '' ? {} : { call: recorded.callId }),
      ...(recorded.collapsed.length === 0 ? {} : { collapsed: recorded.collapsed.slice(0, 50) }),
    },
  };
}

/**
 * Returns the answer for a call that could not be recorded. It says what was changed, so that the
 * agent does not just repeat the call.
 */
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

/**
 * Defines a tool. With given settings, it parses the arguments, runs the call, records it as an
 * object, and keeps the answer within the limits.
 */
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
