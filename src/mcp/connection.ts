import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { Backend } from '../host/backend.js';
import type { Logger } from '../host/log.js';
import type { ServerSettings } from '../host/settings.js';
import { withinLimit } from '../process/within-limit.js';
import { isLoss } from '../session/errors.js';
import type { Tool } from '../tools/tool.js';
import { defined } from '../values/defined.js';
import { codeOf, messageOf } from '../values/thrown.js';
import { createProtocolServer, type Exchange, failedCall, type ServedTool } from './adapter.js';
import { type CallSession, CallSessions, callHints, sessionOfCall } from './call-session.js';

/**
 * Maximum wait of a call for the database before it asks the agent to call again. Most clients time
 * out after a minute.
 */
const TIMEOUT_MS = 50_000;
const HEARTBEAT_MS = 2_000;

/**
 * The text about this server that clients show their models. Some show only the first 512
 * characters, none more than 2,048, so the essentials come first.
 */
export const INSTRUCTIONS = `Palimpsest records your work: every file you read and every tool result becomes an \
object with an id and versions in your session. Use these tools for files instead of the shell. read opens a file \
(continue with offset) or any object by id; version=... gives an older one. activate shows several objects, so old \
output never has to be produced again. deactivate, pin and unpin only mark objects in the session: they free nothing \
in your conversation. context lists them. Errors begin with "Error:" and say what to call next.

Objects are named by id, by a unique prefix of 8 or more characters, or by path. ls, find, grep and tree make files \
known without reading them. edit needs text that occurs exactly once in the file; several edits in one call are \
applied together or not at all. Long answers are cut at a line end and say how to continue.`;

/** A client's connection: its protocol server and its sessions. */
export interface Connection {
  readonly server: Server;
  /** Resolves when no call is running. */
  idle(): Promise<void>;
  /** Releases the sessions. The server's creator closes the server. Idempotent. */
  close(): Promise<void>;
}

/**
 * Returns the client. Undefined if the database was not ready in time or the call was cancelled.
 * Reports progress meanwhile.
 */
async function waitForDatabase(
  backend: Backend,
  exchange: Exchange,
  isNewSession: boolean,
): Promise<ContextClient | undefined> {
  if (backend.client !== undefined) return backend.client;
  let message = '';
  const report = (): void => void exchange.progress?.(message);
  const onProgress = (text: string): void => {
    message = text;
    report();
  };
  const heartbeat = setInterval(report, HEARTBEAT_MS);
  const cancelled = new Promise<undefined>((resolve) =>
    exchange.signal.addEventListener('abort', () => resolve(undefined), { once: true }),
  );
  // An existing session must be read first; a new one begins in the journal.
  const ready = isNewSession ? backend.usable(onProgress) : backend.ready(onProgress);
  ready.catch(() => undefined);
  try {
    return await withinLimit<ContextClient | undefined>(
      Promise.race([ready, cancelled]),
      { ms: TIMEOUT_MS, keepsAlive: true },
      () => undefined,
    );
  } finally {
    clearInterval(heartbeat);
  }
}

/** Serves the tools to one client. */
export function openConnection(backend: Backend, settings: ServerSettings, log: Logger): Connection {
  const sessions = new CallSessions(backend);
  let closing: Promise<void> | undefined;

  const perform = async (tool: Tool, args: unknown, exchange: Exchange): Promise<CallToolResult> => {
    const hints = callHints(exchange.meta);
    const asked = { ...hints, ...defined({ startedBy: settings.startedBy }) };
    let client: ContextClient | undefined;
    let used: CallSession;
    const named = settings.session ?? sessionOfCall(args, {});
    const name = named ?? sessionOfCall(undefined, hints);
    try {
      client = await waitForDatabase(backend, exchange, sessions.isNew(name));
      if (client === undefined) {
        exchange.tell({ 'error.type': 'starting' });
        return failedCall(
          'Error: the database is still starting; nothing was done.\nCall again in a few seconds. ' +
            'The very first start builds it, which takes about a minute.',
        );
      }
      const onProgress = (message: string): void => void exchange.progress?.(message);
      used = await sessions.get(name, { onProgress, ...(named === undefined ? { asked } : {}) });
    } catch (error) {
      log.error({ reason: String(error), tool: tool.name }, 'a call could not begin');
      exchange.tell({ 'error.type': codeOf(error) ?? 'not-begun' });
      return failedCall(
        `Error: ${tool.name} could not begin: ${messageOf(error).slice(0, 1_500)}\nNothing was done. ` +
          'Report it to the user if it happens again.',
      );
    }
    const { callId, turnRef, sandbox } = hints;
    const { session } = used;
    // `recall` may search other sessions, so it uses the connection's own client.
    const own = tool.name === 'recall' ? client : (used.client ?? client);
    const answer = await tool
      .run(args, { client: own, session, signal: exchange.signal, ...defined({ callId, turnRef, sandbox }) })
      .finally(() => used.done());
    const { call: recorded } = answer.meta;
    exchange.tell({
      'gen_ai.conversation.id': session.id,
      ...(typeof recorded === 'string' ? { 'gen_ai.tool.call.id': recorded } : {}),
      ...(answer.isError ? { 'error.type': answer.failure ?? 'failed' } : {}),
    });
    if (answer.unrecorded !== undefined && isLoss(answer.unrecorded)) await used.lost();
    return {
      _meta: { palimpsest: { session: session.id, ...answer.meta } },
      content: [{ type: 'text', text: answer.text }],
      ...(answer.isError ? { isError: true } : {}),
    };
  };

  const served = (tool: Tool): ServedTool => ({
    definition: {
      name: tool.name,
      description: tool.description,
      inputSchema: {
        ...tool.inputSchema,
        properties: { ...tool.inputSchema.properties },
        required: [...(tool.inputSchema.required ?? [])],
      },
      annotations: tool.annotations,
    },
    call: (args, exchange) => perform(tool, args, exchange),
  });

  const { server, idle } = createProtocolServer({
    info: { name: 'palimpsest', version: settings.version },
    instructions: INSTRUCTIONS,
    tools: async () => (await import('../tools/create-tools.js')).createTools(settings.tools).map(served),
    log,
    telemetry: backend.telemetry,
  });
  return {
    server,
    idle,
    close: () => {
      closing ??= idle().then(() => sessions.release());
      return closing;
    },
  };
}
