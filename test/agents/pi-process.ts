import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { linesOf } from '../../src/extensions/sidecar/protocol.js';
import { newestAgent } from './install-agent.js';
import type { LoopModel } from './loop-model.js';
import { type ProgramEnd, runProgram } from './run-program.js';

/** Returns Node.js and pi's script. pi needs a later Node.js than this project. */
const startOfPi = async (): Promise<readonly [string, string]> => [
  await newestAgent('node'),
  await realpath(await newestAgent('pi')),
];

/** pi's names of the wires, and the form of address that it needs for each. */
const APIS: Readonly<
  Record<LoopModel['wire'], { readonly name: string; readonly address: (baseUrl: string) => string }>
> = {
  chat: { name: 'openai-completions', address: (baseUrl) => baseUrl },
  anthropic: { name: 'anthropic-messages', address: (baseUrl) => baseUrl.replace(/\/v1$/, '') },
};

type Json = Readonly<Record<string, unknown>>;

/** Where pi keeps its sessions and finds its model. */
export interface PiHome {
  readonly home: string;
  readonly cwd: string;
  readonly dataDir: string;
  readonly model: LoopModel;
  /** The built extension; pi runs unchanged without it. */
  readonly extension: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

/** pi, driven over its pipes. */
export class PiProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #events: Json[] = [];
  #wake: () => void = () => undefined;
  #commands = 0;
  stderr = '';

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    void this.#listen();
  }

  static async start(
    { home, cwd, dataDir, model, extension, env = {} }: PiHome,
    ...args: readonly string[]
  ): Promise<PiProcess> {
    const [node, cli] = await startOfPi();
    await mkdir(join(home, 'agent'), { recursive: true });
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const scripted = {
      id: 'scripted',
      name: 'scripted',
      contextWindow: model.window,
      maxTokens: 8_000,
      reasoning: model.wire === 'anthropic',
      input: ['text'],
      cost,
    };
    const api = APIS[model.wire];
    const providers = {
      scripted: { baseUrl: api.address(model.baseUrl), api: api.name, apiKey: 'none', models: [scripted] },
    };
    await writeFile(join(home, 'agent', 'models.json'), JSON.stringify({ providers }));
    // With this setting, a compaction removes something even from a short session.
    const settings = join(home, 'agent', 'settings.json');
    const known = JSON.parse(await readFile(settings, 'utf8').catch(() => '{}'));
    await writeFile(settings, JSON.stringify({ ...known, compaction: { enabled: true, keepRecentTokens: 400 } }));
    const thinking = model.wire === 'anthropic' ? 'low' : 'off';
    const extensions = extension === undefined ? [] : ['-e', extension];
    const child = spawn(
      node,
      [
        cli,
        '--mode',
        'rpc',
        '--provider',
        'scripted',
        '--model',
        'scripted',
        '--thinking',
        thinking,
        ...extensions,
        ...args,
      ],
      {
        cwd,
        env: {
          PATH: process.env.PATH,
          HOME: home,
          XDG_CACHE_HOME: process.env.XDG_CACHE_HOME || join(process.env.HOME ?? '/', '.cache'),
          PI_OFFLINE: '1',
          PI_CODING_AGENT_DIR: join(home, 'agent'),
          PALIMPSEST_DATA: dataDir,
          // Other tests may keep the machine busy.
          PALIMPSEST_LOOP_LIMIT_MS: process.env.PALIMPSEST_LOOP_LIMIT_MS ?? '15000',
          PALIMPSEST_LOOP_LAYOUT: 'ssot',
          ...env,
        },
      },
    );
    return new PiProcess(child);
  }

  /** Installs a package for pi processes with this home. */
  static async install(home: string, cwd: string, source: string): Promise<ProgramEnd> {
    const [node, cli] = await startOfPi();
    const env = { PATH: process.env.PATH, HOME: home, PI_OFFLINE: '1', PI_CODING_AGENT_DIR: join(home, 'agent') };
    return runProgram(node, [cli, 'install', source], { cwd, env, timeoutMs: 60_000 });
  }

  /** Says something and waits until the agent is done with it. */
  async prompt(message: string): Promise<void> {
    const from = this.#events.length;
    await this.command({ type: 'prompt', message });
    if (!message.startsWith('/')) await this.#event(({ type }) => type === 'agent_settled', from);
  }

  /** Sends a command and returns the data of its answer. */
  async command(command: Json): Promise<Json> {
    this.#commands += 1;
    const id = `c${this.#commands}`;
    const from = this.#events.length;
    this.#child.stdin.write(`${JSON.stringify({ id, ...command })}\n`);
    const answer = await this.#event((event) => event.type === 'response' && event.id === id, from);
    if (answer.success !== true) throw new Error(`pi: ${JSON.stringify(answer).slice(0, 1_000)}`);
    return (answer.data ?? {}) as Json;
  }

  /** Kills it, if it still runs. */
  kill(): void {
    if (this.#child.exitCode === null) this.#child.kill('SIGKILL');
  }

  /** Ends pi as its terminal would. */
  async end(): Promise<void> {
    this.#child.stdin.end();
    if (this.#child.exitCode === null) await once(this.#child, 'exit');
  }

  async #listen(): Promise<void> {
    for await (const line of linesOf(this.#child.stdout)) {
      if (line.startsWith('{')) this.#events.push(JSON.parse(line) as Json);
      this.#wake();
    }
    this.#events.push({ type: 'ended' });
    this.#wake();
  }

  async #event(wanted: (event: Json) => boolean, from: number): Promise<Json> {
    for (;;) {
      const found = this.#events.slice(from).find(wanted);
      if (found !== undefined) return found;
      if (this.#events.at(-1)?.type === 'ended') throw new Error(`pi has ended: ${this.stderr.slice(-2_000)}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
