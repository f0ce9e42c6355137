import type { Verb } from '../../session/verb-outcome.js';
import { defined } from '../../values/defined.js';
import { isJsonObject } from '../../values/json-object.js';
import { messageOf } from '../../values/thrown.js';
import { VERB_INPUT, VERBS } from '../guide.js';
import { COMMAND_TEXT, loopCommand } from '../loop-command.js';
import type { KnownUsage } from '../reported-usage.js';
import type { HarnessList } from '../sidecar/composed-list.js';
import { LatestSessions } from '../sidecar/latest-sessions.js';
import type { LoopGuard } from '../sidecar/loop-guard.js';
import { startSidecar } from '../sidecar/start.js';
import type {
  Cleanup,
  Opencode2Context,
  Opencode2Event,
  Opencode2Message,
  Opencode2Model,
  Opencode2Tool,
  PermissionEvent,
  RequestDraft,
  ToolCallEvent,
} from './opencode2-api.js';
import {
  answeredList,
  nothingSeen,
  opencode2List,
  plainMessage,
  type SeenByOpencode2,
  withoutThoughts,
} from './opencode2-messages.js';

const COMMAND = 'palimpsest';
/** Maximum number of answers whose token counts wait to be reported. */
const MOST_COUNTED = 1_000;

/** A session of OpenCode 2. */
interface Opencode2Session {
  on: boolean;
  /** The system prompt of the last model call. */
  system?: string;
  /** The model of the last model call, and its window in tokens. */
  model?: string;
  window?: number;
  /** A copy of OpenCode's list before the last model call. */
  own?: readonly Opencode2Message[];
}

/** Returns a list that some versions wrap into an object. */
const listOf = <T>(answer: readonly T[] | { readonly data?: readonly T[] }): readonly T[] =>
  Array.isArray(answer) ? answer : ((answer as { readonly data?: readonly T[] }).data ?? []);

const keyOf = ({ providerID, id }: Opencode2Model): string => `${providerID}/${id}`;

class Opencode2Loop {
  readonly #guard: LoopGuard;
  readonly #context: Opencode2Context;
  readonly #sessions = new Map<string, Opencode2Session>();
  readonly #seen = new LatestSessions<SeenByOpencode2>();
  readonly #usage = new Map<string, KnownUsage>();
  /** Reasons to refuse calls that are about to run, by call id. */
  readonly #refused = new Map<string, string>();
  #windows: ReadonlyMap<string, number> = new Map();

  constructor(guard: LoopGuard, context: Opencode2Context) {
    this.#guard = guard;
    this.#context = context;
  }

  /** Gets the windows of all models. Model calls do not wait for this. */
  async askWindows(): Promise<void> {
    const { model, catalog } = this.#context;
    const models = listOf((await (model ?? catalog?.model)?.list()) ?? []);
    this.#windows = new Map(
      models.flatMap((one) => (one.limit?.context === undefined ? [] : [[keyOf(one), one.limit.context]])),
    );
  }

  /** Supplies the context of a model call. */
  async request(draft: RequestDraft): Promise<void> {
    if (draft.kind !== undefined && draft.kind !== 'primary') return this.side(draft);
    const { sessionID: id, messages, model } = draft;
    const session = this.#session(id);
    const { guide } = this.#guard;
    const system =
      session.on && guide !== undefined ? [...draft.system, { type: 'text' as const, text: guide }] : [...draft.system];
    session.system = system.map(({ text }) => text).join('\n');
    const window = model === undefined ? undefined : this.#windows.get(keyOf(model));
    Object.assign(session, defined({ model: model?.id, window }));
    const plain = new Map(messages.map((message) => [plainMessage(message), message]));
    const own = this.#list(id, [...plain.keys()]);
    const passage = session.on ? await this.#guard.pass(() => own) : undefined;
    session.own = own.kept().messages;
    const list = passage?.messages ?? this.#guard.own(own);
    // For an unchanged message, OpenCode gets back its own object.
    messages.splice(0, messages.length, ...list.map((message) => plain.get(message) ?? message));
    draft.system.splice(0, draft.system.length, ...system);
  }

  /**
   * Leaves OpenCode's own history in a request outside the conversation, such as one for a summary.
   */
  side({ messages }: RequestDraft): void {
    messages.splice(0, messages.length, ...messages.map(withoutThoughts));
  }

  /**
   * Announces a call, and finds out whether it would change a file that differs from what the model
   * saw.
   */
  async before({ sessionID: session, tool, id, input }: ToolCallEvent): Promise<void> {
    if (this.#sessions.get(session)?.on !== true) return;
    this.#guard.expect(session, id);
    const args = isJsonObject(input) ? input : {};
    const reason = await this.#guard.beforeChange({ session, tool, args });
    if (reason !== undefined) this.#refused.set(id, reason);
  }

  /**
   * Denies a refused call. This is done here because an error in a tool hook would end the turn.
   */
  permit(event: PermissionEvent): void {
    const reason = this.#refused.get(event.source?.id ?? '');
    if (reason === undefined) return;
    event.effect = 'deny';
    event.message = reason;
  }

  after({ id }: ToolCallEvent): void {
    this.#refused.delete(id);
  }

  async event({ type, data }: Opencode2Event): Promise<void> {
    const { sessionID = '', assistantMessageID, tokens } = data ?? {};
    if (!this.#sessions.has(sessionID)) return;
    if (assistantMessageID !== undefined && tokens !== undefined) {
      const { input, output, cache } = tokens;
      this.#usage.set(assistantMessageID, { input, output, cacheRead: cache?.read, cacheWrite: cache?.write });
      for (const id of this.#usage.keys()) if (this.#usage.size > MOST_COUNTED) this.#usage.delete(id);
    }
    if (/^session\.execution\.(?:succeeded|failed|interrupted)$/.test(type)) await this.#idle(sessionID);
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

  /** Reports the answers since the last model call. */
  async #idle(id: string): Promise<void> {
    const session = this.#sessions.get(id);
    if (session?.on !== true || session.own === undefined) return;
    const { own } = session;
    const list = answeredList(own, listOf(await this.#context.session.context({ sessionID: id })));
    // An idle session keeps no list, because the next model call brings one.
    if (session.own === own) delete session.own;
    if (list !== undefined) void this.#guard.follow(this.#list(id, list).list);
  }

  #list(id: string, messages: readonly Opencode2Message[]): HarnessList<Opencode2Message> {
    const seen = this.#seen.get(id) ?? nothingSeen();
    this.#seen.set(id, seen);
    const { system, model, window } = this.#session(id);
    const usageOf = (message: string): KnownUsage | undefined => this.#usage.get(message);
    return opencode2List(id, messages, { system, ...defined({ model, window }), seen, usageOf });
  }

  #session(id: string): Opencode2Session {
    const known = this.#sessions.get(id);
    if (known !== undefined) return known;
    const session: Opencode2Session = { on: true };
    this.#sessions.set(id, session);
    return session;
  }
}

/**
 * Returns the agent's own tools. A failure becomes an answer, because an error would end the turn.
 */
function toolsOf(guard: LoopGuard): readonly Opencode2Tool[] {
  return Object.entries(VERBS).map(([verb, description]) => ({
    name: verb,
    description,
    input: { ...VERB_INPUT, additionalProperties: false },
    options: { codemode: false },
    execute: async (input, { sessionID: session, id: callId }) => {
      const content = await guard
        .verb({ session, verb: verb as Verb, ids: input.ids, callId })
        .catch((error: unknown) => `Error: ${messageOf(error)}`);
      return { content };
    },
  }));
}

/**
 * The Palimpsest plugin for OpenCode 2. It supplies the context of every model call, and OpenCode
 * keeps its whole history. `extension` is the URL of the built plugin. The sidecar's program is in
 * the same folder.
 */
export async function palimpsestForOpencode2(context: Opencode2Context, extension: string): Promise<Cleanup> {
  const { session, tool, permission, command, event } = context;
  const cwd = context.location?.directory ?? process.cwd();
  // OpenCode's server has no screen, but its log shows the warnings of its process.
  const notify = (message: string): void => process.emitWarning(message, 'PalimpsestWarning');
  const where = { extension, node: 'node', env: process.env, notify };
  const guard = startSidecar({ what: 'opencode', cwd, roots: [cwd] }, where);
  const loop = new Opencode2Loop(guard, context);
  /** Wraps a hook so that an error becomes a notice. */
  const quietly =
    <Event>(work: (event: Event) => Promise<void> | void) =>
    async (given: Event): Promise<void> => {
      try {
        await work(given);
      } catch (error) {
        notify(`Palimpsest: ${messageOf(error)}`);
      }
    };
  const ended = new AbortController();
  const listen = async (): Promise<void> => {
    for await (const one of event.subscribe({ signal: ended.signal })) await quietly(() => loop.event(one))(undefined);
  };

  await tool.transform((editor) => {
    for (const one of toolsOf(guard)) editor.add(one);
  });
  await command.transform((editor) =>
    editor.add({
      name: COMMAND,
      description: COMMAND_TEXT,
      execute: ({ sessionID, prompt }) => loop.command(sessionID, prompt.text ?? ''),
    }),
  );
  await session.hook(
    'context',
    quietly((draft) => loop.request(draft)),
  );
  await session.hook(
    'compaction',
    quietly((draft) => loop.side(draft)),
  );
  await session.hook(
    'generate',
    quietly((draft) => loop.side(draft)),
  );
  await tool.hook(
    'execute.before',
    quietly((call) => loop.before(call)),
  );
  await tool.hook(
    'execute.after',
    quietly((call) => loop.after(call)),
  );
  await permission?.hook(
    'evaluate',
    quietly((question) => loop.permit(question)),
  );
  void quietly(listen)(undefined);
  void quietly(() => loop.askWindows())(undefined);
  await guard.warmUp();
  return async () => {
    ended.abort();
    await guard.end();
  };
}
