import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { readJsonFiles } from '../process/owned-file.js';
import { identifySelf, isAlive, processIdentitySchema } from '../process/process-identity.js';

const reportSchema = processIdentitySchema.extend({
  /** Number of model calls that were forwarded but could not be logged. */
  missed: z.int().nonnegative(),
  /** Number of WebSockets for model calls that were forwarded unread. */
  passed: z.int().nonnegative().default(0),
  /** Time of the last call that was not logged, or of the last WebSocket, with the reason. */
  at: z.iso.datetime(),
  reason: z.string(),
});

/** A gateway's report on model calls that it forwarded without logging them. */
export interface GatewayTrouble extends Omit<z.infer<typeof reportSchema>, 'started'> {
  readonly isRunning: boolean;
}

/** How long an ended gateway's report is shown after the last call that it did not log. */
const SHOWN_AFTER_END_MS = 86_400_000;

/** Size of a report file. It is overwritten in place, which works even on a full disk. */
const FILE_BYTES = 1_024;
const LONGEST_REASON = 400;

const reportsFolder = (dataDir: string): string => join(dataDir, 'gateway');

/**
 * Returns the reports of a data folder's gateways that missed a call or forwarded a WebSocket,
 * newest first. Reports of ended processes are limited to the last day. Read-only.
 */
export async function gatewayTroubles(dataDir: string, now = Date.now()): Promise<readonly GatewayTrouble[]> {
  const files = (await readJsonFiles(reportsFolder(dataDir), reportSchema)).filter(
    ({ missed, passed }) => missed + passed > 0,
  );
  const troubles = await Promise.all(
    files.map(async ({ pid, started, missed, passed, at, reason }) => ({
      pid,
      missed,
      passed,
      at,
      reason,
      isRunning: await isAlive({ pid, started }),
    })),
  );
  const isShown = ({ isRunning, at }: GatewayTrouble): boolean =>
    isRunning || now - Date.parse(at) < SHOWN_AFTER_END_MS;
  return troubles.filter(isShown).toSorted((a, b) => (a.at < b.at ? 1 : -1));
}

/**
 * The file in which a gateway counts the model calls that it could not log. It is created at the
 * start and overwritten in place, so a full disk cannot prevent the report.
 */
export class GatewayReportFile {
  readonly #path: string;
  readonly #file: Promise<FileHandle | undefined>;
  #missed = 0;
  #passed = 0;
  #reason = '';
  #queue: Promise<void> = Promise.resolve();

  constructor(dataDir: string) {
    this.#path = join(reportsFolder(dataDir), `${process.pid}-${randomBytes(4).toString('hex')}.json`);
    this.#file = this.#create(dataDir);
  }

  /** Counts a call that could not be logged. Never rejects. */
  missed(reason: string): Promise<void> {
    this.#missed += 1;
    this.#reason = reason;
    return this.#rewritten();
  }

  /** Counts a WebSocket for model calls that is forwarded unread. Never rejects. */
  passed(): Promise<void> {
    this.#passed += 1;
    return this.#rewritten();
  }

  /** Closes the file. Removes it unless it reports a call or a WebSocket. Idempotent. */
  async close(): Promise<void> {
    await this.#queue;
    await (await this.#file)?.close().catch(() => undefined);
    if (this.#missed + this.#passed === 0) await rm(this.#path, { force: true });
  }

  #rewritten(): Promise<void> {
    this.#queue = this.#queue.then(async () => this.#write(await this.#file)).catch(() => undefined);
    return this.#queue;
  }

  async #create(dataDir: string): Promise<FileHandle | undefined> {
    try {
      await mkdir(reportsFolder(dataDir), { recursive: true, mode: 0o700 });
      const file = await open(this.#path, 'wx', 0o600);
      await this.#write(file);
      return file;
    } catch {
      // The gateway works without a report file, and prints its failures itself.
      return undefined;
    }
  }

  async #write(file: FileHandle | undefined): Promise<void> {
    const report = {
      ...(await identifySelf()),
      missed: this.#missed,
      passed: this.#passed,
      at: new Date().toISOString(),
      reason: this.#reason.slice(0, LONGEST_REASON),
    };
    const bytes = Buffer.alloc(FILE_BYTES, ' ');
    const text = Buffer.from(JSON.stringify(report));
    if (text.length <= FILE_BYTES) text.copy(bytes);
    else Buffer.from(JSON.stringify({ ...report, reason: 'the reason is too long to keep' })).copy(bytes);
    await file?.write(bytes, 0, bytes.length, 0);
  }
}
