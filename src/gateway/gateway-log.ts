import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { NO_MASK, type RecordMask } from '../client/record-mask.js';
import type { Json } from '../objects/canonical-json.js';
import { identifySelf } from '../process/process-identity.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import type { AnswerFacts } from './answer-facts.js';
import { LOG_FORMAT, type LoggedAnswer, type LoggedRequest, type LoggedText } from './log-entries.js';
import { LogFile } from './log-file.js';
import { LoggedBody } from './masked-spans.js';

/** Returns the folder of the logs inside a data folder. */
export const gatewayFolder = (dataDir: string): string => join(dataDir, 'gateway');

/** The ending of log files' names. */
export const LOG_ENDING = '.log';

/** Size in bytes from which the log continues in a new file. */
const LARGEST_FILE = 128 * 1_048_576;
/** Maximum wait of a request for its log entry. A disk that hangs must not stop the agent. */
const LONGEST_WAIT_MS = 1_000;

/** A logged request. The caller must log its end once. */
export interface OpenRequest {
  /**
   * Logs the end. Omit `facts` if there was no answer. Pass the content of the answer as `kept` if
   * a later request may refer to it instead of repeating it. Never rejects.
   */
  end(facts: AnswerFacts | undefined, kept?: Buffer): Promise<void>;
}

/** Receives reports about entries that could not be written. */
export interface LogTroubles {
  /** Called for each request that was forwarded without an entry, with the reason. */
  failed(reason: string): void;
}

/** A request to log, before its bodies are cut into spans. */
export type NewRequest = Omit<LoggedRequest, 'kind' | 'spans' | 'bytes' | 'own'> & {
  readonly body: Buffer;
  /** See `LoggedRequest.own`. */
  readonly own?: Buffer;
};

/**
 * The append-only log of one gateway process. Its methods never reject. If a request cannot be
 * logged, the gateway still forwards it, and the log lacks it.
 */
export class GatewayLog {
  readonly #folder: string;
  readonly #troubles: LogTroubles;
  readonly #largest: number;
  /** Masks the secrets in everything that is written. */
  readonly mask: RecordMask;
  #file: Promise<LogFile> | undefined;
  /** The file of the last request. */
  #latest: LogFile | undefined;
  #number = 0;
  readonly #closing = new Set<Promise<void>>();
  /** Bodies that were prepared before their requests began. */
  readonly #ready = new WeakMap<Buffer, LoggedBody>();

  constructor(
    dataDir: string,
    troubles: LogTroubles,
    { largestFile = LARGEST_FILE, mask = NO_MASK }: { readonly largestFile?: number; readonly mask?: RecordMask } = {},
  ) {
    this.#folder = gatewayFolder(dataDir);
    this.#troubles = troubles;
    this.#largest = largestFile;
    this.mask = mask;
  }

  /** Hashes and masks a body, so that the `begin` of its request has less to do. */
  prepare(body: Buffer): void {
    this.#ready.set(body, this.#prepared(body));
  }

  /**
   * Logs a request before it is forwarded. Returns undefined if that failed or took too long, and
   * then reports the failure. Never rejects.
   */
  async begin({ body, own, ...request }: NewRequest): Promise<OpenRequest | undefined> {
    const sent = this.#ready.get(body) ?? this.#prepared(body);
    const bodies = { sent, own: own === undefined ? undefined : this.#prepared(own) };
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`the disk took longer than ${LONGEST_WAIT_MS} ms`)), LONGEST_WAIT_MS);
    });
    const logged = this.#begun(request, bodies);
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

  /** Masks the spans that the log lacks, so that the write itself only waits for the disk. */
  #prepared(body: Buffer): LoggedBody {
    const kept = new LoggedBody(this.mask, body);
    if (this.#latest === undefined) for (const i of kept.keys.keys()) kept.kept(i);
    else this.#latest.prepare(kept);
    return kept;
  }

  async #begun(
    request: Omit<NewRequest, 'body' | 'own'>,
    { sent, own }: { readonly sent: LoggedBody; readonly own: LoggedBody | undefined },
  ): Promise<OpenRequest> {
    const file = await this.#taken();
    let number: number;
    try {
      const { headers, path } = request;
      const masked = Object.entries(headers).map(([name, value]) => [name, this.mask.text(value)]);
      const head = { ...request, path: this.mask.text(path), headers: Object.fromEntries(masked) };
      const entry = (text: LoggedText, ownText: LoggedText | undefined): LoggedRequest => ({
        kind: 'request',
        ...head,
        ...text,
        ...defined({ own: ownText }),
      });
      number = await file.appendBody(sent, entry, own);
    } catch (error) {
      await this.#left(file);
      throw error;
    }
    return {
      end: async (facts, kept) => {
        const stored = facts === undefined ? undefined : this.#storedFacts(facts);
        const entry: LoggedAnswer = { kind: 'answer', request: number, at: Date.now(), ...defined({ facts: stored }) };
        const logged =
          kept === undefined
            ? file.append(entry)
            : file.appendBody(new LoggedBody(this.mask, kept), (text) => ({ ...entry, kept: text }));
        await logged.catch((error: unknown) => this.#troubles.failed(messageOf(error)));
        await this.#left(file);
      },
    };
  }

  /**
   * Masks the provider's reports. The other facts need no mask: they are ids, counts, hashes of
   * masked texts, and cleaned errors.
   */
  #storedFacts({ verdicts, ...facts }: AnswerFacts): AnswerFacts {
    if (verdicts === undefined) return facts;
    return { ...facts, verdicts: this.mask.value(verdicts as Json) as NonNullable<AnswerFacts['verdicts']> };
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

  /** Returns the file for a new request, and counts the request as open in it. */
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
      this.#latest = file;
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
