import * as z from 'zod';
import { tell } from '../../cli/output.js';
import type { ChangingCall } from '../../harness/harness-session.js';
import type { Verb } from '../../session/verb-outcome.js';
import { messageOf } from '../../values/thrown.js';
import { VERBS, withGuide } from '../guide.js';
import { COMMAND_TEXT, loopCommand } from '../loop-command.js';
import type { HarnessList } from '../sidecar/composed-list.js';
import { LatestSessions } from '../sidecar/latest-sessions.js';
import type { LoopGuard } from '../sidecar/loop-guard.js';
import { startSidecar } from '../sidecar/start.js';
import type {
  OpencodeHooks,
  OpencodeInfo,
  OpencodeInput,
  OpencodeMessage,
  OpencodeModel,
  OpencodePart,
  OpencodeTool,
} from './opencode1-api.js';
import {
  answeredList,
  nothingSeen,
  opencodeList,
  type SeenByOpencode,
  StreamedMessages,
} from './opencode1-messages.js';

const COMMAND = 'palimpsest';
/** Matches the system prompt of the call that makes a title. That call is not part of a turn. */
const SIDE_PROMPT = /^You are a title generator\b/;

/** A session of OpenCode. */
interface OpencodeSession {
  on: boolean;
  /** The system prompt of the last model call. OpenCode makes a list before its prompt is known. */
  system: string | undefined;
  /** The name of the last model call's model. */
  model?: string;
  /** The model's window in tokens. */
  window?: number;
  /** Whether the next list is for a compaction. */
  compacting: boolean;
  /**
   * The list whose system prompt comes next: ours, or OpenCode's own if ours was late or failed.
   */
  list: 'ours' | 'own' | undefined;
  /**
   * A copy of OpenCode's list before the last model call. OpenCode makes new objects for each call.
   */
  own: readonly OpencodeMessage[] | undefined;
}

class OpencodeLoop {
  readonly #guard: LoopGuard;
  readonly #input: OpencodeInput;
  readonly #sessions = new Map<string, OpencodeSession>();
  readonly #seen = new LatestSessions<SeenByOpencode>();
  readonly streamed = new StreamedMessages();

  constructor(guard: LoopGuard, input: OpencodeInput) {
    this.#guard = guard;
    this.#input = input;
  }

  async messages(messages: OpencodeMessage[]): Promise<void> {
    const id = messages.at(-1)?.info.sessionID;
    if (id === undefined) return;
    const session = this.#session(id);
    const { compacting } = session;
    session.compacting = false;
    session.list = undefined;
    const own = this.#list(id, [...messages]);
    // A compaction must summarise the harness's own history.
    const passing = session.on && !compacting ? this.#guard.passAhead(() => own) : undefined;
    session.own = compacting ? undefined : own.kept().messages;
    const passage = await passing;
    if (passing !== undefined) session.list = passage === undefined ? 'own' : 'ours';
    const list = passage?.messages ?? (compacting ? own.messages.map(own.withoutThoughts) : this.#guard.own(own));
    messages.splice(0, messages.length, ...list);
  }

  compacting(id: string): void {
    this.#session(id).compacting = true;
  }

  async system(id: string | undefined, system: string[], model: OpencodeModel | undefined): Promise<void> {
    const session = id === undefined ? undefined : this.#sessions.get(id);
    if (id === undefined || session?.list === undefined || SIDE_PROMPT.test(system[0] ?? '')) return;
    const { list } = session;
    session.list = undefined;
    // OpenCode's own list gets the guide, too. Every request begins with the system prompt, which
    // must stay the same.
    system[0] = withGuide(system[0] ?? '', this.#guard.guide);
    session.system = system.join('\n');
    if (model?.id !== undefined) session.model = model.id;
    if (model?.limit?.context !== undefined) session.window = model.limit.context;
    if (list === 'ours') await this.#guard.handOver(id, session.system);
  }

  expect(id: string, callId: string): void {
    if (this.#sessions.get(id)?.on === true) this.#guard.expect(id, callId);
  }

  /**
   * Rejects a call that would change a file that differs from what the model saw last.
   *
   * @throws {Error} the message is a text for the model
   */
  async beforeChange(id: string, call: ChangingCall): Promise<void> {
    if (this.#sessions.get(id)?.on !== true) return;
    const reason = await this.#guard.beforeChange({ ...call, session: id });
    if (reason !== undefined) throw new Error(reason);
  }

  /** Reports a complete message of the model at once, because no further event may follow. */
  updated(info: OpencodeInfo): void {
    const message = this.streamed.completed(info);
    const session = this.#sessions.get(info.sessionID);
    if (message === undefined || session?.on !== true || session.own === undefined) return;
    const list = answeredList(session.own, message);
    if (list !== undefined) void this.#guard.follow(this.#list(info.sessionID, list).list);
  }

  /** Reports the messages since the last model call. */
  async idle(id: string): Promise<void> {
    const session = this.#sessions.get(id);
    if (session?.on !== true) return;
    const { own } = session;
    const { data } = await this.#input.client.session.messages({ path: { id } });
    // An idle session keeps no list, because the next model call brings one.
    if (session.own === own) session.own = undefined;
    if (data !== undefined) void this.#guard.follow(this.#list(id, data).list);
  }

  /**
   * Runs the command. Without words, it turns Palimpsest on.
   *
   * @throws {RangeError} unknown words
   */
  async command(id: string, words: string): Promise<void> {
    const asked = loopCommand(words.trim() === '' ? 'on' : words);
    await this.#guard.obey(id, asked, this.#session(id));
  }

  #list(id: string, messages: readonly OpencodeMessage[]): HarnessList<OpencodeMessage> {
    const seen = this.#seen.get(id) ?? nothingSeen();
    this.#seen.set(id, seen);
    return opencodeList(id, messages, { ...this.#session(id), seen });
  }

  #session(id: string): OpencodeSession {
    const known = this.#sessions.get(id);
    if (known !== undefined) return known;
    const session = { on: true, system: undefined, compacting: false, list: undefined, own: undefined };
    this.#sessions.set(id, session);
    return session;
  }
}

/**
 * The Palimpsest plugin for OpenCode 1. It supplies the context of every model call, and OpenCode
 * keeps its whole history. `extension` is the URL of the built plugin. The sidecar's program is in
 * the same folder.
 */
export async function palimpsestForOpencode1(input: OpencodeInput, extension: string): Promise<OpencodeHooks> {
  const { directory: cwd, client } = input;
  const notify = (message: string): void => {
    client.tui.showToast({ body: { message, variant: 'warning' } }).catch(() => undefined);
    // `opencode run` shows no toasts.
    if (process.argv.includes('run')) tell(message);
  };
  // OpenCode runs in another runtime, but the sidecar needs Node.
  const where = { extension, node: 'node', env: process.env, notify };
  const guard = startSidecar({ what: 'opencode', cwd, roots: [cwd] }, where);
  await guard.warmUp();
  const loop = new OpencodeLoop(guard, input);
  const args = { ids: z.array(z.string()).min(1) };
  const tools = Object.entries(VERBS).map(([verb, description]): [string, OpencodeTool] => [
    verb,
    {
      description,
      args,
      execute: ({ ids }, { sessionID, callID = '' }) =>
        guard.verb({ session: sessionID, verb: verb as Verb, ids, callId: callID }),
    },
  ]);
  return {
    dispose: () => guard.end(),
    config: async (config) => {
      const template = 'Palimpsest in this session from now on: $ARGUMENTS. Answer with one word: ok';
      config.command = { ...config.command, [COMMAND]: { template, description: COMMAND_TEXT } };
    },
    event: async ({ event: { type, properties } }) => {
      if (type === 'message.part.updated') loop.streamed.part(properties.part as OpencodePart);
      if (type === 'message.updated') loop.updated(properties.info as OpencodeInfo);
      if (type === 'session.idle') await loop.idle(String(properties.sessionID));
    },
    tool: Object.fromEntries(tools),
    'tool.execute.before': async ({ tool, sessionID, callID }, { args: given }) => {
      loop.expect(sessionID, callID);
      await loop.beforeChange(sessionID, { tool, args: given });
    },
    'command.execute.before': async ({ command, sessionID, arguments: wanted }) => {
      if (command === COMMAND)
        await loop.command(sessionID, wanted).catch((error: unknown) => notify(messageOf(error)));
    },
    'experimental.session.compacting': async ({ sessionID }) => loop.compacting(sessionID),
    'experimental.chat.messages.transform': (_input, { messages }) => loop.messages(messages),
    'experimental.chat.system.transform': ({ sessionID, model }, { system }) => loop.system(sessionID, system, model),
  };
}
