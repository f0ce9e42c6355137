import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { identifySelf } from '../process/process-identity.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import type { AnswerFacts } from './answer-facts.js';
import { bodySpans } from './body-spans.js';
import { LOG_FORMAT, type LoggedAnswer, type LoggedRequest } from './log-entries.js';
import { LogFile } from './log-file.js';

/** Folder of the logs inside a data folder. */
export const gatewayFolder = (dataDir: string): string => join(dataDir, 'gateway');

/** The end of the names of log files. */
export const LOG_ENDING = '.log';

/** Above this size, in bytes, the log continues in a new file. */
const LARGEST_FILE = 128 * 1_048_576;
/** A request waits this long for its entry. A disk that hangs must not stop the agent. */
const LONGEST_WAIT_MS = 1_000;

/** A logged request. The caller logs its end once. */
export interface OpenRequest {
  /**
   * Logs the end. Omit `facts` if there was no answer. `kept` is the content of the answer, if a
   * later request may refer to it instead of repeating it. Never rejects.
   */
  end(facts: AnswerFacts | undefined, kept?: Buffer): Promise<void>;
}

/** Reports on entries that could not be written. */
export interface LogTroubles {
  /** Called for each request that was forwarded without an entry, with the reason. */
  failed(reason: string): void;
}

/** A request without its spans, as the proxy knows it. */
export type NewRequest = Omit<LoggedRequest, 'kind' | 'spans' | 'bytes'> & { readonly body: Buffer };

/**
 * The append-only log of one gateway process. Its methods never reject. If a request cannot be
 * logged, the gateway still forwards it, and the record lacks it.
 */
export class GatewayLog {
  readonly #folder: string;
  readonly #troubles: LogTroubles;
  readonly #largest: number;
  #file: Promise<LogFile> | undefined;
  #number = 0;
  readonly #closing = new Set<Promise<void>>();

  constructor(
    dataDir: string,
    troubles: LogTroubles,
    { largestFile = LARGEST_FILE }: { readonly largestFile?: number } = {},
  ) {
    this.#folder = gatewayFolder(dataDir);
    this.#troubles = troubles;
    this.#largest = largestFile;
  }

  /**
   * Logs a request before it is forwarded. Returns undefined if that failed or took too long; the
   * trouble is then reported. Never rejects.
   */
  async begin({ body, ...request }: NewRequest): Promise<OpenRequest | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`the disk took longer than ${LONGEST_WAIT_MS} ms`)), LONGEST_WAIT_MS);
    });
    const logged = this.#begun(request, body);
    logged.catch(() => undefined);
    try {
      return await Promise.race([logged, late]);
    } catch (error) {
      this.#troubles.failed(messageOf(error));
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  async #begun(request: Omit<NewRequest, 'body'>, body: Buffer): Promise<OpenRequest> {
    const file = await this.#taken();
    let number: number;
    try {
      number = await file.appendSpans(bodySpans(body), (spans) => ({
        kind: 'request',
        ...request,
        spans,
        bytes: body.length,
      }));
    } catch (error) {
      await this.#left(file);
      throw error;
    }
    return {
      end: async (facts, kept) => {
        const entry: LoggedAnswer = { kind: 'answer', request: number, at: Date.now(), ...defined({ facts }) };
        const logged =
          kept === undefined
            ? file.append(entry)
            : file.appendSpans(bodySpans(kept), (spans) => ({ ...entry, kept: { spans, bytes: kept.length } }));
        await logged.catch((error: unknown) => this.#troubles.failed(messageOf(error)));
        await this.#left(file);
      },
    };
  }

  /** Closes all files. Entries that are being written are finished first. */
  async close(): Promise<void> {
    const file = await this.#file?.catch(() => undefined);
    this.#file = undefined;
    await Promise.all([file?.close(), ...this.#closing]);
  }

  async #left(file: LogFile): Promise<void> {
    file.open -= 1;
    const current = await this.#file?.catch(() => undefined);
    if (file.open > 0 || file === current) return;
    const closing = file.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Returns the file for a new request and counts the request as open there. */
  #taken(): Promise<LogFile> {
    const before: Promise<LogFile | undefined> = this.#file?.catch(() => undefined) ?? Promise.resolve(undefined);
    this.#file = before.then(async (known) => {
      if (known !== undefined && !known.isBroken && known.size < this.#largest) return known;
      const next = await this.#create();
      if (known?.open === 0) await known.close();
      return next;
    });
    return this.#file.then((file) => {
      file.open += 1;
      return file;
    });
  }

  async #create(): Promise<LogFile> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    this.#number += 1;
    const name = [String(Date.now()).padStart(14, '0'), process.pid, this.#number, randomBytes(3).toString('hex')];
    const file = await LogFile.create(join(this.#folder, `${name.join('-')}${LOG_ENDING}`), Date.now);
    const { pid, started } = await identifySelf();
    await file.append({ kind: 'head', format: LOG_FORMAT, pid, started });
    return file;
  }
}
