import { basename } from 'node:path';
import { tell } from '../../cli/output.js';
import type { ChangingCall } from '../../harness/harness-session.js';
import type { Verb } from '../../session/verb-outcome.js';
import { defined } from '../../values/defined.js';
import { messageOf } from '../../values/thrown.js';
import { VERB_INPUT, VERBS, withGuide } from '../guide.js';
import { COMMAND_TEXT, loopCommand } from '../loop-command.js';
import type { LoopGuard } from '../sidecar/loop-guard.js';
import { startSidecar } from '../sidecar/start.js';
import type { PiContext, PiExtensionApi, PiMessage } from './pi-api.js';
import { nothingSeen, piList } from './pi-messages.js';

const STATUS = 'palimpsest';
/** Estimate for the texts that agents usually read. */
const CHARS_PER_TOKEN = 4;

/** Returns the session id at the end of a session file's name. */
export function sessionOfFile(path: string | undefined): string | undefined {
  return path === undefined ? undefined : /_([0-9a-f-]{36})\.jsonl$/.exec(basename(path))?.[1];
}

/** A session of pi. */
class PiSession {
  readonly loop: LoopGuard;
  readonly id: string;
  readonly #parent: string | undefined;
  #system: string | undefined;
  #messages: readonly PiMessage[] = [];
  readonly #seen = nothingSeen();
  #model: { readonly model?: string; readonly window?: number } = {};
  on = true;

  constructor(loop: LoopGuard, id: string, parent: string | undefined) {
    this.loop = loop;
    this.id = id;
    this.#parent = parent;
  }

  prompt(own: string): string | undefined {
    this.#system = undefined;
    if (!this.on) return undefined;
    this.#system = withGuide(own, this.loop.guide);
    return this.#system;
  }

  async context(messages: readonly PiMessage[], { ui, model }: PiContext): Promise<readonly PiMessage[] | undefined> {
    this.#messages = messages;
    this.#model = defined({ model: model?.id, window: model?.contextWindow });
    const passage = this.on ? await this.loop.pass(() => this.#list()) : undefined;
    if (passage === undefined) {
      if (this.on) ui.setStatus(STATUS, `palimpsest: not recording: ${this.loop.trouble}`);
      return this.loop.own(this.#list());
    }
    const { pool, active } = passage.context;
    ui.setStatus(
      STATUS,
      `palimpsest: ${pool} objects, ${active} active, ~${Math.ceil(passage.chars / CHARS_PER_TOKEN)} tokens`,
    );
    return passage.messages;
  }

  /** Reports a complete message, so that its files are read while the model is thinking. */
  said(message: PiMessage): void {
    if (message.role !== 'assistant' && message.role !== 'toolResult') return;
    this.#messages = [...this.#messages, message];
    if (this.on) void this.loop.follow(this.#list().list);
  }

  /** Returns a text for the model that replaces a call. Undefined if the call may run. */
  async beforeChange(call: ChangingCall): Promise<string | undefined> {
    return this.on ? this.loop.beforeChange({ ...call, session: this.id }) : undefined;
  }

  async turn(on: boolean, { ui }: PiContext): Promise<void> {
    if (on === this.on) return;
    this.on = on;
    ui.setStatus(STATUS, on ? 'palimpsest: on' : 'palimpsest: off');
    await this.loop.toggled(this.id, on);
  }

  #list() {
    const parent = this.#parent === undefined ? {} : { parent: this.#parent };
    return piList(this.id, this.#messages, {
      ...parent,
      ...this.#model,
      ...defined({ system: this.#system }),
      seen: this.#seen,
    });
  }
}

/**
 * The Palimpsest extension for pi. It supplies the context of every model call, and pi keeps its
 * whole history.
 */
export function palimpsestForPi(pi: PiExtensionApi): void {
  let session: PiSession | undefined;

  pi.on('session_start', async (_event, context) => {
    const { cwd, hasUI, sessionManager, ui } = context;
    const notify = (line: string): void => {
      if (hasUI) ui.notify(line, 'warning');
      // `pi -p` shows no notices, and pi turns warnings of Node.js off.
      else tell(line);
    };
    const where = { extension: import.meta.url, node: process.execPath, env: process.env, notify };
    const loop = startSidecar({ what: 'pi', cwd, roots: [cwd] }, where);
    session = new PiSession(
      loop,
      sessionManager.getSessionId(),
      sessionOfFile(sessionManager.getHeader()?.parentSession),
    );
    ui.setStatus(STATUS, 'palimpsest: on');
    await loop.warmUp();
    return undefined;
  });
  pi.on('before_agent_start', ({ systemPrompt }) => {
    const prompt = session?.prompt(systemPrompt);
    return prompt === undefined ? undefined : { systemPrompt: prompt };
  });
  pi.on('context', async ({ messages }, context) => {
    const list = await session?.context(messages, context);
    return list === undefined ? undefined : { messages: list };
  });
  pi.on('tool_call', async ({ toolName, input }, { cwd }) => {
    const reason = await session?.beforeChange({ tool: toolName, args: input, cwd });
    return reason === undefined ? undefined : { block: true, reason };
  });
  pi.on('message_end', ({ message }) => {
    session?.said(message);
    return undefined;
  });
  pi.on('session_shutdown', async () => {
    await session?.loop.end();
    session = undefined;
    return undefined;
  });

  for (const [verb, description] of Object.entries(VERBS)) {
    pi.registerTool({
      name: verb,
      label: verb,
      description,
      parameters: VERB_INPUT,
      execute: async (callId, { ids }) => {
        if (session === undefined) throw new Error('there is no session');
        const text = await session.loop.verb({ session: session.id, verb: verb as Verb, ids, callId });
        return { content: [{ type: 'text', text }], details: {} };
      },
    });
  }
  pi.registerCommand('palimpsest', {
    description: COMMAND_TEXT,
    handler: async (args, context) => {
      const { ui } = context;
      try {
        const { on, tidy = false, ...rendering } = args.trim() === '' ? {} : loopCommand(args);
        if (on !== undefined) await session?.turn(on, context);
        session?.loop.render(session.id, rendering);
        if (tidy) session?.loop.tidy(session.id);
        const how = Object.keys(rendering).length === 0 ? '' : `; ${args.trim()} from its next model call on`;
        const shown = tidy ? '; with layout epoch a new epoch begins with your next message' : how;
        ui.notify(`Palimpsest is ${session?.on === true ? 'on' : 'off'} in this session${shown}`, 'info');
      } catch (error) {
        ui.notify(messageOf(error), 'warning');
      }
    },
  });
}
