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

/** The times of requests, milliseconds. */
interface GatewayTimes {
  /** Pause before a retry of a request whose answer is in no transcript yet. */
  readonly againMs: number;
  /**
   * Maximum wait for a request's answer in its transcript. Then the request is left out. If there
   * is no transcript, a session is made from the requests.
   */
  readonly giveUpMs: number;
  /** How long logs and the ids of recorded requests are kept. Older requests are left out. */
  readonly keptMs: number;
}

const TIMES: GatewayTimes = { againMs: 2_000, giveUpMs: 600_000, keptMs: 7 * 86_400_000 };
/** How often old logs are removed, milliseconds. */
const REMOVE_MS = 3_600_000;
/** Maximum number of requests that wait for their answers. Each holds its body. */
const MOST_WAITING = 200;

const doneSchema = z.object({ version: z.literal(1), done: z.record(z.string(), z.number()) });

/** Gemini CLI names no session in its requests. */
const isOfGemini = ({ wire, headers }: SentRequest): boolean =>
  wire === 'gemini' && /^GeminiCLI/i.test(headers['user-agent'] ?? '');

const isKnownAgent = (agent: string): boolean => (AGENTS as readonly string[]).includes(agent);

/** The sessions without a transcript in one reading of the log. */
type Absent = Map<string, NoTranscriptError>;

/** Facts about a request before it is recorded. */
interface Looked {
  /** Whether it waited long enough for a transcript. */
  readonly isOver: boolean;
  readonly absent: Absent;
}

interface GatewayContextsOptions {
  readonly followed: Followed;
  readonly host: WatchHost;
  readonly times: GatewayTimes;
}

/** Records the requests of the gateway's log as contexts of the sessions that sent them. */
class GatewayContexts {
  readonly #followed: Followed;
  readonly #host: WatchHost;
  readonly #times: GatewayTimes;
  readonly #path: string;
  readonly #reader: GatewayLogReader;
  /** Times of finished requests, by their ids. */
  readonly #done: Map<string, number>;
  readonly #waiting = new Map<string, SentRequest>();
  /** Until when each waits. The time in an entry may be wrong, such as one in the future. */
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

  /** Reads the log now, because it may have grown. */
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
      // Drops the oldest requests, whose sessions have had the most time.
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

  /**
   * Records a request or discards it. Returns the reason if it has to wait; otherwise undefined.
   */
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
        // An agent may run with its history off, or on a machine of its own. A session that began
        // without a transcript goes on so, because the two have different texts and ids of calls.
        const isWire = subagent === undefined && (isOver || followed.why === 'left');
        return isWire ? await this.#recordOfWire(native, request) : followed.message;
      }
      const { outcome } = await recordSent(followed.session, request);
      return outcome === 'unmatched' ? 'its answer is not in the transcript' : undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Finds a session's transcript once in each reading of the log, because that takes seconds. */
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

  /** Finds the session by the content of its transcript, because the request names none. */
  async #recordByContent(agent: string, request: SentRequest): Promise<string | undefined> {
    const fitting = (await this.#followed.running(agent)).filter(({ session }) => fitsSession(session, request));
    const [found] = fitting;
    if (found === undefined) return 'its answer is in no transcript';
    if (fitting.length > 1) return `${fitting.length} sessions have its answer`;
    const { outcome } = await recordSent(found.session, request);
    return outcome === 'unmatched' ? 'its answer is not in the transcript' : undefined;
  }

  /** Records a request of a client without a transcript, in the order in which it arrived. */
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

/** Returns the companion that follows the gateway's log, with these times. */
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
