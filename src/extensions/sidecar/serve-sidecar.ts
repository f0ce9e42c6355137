import type { Readable, Writable } from 'node:stream';
import { DEFAULT_LOOP_LAYOUT } from '../../assembly/assembly-record.js';
import type { ContextClient } from '../../client/session/context-client.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import type { Environment } from '../../host/environment.js';
import { isFollowed } from '../../host/followed-session.js';
import { type OpenClient, openClient } from '../../host/open-client.js';
import { readSettings, type Settings } from '../../host/settings.js';
import type { SessionId } from '../../objects/ids.js';
import { clientFolder } from '../../process/data-folder.js';
import { showsShortIds } from '../../session/object-reference.js';
import { DEFAULT_POLICY } from '../../session/step-policy.js';
import { defined } from '../../values/defined.js';
import { messageOf } from '../../values/thrown.js';
import type { LoopContext } from '../loop/loop-context.js';
import { LoopSession } from '../loop/loop-session.js';
import {
  type Beginning,
  type CallName,
  type Calls,
  linesOf,
  type SentList,
  type SidecarAnswer,
  type SidecarRequest,
  withoutRepeats,
} from './protocol.js';

/** Thrown if a list continues a list that this process does not have. */
class ResendError extends Error {
  override readonly name = 'ResendError';
}

interface Followed {
  readonly loop: LoopSession;
  number: number;
  messages: readonly ReportedMessage[];
  /** The texts of the last context that was answered. */
  texts: readonly string[];
}

type Handlers = { readonly [N in CallName]: (params: Calls[N]['params']) => Promise<Calls[N]['result']> };

function openSidecarClient(beginning: Beginning, settings: Settings): Promise<OpenClient> {
  const { what, cwd, roots, strict = false, layout = DEFAULT_LOOP_LAYOUT } = beginning;
  const shortIds = showsShortIds(beginning);
  const retention = beginning.retention ?? (layout === 'epoch' ? 'use' : 'window');
  const policy = { ...DEFAULT_POLICY, retention };
  return openClient(settings, { cwd, roots, strict, shortIds, policy, what: `palimpsest sidecar of ${what}` });
}

/** The sessions of one harness process, and the last list of each. */
class SidecarSessions {
  readonly #client: ContextClient;
  readonly #beginning: Beginning;
  readonly #dataDir: string;
  readonly #followed = new Map<string, Followed>();

  constructor(client: ContextClient, beginning: Beginning, dataDir: string) {
    this.#client = client;
    this.#beginning = beginning;
    this.#dataDir = dataDir;
  }

  readonly handlers: Handlers = {
    ready: async () => {
      await this.#client.ready();
      return null;
    },
    context: async (list) => {
      const { followed, history } = this.#take(list);
      if (list.tidy === true) followed.loop.tidy();
      if (list.forgotten === true) followed.texts = [];
      return (await followed.loop.context(history)) ?? null;
    },
    follow: async (list) => {
      const { followed, history } = this.#take(list);
      await followed.loop.follow(history);
      return null;
    },
    handed: async ({ session, ...handed }) => {
      const record = await this.#loop(session).handed(handed);
      return record === undefined ? { kept: false } : { kept: true, at: { step: record.step, turn: record.turn } };
    },
    sent: async ({ session, ...request }) => {
      return { kept: (await this.#followed.get(session)?.loop.sent(request)) === true };
    },
    verb: async ({ session, verb, ids, callId }) => {
      const { text, ok } = await this.#loop(session).verb(verb, ids, callId);
      return { text, ok };
    },
    announce: async ({ session }) => {
      this.#followed.get(session)?.loop.announce();
      return null;
    },
    expect: async ({ session, callId }) => {
      this.#followed.get(session)?.loop.expect(callId);
      return null;
    },
    beforeChange: async ({ session, ...call }) => (await this.#followed.get(session)?.loop.beforeChange(call)) ?? null,
    event: async ({ session, event }) => {
      await this.#loop(session).event(event);
      return null;
    },
    close: async ({ session }) => {
      await this.#followed.get(session)?.loop.close();
      this.#followed.delete(session);
      return null;
    },
  };

  /**
   * Returns an answer in the form in which it is written to the pipe. Called just before writing,
   * because the form depends on the previous answer.
   */
  written({ call, params }: SidecarRequest, answer: SidecarAnswer): SidecarAnswer {
    if (call !== 'context' || !('result' in answer) || answer.result === null) return answer;
    const followed = this.#followedBy(params.session, undefined);
    const { sent, texts } = withoutRepeats(answer.result as LoopContext, followed.texts);
    followed.texts = texts;
    return { ...answer, result: sent };
  }

  #loop(session: string): LoopSession {
    return this.#followedBy(session, undefined).loop;
  }

  #followedBy(session: string, parent: string | undefined): Followed {
    const known = this.#followed.get(session);
    if (known !== undefined) return known;
    const { what, strict = false, layout } = this.#beginning;
    const shortIds = showsShortIds(this.#beginning);
    // If `palimpsest watch` follows the session, it must give way to a steering gateway.
    const takesOver = what === 'gateway' ? (id: SessionId) => isFollowed(this.#dataDir, id) : undefined;
    // A gateway's client gets the guide with our tools, or a notice if it does not have them.
    const guided = what !== 'gateway';
    const options = { delivered: what, strict, shortIds, guided, ...defined({ layout, takesOver }) };
    const loop = new LoopSession(this.#client, { ...options, id: session, ...defined({ parent }) });
    const followed = { loop, number: 0, messages: [], texts: [] };
    this.#followed.set(session, followed);
    return followed;
  }

  /** Returns the whole list. It is stored first, so that a failed request can be repeated. */
  #take({ session, parent, after, number, prefix, messages, compacted = false, ...others }: SentList) {
    const { system, strict, shortIds, ownList, model, window } = others;
    const followed = this.#followedBy(session, parent);
    if (prefix > 0 && (after !== followed.number || prefix > followed.messages.length)) {
      throw new ResendError(`the list ${after} of session ${session} is not known here`);
    }
    followed.messages = [...followed.messages.slice(0, prefix), ...messages];
    followed.number = number;
    return {
      followed,
      history: {
        messages: followed.messages,
        compacted,
        ...defined({ system, strict, shortIds, ownList, model, window }),
      },
    };
  }
}

async function answerTo(sessions: SidecarSessions, { id, call, params }: SidecarRequest): Promise<SidecarAnswer> {
  try {
    const handle = sessions.handlers[call] as (params: unknown) => Promise<unknown>;
    return { id, result: await handle(params) };
  } catch (error) {
    return {
      id,
      error: { message: messageOf(error), ...(error instanceof ResendError ? { resend: true as const } : {}) },
    };
  }
}

/**
 * Serves one harness over two pipes, with one JSON line per message, until the input ends. It then
 * pauses the sessions and delivers what it can. The first line describes the harness.
 */
export async function serveSidecar(input: Readable, output: Writable, env: Environment): Promise<void> {
  const lines = linesOf(input);
  const first = await lines.next();
  if (first.done === true) return;
  const beginning = JSON.parse(first.value) as Beginning;
  const settings = readSettings(env);
  const { client, close } = await openSidecarClient(beginning, settings);
  const { nodeUrl, node } = settings;
  const { dataDir } = node;
  const sessions = new SidecarSessions(client, beginning, clientFolder(dataDir, nodeUrl));
  const under = new Set<Promise<void>>();
  for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
    const request = JSON.parse(line.value) as SidecarRequest;
    const work = answerTo(sessions, request).then((answer) => {
      output.write(`${JSON.stringify(sessions.written(request, answer))}\n`);
    });
    under.add(work);
    void work.finally(() => under.delete(work));
  }
  await Promise.allSettled(under);
  await close();
}
