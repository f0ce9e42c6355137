import { spawn } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';
import { OWN_GROUP, signalGroup } from '../process/process-group.js';
import { inShell } from '../process/program-files.js';

/** Options of a command to run. */
export interface CommandOptions {
  readonly command: string;
  readonly cwd: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /**
   * Maximum bytes of output that are kept, from its start and its end. Other bytes are only
   * counted.
   */
  readonly mostBytes: number;
}

/** How a command ended, and its output to stdout and stderr in order of arrival. */
export interface CommandEnd {
  readonly output: string;
  readonly exitCode: number | null;
  readonly killedBy: NodeJS.Signals | null;
  readonly why: 'exited' | 'timeout' | 'cancelled';
}

/** Decodes bytes and leaves out an incomplete last character. */
const wholeCharacters = (bytes: Buffer): string => new StringDecoder('utf8').write(bytes);

/**
 * Returns the index of the first byte that begins a character. At most three bytes before it belong
 * to another character.
 */
const characterBegin = (bytes: Buffer): number =>
  Math.max(
    0,
    bytes.subarray(0, 4).findIndex((byte) => (byte & 0xc0) !== 0x80),
  );

/** Keeps the start and the end of a stream of bytes. */
class Capture {
  readonly #most: number;
  #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #dropped = 0;

  constructor(most: number) {
    this.#most = Math.floor(most / 2);
  }

  push(chunk: Buffer): void {
    const free = this.#most - this.#headBytes;
    if (free > 0) {
      const part = chunk.subarray(0, free);
      this.#head.push(part);
      this.#headBytes += part.length;
    }
    const rest = free > 0 ? chunk.subarray(free) : chunk;
    if (rest.length === 0) return;
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    for (
      let first = this.#tail[0];
      first !== undefined && this.#tailBytes - first.length >= this.#most;
      first = this.#tail[0]
    ) {
      this.#tail.shift();
      this.#tailBytes -= first.length;
      this.#dropped += first.length;
    }
  }

  end(): string {
    const head = Buffer.concat(this.#head);
    const tail = Buffer.concat(this.#tail);
    if (this.#dropped === 0) return Buffer.concat([head, tail]).toString('utf8');
    const end = tail.subarray(characterBegin(tail)).toString('utf8');
    return `${wholeCharacters(head)}\n[... ${this.#dropped} bytes of output dropped ...]\n${end}`;
  }
}

const GRACE_MS = 2_000;
const DRAIN_MS = 300;

/**
 * Runs a shell command in its own process group. At the time limit or a cancellation, ends the
 * whole group, first with SIGTERM. After a normal exit of the command, its background processes
 * continue. Their later output is not awaited.
 */
export function runCommand(options: CommandOptions): Promise<CommandEnd> {
  const { command, cwd, timeoutMs, signal, mostBytes } = options;
  return new Promise((resolve, reject) => {
    const shell = inShell(command);
    const child = spawn(shell.command, shell.args, {
      ...shell.options,
      ...OWN_GROUP,
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const capture = new Capture(mostBytes);
    let why: CommandEnd['why'] = 'exited';
    let grace: NodeJS.Timeout | undefined;
    let drain: NodeJS.Timeout | undefined;

    const kill = (by: NodeJS.Signals): void => {
      if (child.pid !== undefined) signalGroup(child.pid, by);
    };
    const stop = (reason: 'timeout' | 'cancelled'): void => {
      if (why !== 'exited') return;
      why = reason;
      kill('SIGTERM');
      grace = setTimeout(() => kill('SIGKILL'), GRACE_MS);
    };
    const timer = setTimeout(() => stop('timeout'), timeoutMs);
    const onAbort = (): void => stop('cancelled');
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();

    const settle = (): void => {
      for (const pending of [timer, grace, drain]) clearTimeout(pending);
      signal.removeEventListener('abort', onAbort);
    };
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => capture.push(chunk));
    child.once('error', (error) => {
      settle();
      reject(error);
    });
    child.once('exit', () => {
      // A background process may keep the pipes open forever.
      drain = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, DRAIN_MS);
      if (why !== 'exited') kill('SIGKILL');
    });
    child.once('close', (exitCode, killedBy) => {
      settle();
      resolve({ output: capture.end(), exitCode, killedBy, why });
    });
  });
}
