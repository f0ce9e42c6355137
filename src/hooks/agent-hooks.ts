import { isAbsolute } from 'node:path';
import { HOOK_AGENTS, type HookAgent } from '../agents/hooks/hook-folder.js';
import { isJsonObject, type JsonObject } from '../values/json-object.js';

/** The moments at which hooks run. Their names are the same for all agents. */
export type HookMoment =
  | 'session-start'
  | 'session-end'
  | 'prompt'
  | 'before-tool'
  | 'after-tool'
  | 'before-compaction'
  | 'after-compaction'
  | 'stop';

/** A tool call in a hook's event. */
export interface HookedCall {
  readonly tool: string;
  readonly args: JsonObject;
  /** The agent's id of the call. Gemini CLI gives no id. */
  readonly id: string | undefined;
}

/** An event that an agent passed to its hook. */
export interface HookEvent {
  readonly agent: HookAgent;
  readonly moment: HookMoment;
  /** The agent's own name for the event. The answer repeats it. */
  readonly name: string;
  /** The agent's id of the session. */
  readonly native: string;
  /** The id of the sub-agent that acts in this session, if one does. */
  readonly subagent: string | undefined;
  readonly transcript: string | undefined;
  readonly cwd: string | undefined;
  /** Present in events before and after a tool call. */
  readonly call: HookedCall | undefined;
  /** Whether the agent reports that the call failed. */
  readonly failed: boolean;
  /** The output of the call, if it is a single text. */
  readonly shown: string | undefined;
}

const CLAUDE_LIKE: Readonly<Record<string, HookMoment>> = {
  SessionStart: 'session-start',
  SessionEnd: 'session-end',
  UserPromptSubmit: 'prompt',
  PreToolUse: 'before-tool',
  PostToolUse: 'after-tool',
  PostToolUseFailure: 'after-tool',
  PreCompact: 'before-compaction',
  Stop: 'stop',
  SubagentStop: 'stop',
};

const MOMENTS: Readonly<Record<HookAgent, Readonly<Record<string, HookMoment>>>> = {
  'claude-code': CLAUDE_LIKE,
  codex: CLAUDE_LIKE,
  'gemini-cli': {
    SessionStart: 'session-start',
    SessionEnd: 'session-end',
    BeforeAgent: 'prompt',
    BeforeTool: 'before-tool',
    AfterTool: 'after-tool',
    PreCompress: 'before-compaction',
    AfterAgent: 'stop',
  },
};

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** Maximum length of an id. Messages about failures repeat ids. */
const LONGEST_ID = 400;
/** Maximum length of a path, as in Linux. */
const LONGEST_PATH = 4_096;

const idIn = (value: unknown): string | undefined => {
  const id = text(value);
  return id === undefined || id.length > LONGEST_ID ? undefined : id;
};

/** Accepts absolute paths only: a relative path would be resolved in the watcher's folder. */
const pathIn = (value: unknown): string | undefined => {
  const path = text(value);
  return path !== undefined && path.length <= LONGEST_PATH && isAbsolute(path) ? path : undefined;
};

function callIn({ tool_name: tool, tool_input: args, tool_use_id: id }: JsonObject): HookedCall | undefined {
  const name = text(tool);
  if (name === undefined) return undefined;
  // The arguments of some tools, such as a patch, are plain text.
  return { tool: name, args: isJsonObject(args) ? args : { input: args }, id: idIn(id) };
}

/** The beginning of a failed patch's output. Codex gives no other sign of the failure. */
const FAILED_PATCH = /^(?:apply_patch verification failed|Exit code: [1-9])/;

/** Returns whether a result reports a failure, in the form of any agent. */
function isFailure(name: string, result: unknown): boolean {
  if (name === 'PostToolUseFailure') return true;
  if (typeof result === 'string') return FAILED_PATCH.test(result);
  if (!isJsonObject(result)) return false;
  return (result.error !== undefined && result.error !== null) || result.success === false || result.is_error === true;
}

/** Returns a call's output: of commands in Claude Code and Codex, of any tool in Gemini CLI. */
function shownIn(result: unknown): string | undefined {
  if (!isJsonObject(result)) return text(result);
  return text(result.stdout) ?? text(result.llmContent);
}

/**
 * Returns the moment of an event. The start of a session after a compaction counts as the
 * compaction.
 */
function momentIn(agent: HookAgent, name: string, source: unknown): HookMoment | undefined {
  const moment = Object.hasOwn(MOMENTS[agent], name) ? MOMENTS[agent][name] : undefined;
  return moment === 'session-start' && source === 'compact' ? 'after-compaction' : moment;
}

/**
 * Parses the event that an agent passes to its hook. Returns undefined for an unknown agent or
 * event, and for text that is not an event.
 */
export function readHookEvent(agent: string, body: string): HookEvent | undefined {
  const known = HOOK_AGENTS.find((name) => name === agent);
  let event: unknown;
  try {
    event = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (known === undefined || !isJsonObject(event)) return undefined;
  const [name, native] = [text(event.hook_event_name), idIn(event.session_id)];
  const moment = name === undefined ? undefined : momentIn(known, name, event.source);
  if (name === undefined || native === undefined || moment === undefined) return undefined;
  const call = callIn(event);
  const isTool = moment === 'before-tool' || moment === 'after-tool';
  if (isTool && call === undefined) return undefined;
  return {
    agent: known,
    moment,
    name,
    native,
    subagent: idIn(event.agent_id),
    transcript: pathIn(event.transcript_path),
    cwd: pathIn(event.cwd),
    call: isTool ? call : undefined,
    failed: isFailure(name, event.tool_response),
    shown: shownIn(event.tool_response),
  };
}

/** A note to the model. It is added to the context, or it replaces a call. */
export interface HookNote {
  readonly text: string;
  /** Whether the agent must not run the call. Only set before a tool call. */
  readonly refuses: boolean;
}

/**
 * Returns what a hook prints so that its agent shows a note to the model. Contains only fields that
 * the agent accepts for the event.
 */
export function hookAnswer({ agent, name, moment }: HookEvent, { text, refuses }: HookNote): string {
  const isRefusal = refuses && moment === 'before-tool';
  if (agent === 'gemini-cli' && isRefusal) return JSON.stringify({ decision: 'deny', reason: text });
  const said = isRefusal ? { permissionDecision: 'deny', permissionDecisionReason: text } : { additionalContext: text };
  return JSON.stringify({ hookSpecificOutput: { hookEventName: name, ...said } });
}
