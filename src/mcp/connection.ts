import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { Backend, SessionLoan } from '../host/backend.js';
import type { Logger } from '../host/log.js';
import type { ServerSettings } from '../host/server-settings.js';
import { SessionError } from '../session/errors.js';
import type { Tool } from '../tools/tool.js';
import { defined } from '../values/defined.js';
import { createProtocolServer, type Exchange, failedCall, type ServedTool } from './adapter.js';
import { callHints } from './call-hints.js';
import { INSTRUCTIONS } from './instructions.js';

/** How long a call waits for the database before it asks the agent to call again: less than the minute after which most clients give up. */
const PATIENCE_MS = 50_000;
const HEARTBEAT_MS = 2_000;

/** One client's connection: its protocol server, and the sessions that its calls belong to. */
export interface Connection {
  readonly server: Server;
  /** Resolves when no call is running. */
  idle(): Promise<void>;
  /** Gives the sessions back; the server itself is closed by whoever connected it. Idempotent. */
  close(): Promise<void>;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Waits for the database; undefined when patience ran out before it was ready. */
async function waitForDatabase(backend: Backend, exchange: Exchange, isNewSession: boolean): Promise<ContextClient | undefined> {
  if (backend.isReady) return backend.ready();
  let message = '';
  const tell = (): void => void exchange.progress?.(message);
  const heartbeat = setInterval(tell, HEARTBEAT_MS);
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), PATIENCE_MS);
    exchange.signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  const heard = (text: string): void => {
    message = text;
    tell();
  };
  // A session that may exist has to be read first; a new one begins in the journal.
  const ready = isNewSession ? backend.usable(heard) : backend.ready(heard);
  try {
    return await Promise.race([ready, patience]);
  } finally {
    ready.catch(() => undefined);
    clearInterval(heartbeat);
    clearTimeout(timer);
  }
}

/** The sessions of one connection, by the name that a call gives; all calls without a name share one new session. */
class ConnectionSessions {
  readonly #backend: Backend;
  readonly #loans = new Map<string | undefined, Promise<SessionLoan>>();

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  get(name: string | undefined, onProgress: (message: string) => void): Promise<SessionLoan> {
    const known = this.#loans.get(name);
    if (known !== undefined) return known;
    const loan = this.#backend.borrow(name, onProgress);
    this.#loans.set(name, loan);
    loan.catch(() => this.#loans.delete(name));
    return loan;
  }

  /** Gives one session back, so that the next call opens it anew. */
  async drop(name: string | undefined): Promise<void> {
    const loan = this.#loans.get(name);
    this.#loans.delete(name);
    await (await loan)?.release();
  }

  async release(): Promise<void> {
    const loans = await Promise.allSettled(this.#loans.values());
    await Promise.all(loans.map((loan) => (loan.status === 'fulfilled' ? loan.value.release() : undefined)));
  }
}

/** A client's own name of a conversation as a session id: what an id cannot hold becomes a dash. */
function sessionName(thread: string | undefined): string | undefined {
  if (thread === undefined) return undefined;
  const name = thread.replace(/[^A-Za-z0-9._:@+-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  return name === '' ? undefined : name;
}

function sessionArgument(args: unknown): string | undefined {
  const value = typeof args === 'object' && args !== null && 'session' in args ? args.session : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Serves the tools to one client. */
export function openConnection(backend: Backend, settings: ServerSettings, log: Logger): Connection {
  const sessions = new ConnectionSessions(backend);
  let closing: Promise<void> | undefined;

  const call = async (tool: Tool, args: unknown, exchange: Exchange): Promise<CallToolResult> => {
    const hints = callHints(exchange.meta);
    let client: ContextClient | undefined;
    let loan: SessionLoan;
    const name = settings.session ?? sessionArgument(args) ?? sessionName(hints.thread);
    try {
      client = await waitForDatabase(backend, exchange, name === undefined);
      if (client === undefined)
        return failedCall(
          'Error: the database is still starting; nothing was done.\nCall again in a few seconds. The very first start builds it, which takes about a minute.',
        );
      loan = await sessions.get(name, (message) => void exchange.progress?.(message));
    } catch (error) {
      log.error({ reason: String(error), tool: tool.name }, 'a call could not begin');
      return failedCall(
        `Error: ${tool.name} could not begin: ${messageOf(error).slice(0, 1_500)}\nNothing was done. Tell the user if it happens again.`,
      );
    }
    const { callId, turnRef } = hints;
    const answer = await tool.run(args, {
      client,
      session: loan.session,
      signal: exchange.signal,
      ...defined({ callId, turnRef }),
    });
    if (answer.unrecorded instanceof SessionError && answer.unrecorded.code === 'taken-over') await sessions.drop(name);
    return {
      content: [{ type: 'text', text: answer.text }],
      ...(answer.isError ? { isError: true } : {}),
      _meta: { palimpsest: { session: loan.session.id, ...answer.meta } },
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
    call: (args, exchange) => call(tool, args, exchange),
  });

  const { server, idle } = createProtocolServer({
    info: { name: 'palimpsest', version: settings.version },
    instructions: INSTRUCTIONS,
    tools: async () => (await import('../tools/create-tools.js')).createTools(settings.tools).map(served),
    log,
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
