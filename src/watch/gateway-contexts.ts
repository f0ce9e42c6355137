import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { type FolderWatch, watchPlain } from '../filesystem/tracking/watch-folder.js';
import { gatewayFolder } from '../gateway/gateway-log.js';
import { GatewayLogReader, type SentRequest } from '../gateway/read-log.js';
import { fitsSession, recordSent } from '../gateway/record-sent.js';
import type { SentSession } from '../gateway/request-facts.js';
import { AGENTS } from '../own-sessions/agent-homes.js';
import { parseJson, replaceFile, textOf } from '../process/owned-file.js';
import { messageOf } from '../values/thrown.js';
import type { Companion, Followed, FollowedSession, WatchHost } from './followed.js';
import { NoTranscriptError } from './watch-error.js';

/** Time limits for requests in the gateway's log, in milliseconds. */
interface GatewayTimes {
  /** Pause before another attempt to find a request's answer in a transcript. */
  readonly againMs: number;
  /**
   * Maximum wait for a request's answer to appear in the transcript. After it, the request is left
   * out. If there is no transcript at all, a session is made from the requests.
   */
  readonly giveUpMs: number;
  /** How long log files and ids of recorded requests are kept. Older requests are left out. */
  readonly keptMs: number;
}

const TIMES: GatewayTimes = { againMs: 2_000, giveUpMs: 600_000, keptMs: 7 * 86_400_000 };
/** How often old log files are removed, in milliseconds. */
const REMOVE_MS = 3_600_000;
/** Maximum number of requests that wait for their answers. Each keeps its body in memory. */
const MOST_WAITING = 200;

const doneSchema = z.object({ version: z.literal(1), done: z.record(z.string(), z.number()) });

/** Requests of Gemini CLI name no session. */
const isOfGemini = ({ wire, headers }: SentRequest): boolean =>
  wire === 'gemini' && /^GeminiCLI/i.test(headers['user-agent'] ?? '');

const isKnownAgent = (agent: string): boolean => (AGENTS as readonly string[]).includes(agent);

/** The sessions that were found to have no transcript in the current read of the log. */
type Absent = Map<string, NoTranscriptError>;

/** Facts about a request before it is recorded. */
interface Looked {
  /** Whether the request has waited the maximum time for a transcript. */
  readonly isOver: boolean;
  readonly absent: Absent;
}

interface GatewayContextsOptions {
  readonly followed: Followed;
  readonly host: WatchHost;
  readonly times: GatewayTimes;
}

/** Records the requests in the gateway's log as contexts of the sessions that sent them. */
class GatewayContexts {
  readonly #followed: Followed;
  readonly #host: WatchHost;
  readonly #times: GatewayTimes;
  readonly #path: string;
  readonly #reader: GatewayLogReader;
  /** When each request was recorded or left out, by its id. */
  readonly #done: Map<string, number>;
  readonly #waiting = new Map<string, SentRequest>();
  /** Until when each request waits. The time in the log is not used, because it may be wrong. */
  readonly #until = new Map<string, number>();
  #running: Promise<void> | undefined;
  #isChanged = false;
  #isClosed = false;
  #again: NodeJS.Timeout | undefined;
  #removeAt = 0;

  private constructor({ followed, host, times }: GatewayContextsOptions, done: Map<string, number>) {
    this.#followed = followed;
    this.#host = host;
    this.#times = times;
    this.#path = fileIn(host.dataDir);
    this.#reader = new GatewayLogReader(gatewayFolder(host.dataDir));
    this.#done = done;
  }

  static async open(options: GatewayContextsOptions): Promise<GatewayContexts> {
    const text = await textOf(fileIn(options.host.dataDir));
    const done = text === undefined ? {} : (parseJson(text, doneSchema)?.done ?? {});
    return new GatewayContexts(options, new Map(Object.entries(done)));
  }

  /** Reads the log, because it may have grown. */
  changed(): void {
    this.#isChanged = true;
    clearTimeout(this.#again);
    if (this.#isClosed || this.#running !== undefined) return;
    this.#running = this.#run()
      .catch((error: unknown) => this.#host.onNotice(`The gateway's log was not read: ${messageOf(error)}`))
      .finally(() => {
        this.#running = undefined;
        if (this.#isChanged) this.changed();
        else if (this.#waiting.size > 0 && !this.#isClosed)
          this.#again = setTimeout(() => this.changed(), this.#times.againMs).unref();
      });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#again);
    await this.#running;
  }

  async #run(): Promise<void> {
    this.#isChanged = false;
    for await (const request of this.#reader.more()) {
      const isNew = !this.#done.has(request.id) && Date.now() - request.at < this.#times.keptMs;
      if (isNew) {
        this.#waiting.set(request.id, request);
        this.#until.set(request.id, Math.min(request.at, Date.now()) + this.#times.giveUpMs);
      }
      // Leaves out the oldest request, because its answer had the most time to appear in a
      // transcript.
      const [oldest] = this.#waiting.values();
      if (this.#waiting.size > MOST_WAITING && oldest !== undefined) this.#finish(oldest);
    }
    if (Date.now() >= this.#removeAt) {
      this.#removeAt = Date.now() + REMOVE_MS;
      await this.#reader.removeOld(Date.now() - this.#times.keptMs);
    }
    if (this.#waiting.size === 0) return;
    this.#host.stayAwake();
    const absent: Absent = new Map();
    for (const request of [...this.#waiting.values()]) {
      if (this.#isClosed) return;
      const isOver = Date.now() > (this.#until.get(request.id) ?? 0);
      const missing = await this.#record(request, { isOver, absent });
      if (missing !== undefined && isOver) this.#host.onNotice(`The request ${request.id} has no context: ${missing}`);
      if (missing === undefined || isOver) this.#finish(request);
    }
    await this.#save();
  }

  /** Records a request or leaves it out. If the request has to wait, returns the reason. */
  async #record(request: SentRequest, { isOver, absent }: Looked): Promise<string | undefined> {
    const { session, side, answer, steer } = request;
    if (session === undefined || side !== undefined || answer === undefined) return undefined;
    // The gateway itself records the sessions that it steers.
    if (steer?.arm === 'steered') return undefined;
    const { agent, native, subagent } = session;
    try {
      if (isOfGemini(request)) return await this.#recordByContent('gemini-cli', request);
      if (!isKnownAgent(agent)) return await this.#recordOfWire(native, request);
      const followed = await this.#session(session, absent);
      if (followed instanceof NoTranscriptError) {
        // An agent may keep no transcript, or keep it on another machine. A session that began
        // without its transcript continues without it, because requests and transcript have
        // different texts and call ids.
        const isWire = subagent === undefined && (isOver || followed.why === 'left');
        return isWire ? await this.#recordOfWire(native, request) : followed.message;
      }
      const { outcome } = await recordSent(followed.session, request);
      return outcome === 'unmatched' ? 'its answer is not in the transcript' : undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Looks for a session's transcript once per read of the log, because that can take seconds. */
  async #session(
    { agent, native, subagent }: SentSession,
    absent: Absent,
  ): Promise<FollowedSession | NoTranscriptError> {
    const key = `${agent} ${native} ${subagent ?? ''}`;
    const known = absent.get(key);
    if (known !== undefined) return known;
    const parent = subagent === undefined ? {} : { parent: native };
    return this.#followed.session(agent, subagent ?? native, parent).catch((error: unknown) => {
      if (!(error instanceof NoTranscriptError)) throw error;
      absent.set(key, error);
      return error;
    });
  }

  /** Finds the session by content, because the request names none. */
  async #recordByContent(agent: string, request: SentRequest): Promise<string | undefined> {
    const fitting = (await this.#followed.running(agent)).filter(({ session }) => fitsSession(session, request));
    const [found] = fitting;
    if (found === undefined) return 'its answer is in no transcript';
    if (fitting.length > 1) return `${fitting.length} sessions have its answer`;
    const { outcome } = await recordSent(found.session, request);
    return outcome === 'unmatched' ? 'its answer is not in the transcript' : undefined;
  }

  /**
   * Records a request of a client without a transcript. Requests are recorded in the order in which
   * they arrived.
   */
  async #recordOfWire(native: string, request: SentRequest): Promise<string | undefined> {
    if (request.answer === undefined || request.answer.status >= 400) return undefined;
    await this.#host.wire.record(native, request);
    return undefined;
  }

  #finish({ id, at }: SentRequest): void {
    this.#waiting.delete(id);
    this.#until.delete(id);
    this.#done.set(id, Math.min(at, Date.now()));
  }

  async #save(): Promise<void> {
    for (const [id, at] of this.#done) if (Date.now() - at > this.#times.keptMs) this.#done.delete(id);
    await replaceFile(this.#path, `${JSON.stringify({ version: 1, done: Object.fromEntries(this.#done) })}\n`);
  }
}

const fileIn = (dataDir: string): string => join(dataDir, 'watch-gateway.json');

/** Returns the companion that follows the gateway's log, with the given time limits. */
export const gatewayCompanionWith =
  (times: Partial<GatewayTimes>): Companion =>
  async (followed, host) => {
    const contexts = await GatewayContexts.open({ followed, host, times: { ...TIMES, ...times } });
    const folder = gatewayFolder(host.dataDir);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const watch: FolderWatch = await watchPlain(folder, () => contexts.changed());
    contexts.changed();
    return {
      close: async () => {
        await watch.close();
        await contexts.close();
      },
    };
  };

/** Follows the gateway's log in the process of `palimpsest watch`. */
export const gatewayCompanion = gatewayCompanionWith({});
