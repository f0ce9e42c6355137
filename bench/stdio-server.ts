import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';

/** The command that starts a server. */
export interface Launch {
  readonly args: readonly string[];
  readonly cwd: string;
}

/** An answer of a server, with the length of its line. */
export interface Answer {
  readonly result: Readonly<Record<string, unknown>>;
  readonly bytes: number;
}

/** Returns the id of the call object of one of our answers. */
export function callOf({ result }: Answer): string | undefined {
  return (result._meta as { readonly palimpsest?: { readonly call?: string } } | undefined)?.palimpsest?.call;
}

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

const NEWLINE = 10;
const MEBIBYTE = 1_048_576;

/** Returns the resident memory of a process in MiB; undefined without /proc. */
export function residentMiB(pid: number): number | undefined {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? undefined : (Number(kilobytes) * 1_024) / MEBIBYTE;
  } catch {
    return undefined;
  }
}

/**
 * An MCP server as a child process. Sends plain JSON-RPC lines, because a client library would
 * distort the measurement. A request is timed from its write to the parsed answer. The caller
 * closes the server.
 */
export class StdioServer {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #waiting = new Map<number, Waiting>();
  readonly #exited: Promise<unknown>;
  #pieces: Buffer[] = [];
  #lastId = 0;
  #complaints = '';

  constructor({ args, cwd }: Launch) {
    this.#process = spawn(process.execPath, args, { cwd, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#exited = once(this.#process, 'exit');
    this.#process.stdout.on('data', (data: Buffer) => this.#take(data));
    this.#process.stderr.on('data', (data: Buffer) => {
      this.#complaints = `${this.#complaints}${data.toString('utf8')}`.slice(-2_000);
    });
    this.#process.stdin.on('error', () => undefined);
    this.#process.on('exit', (code) => this.#failAll(`the server ended with ${String(code)}: ${this.#complaints}`));
  }

  get pid(): number {
    return this.#process.pid ?? -1;
  }

  /** Sends a request. Rejects with the server's error message. */
  request(method: string, params: Readonly<Record<string, unknown>>): Promise<Answer> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send({ jsonrpc: '2.0', id, method, params });
    });
  }

  /** Performs the handshake. With `begin: false` it omits the `initialized` notification. */
  async initialize({ begin = true } = {}): Promise<void> {
    const clientInfo = { name: 'bench', version: '1' };
    await this.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    if (begin) this.#send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  }

  /** Calls a tool. Rejects if the call fails. */
  async call(name: string, args: Readonly<Record<string, unknown>>, turnId = 'bench'): Promise<Answer> {
    const answer = await this.request('tools/call', { name, arguments: args, _meta: { turnId } });
    if (answer.result.isError === true)
      throw new Error(`${name} ${JSON.stringify(args)}: ${JSON.stringify(answer.result.content).slice(0, 500)}`);
    return answer;
  }

  /** Ends its input, as a leaving client does, and waits for the process to end. */
  async close(): Promise<void> {
    this.#process.stdin.end();
    const limit = setTimeout(() => this.#process.kill('SIGKILL'), 30_000);
    await this.#exited;
    clearTimeout(limit);
  }

  #send(message: unknown): void {
    this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #take(data: Buffer): void {
    let rest = data;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      this.#pieces.push(rest.subarray(0, end));
      const line = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
      this.#pieces = [];
      rest = rest.subarray(end + 1);
      if (line !== undefined && line.length > 0) this.#understand(line);
    }
    if (rest.length > 0) this.#pieces.push(rest);
  }

  #understand(line: Buffer): void {
    const { id, method, result, error } = JSON.parse(line.toString('utf8')) as Readonly<Record<string, unknown>>;
    if (method !== undefined) {
      if (id !== undefined) this.#send({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'not offered' } });
      return;
    }
    const waiting = this.#waiting.get(Number(id));
    this.#waiting.delete(Number(id));
    if (error === undefined) waiting?.resolve({ result: result as Answer['result'], bytes: line.length });
    else waiting?.reject(new Error(JSON.stringify(error)));
  }

  #failAll(reason: string): void {
    for (const { reject } of this.#waiting.values()) reject(new Error(reason));
    this.#waiting.clear();
  }
}
