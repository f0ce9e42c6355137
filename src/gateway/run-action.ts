import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { constants, homedir } from 'node:os';
import { join } from 'node:path';
import { reportFailure, tell } from '../cli/output.js';
import { dataFolder, STEER_VARIABLE } from '../host/environment.js';
import { unlessMissing } from '../process/system-error.js';
import { defined } from '../values/defined.js';
import { type AgentLaunch, agentPlan, agentStart, missingAgent } from './agent-launch.js';
import { upstreamBases } from './bases.js';
import { openGateway, type SteeringFlags, steerSettings } from './gateway-action.js';
import { GatewayError } from './gateway-error.js';

/** Flags of `palimpsest run`. */
export interface RunFlags extends SteeringFlags {
  readonly data?: string;
  readonly upstream?: readonly string[];
}

/** An agent to start, with its own arguments. */
export interface RunAgent {
  readonly agent: string;
  readonly args: readonly string[];
  readonly flags: RunFlags;
}

/** Signals that the terminal also sends to the agent. This process ignores them. */
const LEFT_TO_AGENT = ['SIGINT', 'SIGQUIT', 'SIGTSTP'] as const;
/** Signals that only this process gets. It passes them to the agent. */
const PASSED_ON = ['SIGTERM', 'SIGHUP'] as const;

/** Runs the agent on this terminal. Returns its exit code, as a shell reports it. */
function runAgent({ command, args, env }: AgentLaunch, own: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const { env: ours, platform } = process;
    const start = agentStart(command, [...args, ...own], { env: ours, platform, exists: existsSync });
    const child = spawn(start.command, start.args, { ...start.options, stdio: 'inherit', env: { ...ours, ...env } });
    for (const signal of LEFT_TO_AGENT) process.on(signal, () => undefined);
    for (const signal of PASSED_ON) process.on(signal, () => void child.kill(signal));
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'ENOENT' ? missingAgent(command) : error),
    );
    child.once('close', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

/** Maximum wait for the database before the agent starts, in milliseconds. */
const START_MS = 60_000;

const VERBS = ['activate', 'deactivate', 'pin', 'unpin'];

/**
 * Adds the tools `activate`, `deactivate`, `pin` and `unpin` to an agent. Claude Code's flags get
 * their values after `=`. After a space, a flag would also take the next word, which belongs to the
 * user. Single quotes also work on Windows.
 */
function withVerbs(agent: string, launch: AgentLaunch, address: string): AgentLaunch {
  const [command, args] = [process.execPath, [process.argv[1] ?? '', 'mcp']];
  const env = { [STEER_VARIABLE]: address };
  const server = { command, args, env };
  const added =
    agent === 'claude'
      ? [
          `--mcp-config=${JSON.stringify({ mcpServers: { palimpsest: server } })}`,
          `--allowedTools=${VERBS.map((verb) => `mcp__palimpsest__${verb}`).join(',')}`,
        ]
      : [
          `command='${command}'`,
          `args=[${args.map((arg) => `'${arg}'`).join(',')}]`,
          `env={${STEER_VARIABLE}='${address}'}`,
          `default_tools_approval_mode='approve'`,
        ].flatMap((setting) => ['-c', `mcp_servers.palimpsest.${setting}`]);
  return { ...launch, args: [...launch.args, ...added], env: { ...launch.env, ...env } };
}

async function codexConfig(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const home = env.CODEX_HOME ?? '';
  return unlessMissing(readFile(join(home === '' ? join(homedir(), '.codex') : home, 'config.toml'), 'utf8'));
}

/** Starts a gateway on a free port and an agent behind it. Ends with the agent's exit code. */
export function runAction({ agent, args, flags: { data, upstream = [], ...flags } }: RunAgent): Promise<void> {
  return reportFailure({}, async () => {
    const steer = steerSettings(flags);
    if (steer !== undefined && agent !== 'claude' && agent !== 'codex')
      throw new GatewayError('not-steered', `--steer supports claude and codex; start ${agent} without it`);
    const config = agent === 'codex' ? await codexConfig(process.env) : undefined;
    const plan = agentPlan(agent, { env: process.env, codexConfig: config });
    // Troubles are written after the agent has ended: until then the terminal belongs to the agent.
    const troubles: string[] = [];
    const gateway = await openGateway({
      dataDir: data ?? dataFolder(process.env),
      bases: upstreamBases([...plan.upstreams, ...upstream]),
      port: 0,
      onTrouble: (message) => troubles.push(message),
      // Codex prefers WebSockets, and the gateway does not read the calls in them.
      isHttpOnly: agent === 'codex',
      ...defined({ steer }),
    });
    const { address, verbs, steering } = gateway;
    try {
      if (steering !== undefined && !(await steering.warmUp(START_MS)))
        troubles.push('the database was not ready in time, so the first model calls were not steered');
      const launch = plan.launch(address);
      process.exitCode = await runAgent(verbs === undefined ? launch : withVerbs(agent, launch, verbs), args);
    } finally {
      await gateway.close();
      for (const message of troubles) tell(`palimpsest: ${message}`);
    }
  });
}
