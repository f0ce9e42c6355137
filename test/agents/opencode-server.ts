import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newestAgent, newestVersion } from './install-agent.js';
import type { LoopModel } from './loop-model.js';

/** How long OpenCode may take to end after SIGTERM. */
const END_MS = 30_000;
const MODEL = { providerID: 'scripted', modelID: 'scripted' } as const;

/** The packages for the two wires, both part of OpenCode, and their settings for thinking. */
const PACKAGES = { chat: '@ai-sdk/openai-compatible', anthropic: '@ai-sdk/anthropic' } as const;
const THINKING = {
  chat: {},
  anthropic: { reasoning: true, options: { thinking: { type: 'enabled', budgetTokens: 1_024 } } },
} as const;

type Json = Readonly<Record<string, unknown>>;

/** Where OpenCode runs and finds its model. */
export interface OpencodeHome {
  readonly home: string;
  readonly cwd: string;
  readonly dataDir: string;
  readonly model: LoopModel;
  /** The built plugin; OpenCode runs unchanged without it. */
  readonly plugin: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * OpenCode installs its plugin package into its configuration folder, in its process and in the
 * background. While the registry keeps it waiting, it does not end on SIGTERM.
 *
 * It skips a folder whose lock file lists the package. Our plugin does not need that package.
 */
export async function withoutInstallation(home: string): Promise<void> {
  const folder = join(home, '.config', 'opencode');
  await mkdir(join(folder, 'node_modules'), { recursive: true });
  const dependencies = { '@opencode-ai/plugin': newestVersion('opencode').version };
  await writeFile(join(folder, 'package.json'), JSON.stringify({ dependencies }));
  await writeFile(
    join(folder, 'package-lock.json'),
    JSON.stringify({ lockfileVersion: 3, packages: { '': { dependencies } } }),
  );
}

/** OpenCode's own server, as its interfaces talk to it. */
export class OpencodeServer {
  readonly #child: ChildProcess;
  readonly #origin: string;
  readonly #log: string;

  private constructor(child: ChildProcess, origin: string, home: string) {
    this.#child = child;
    this.#origin = origin;
    this.#log = join(home, '.local', 'share', 'opencode', 'log', 'opencode.log');
  }

  static async start({ home, cwd, dataDir, model, plugin, env = {} }: OpencodeHome): Promise<OpencodeServer> {
    const program = await newestAgent('opencode');
    await mkdir(join(cwd, '.git'), { recursive: true });
    await withoutInstallation(home);
    const provider = {
      npm: PACKAGES[model.wire],
      name: 'scripted',
      options: { baseURL: model.baseUrl, apiKey: 'none' },
      models: {
        scripted: {
          name: 'scripted',
          tool_call: true,
          limit: { context: model.window, output: 8_000 },
          ...THINKING[model.wire],
        },
      },
    };
    const plugins = plugin === undefined ? {} : { plugin: [`file://${plugin}`] };
    const permission = { edit: 'allow', bash: 'allow', external_directory: 'allow' };
    await writeFile(
      join(cwd, 'opencode.json'),
      JSON.stringify({ provider: { scripted: provider }, permission, ...plugins }),
    );
    const child = spawn(program, ['serve', '--port', '0', '--hostname', '127.0.0.1'], {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        HOME: home,
        XDG_CACHE_HOME: process.env.XDG_CACHE_HOME || join(process.env.HOME ?? '/', '.cache'),
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        PALIMPSEST_DATA: dataDir,
        // Other tests may keep the machine busy.
        PALIMPSEST_LOOP_LIMIT_MS: process.env.PALIMPSEST_LOOP_LIMIT_MS ?? '15000',
        PALIMPSEST_LOOP_LAYOUT: 'ssot',
        ...env,
      },
    });
    let said = '';
    const origin = await new Promise<string>((resolve, reject) => {
      const listen = (text: string): void => {
        said += text;
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
        if (found !== undefined) resolve(found);
      };
      child.stdout?.setEncoding('utf8').on('data', listen);
      child.stderr?.setEncoding('utf8').on('data', listen);
      child.once('exit', () => reject(new Error(`opencode has ended: ${said.slice(-2_000)}`)));
    });
    return new OpencodeServer(child, origin, home);
  }

  async newSession(): Promise<string> {
    return String((await this.#ask('POST', '/session', {})).id);
  }

  /** Says something and waits until the agent is done with it. */
  async prompt(session: string, text: string): Promise<void> {
    await this.#ask('POST', `/session/${session}/message`, { model: MODEL, parts: [{ type: 'text', text }] });
  }

  /** Runs a command as its interface does for `/name args`; the model answers it. */
  async command(session: string, name: string, args: string): Promise<void> {
    const model = `${MODEL.providerID}/${MODEL.modelID}`;
    await this.#ask('POST', `/session/${session}/command`, { command: name, arguments: args, model });
  }

  /** Runs a command of the user's own, as its interface does for `!command`. */
  async shell(session: string, command: string): Promise<void> {
    await this.#ask('POST', `/session/${session}/shell`, { agent: 'build', model: MODEL, command });
  }

  async compact(session: string): Promise<void> {
    await this.#ask('POST', `/session/${session}/summarize`, MODEL);
  }

  /** Undoes the last request, as its interface does for `/undo`. */
  async undo(session: string): Promise<void> {
    const messages = (await this.#ask('GET', `/session/${session}/message`)) as unknown as readonly {
      readonly info: { readonly id: string; readonly role: string };
    }[];
    const last = messages.findLast(({ info }) => info.role === 'user');
    await this.#ask('POST', `/session/${session}/revert`, { messageID: last?.info.id });
  }

  async fork(session: string): Promise<string> {
    return String((await this.#ask('POST', `/session/${session}/fork`, {})).id);
  }

  /** Ends OpenCode as its terminal would. If it does not end, kills it and throws. */
  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), END_MS);
    await ended;
    clearTimeout(timer);
    if (this.#child.signalCode !== 'SIGKILL') return;
    const log = await readFile(this.#log, 'utf8').catch(() => 'it wrote no log');
    throw new Error(`opencode had not ended ${END_MS} ms after SIGTERM: ${log.slice(-2_000)}`);
  }

  kill(): void {
    if (this.#child.exitCode === null) this.#child.kill('SIGKILL');
  }

  async #ask(method: string, path: string, body?: Json): Promise<Json> {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${this.#origin}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`opencode ${path}: ${response.status} ${text.slice(0, 1_000)}`);
    return JSON.parse(text === '' ? '{}' : text) as Json;
  }
}
