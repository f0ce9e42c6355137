import { parse } from '@decimalturn/toml-patch';
import { type ProgramSearch, programFiles, type Spawned, spawnedAs } from '../process/program-files.js';
import { ownMember } from '../values/own-member.js';
import { GatewayError } from './gateway-error.js';

type Env = Readonly<Record<string, string | undefined>>;

/** How to start an agent so that its model calls go through the gateway. */
export interface AgentLaunch {
  readonly command: string;
  /** Arguments before the user's own. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The upstreams that an agent uses without the gateway, and how to start it with the gateway. */
interface AgentPlan {
  /** Upstreams as NAME=URL. */
  readonly upstreams: readonly string[];
  readonly launch: (address: string) => AgentLaunch;
}

/** The environment, and the text of the agent's settings file. */
export interface AgentSettings {
  readonly env: Env;
  /** The text of Codex's `config.toml`. Undefined if there is none. */
  readonly codexConfig: string | undefined;
}

const isSet = (value: string | undefined): value is string => value !== undefined && value !== '';

function claudePlan({ env }: AgentSettings): AgentPlan {
  const cloud = ['CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_VERTEX', 'CLAUDE_CODE_USE_FOUNDRY'].find((name) =>
    isSet(env[name]),
  );
  if (cloud !== undefined)
    throw new GatewayError(
      'unknown-agent',
      `${cloud} is set, so Claude Code does not use ANTHROPIC_BASE_URL and the gateway would see nothing; unset it`,
    );
  return {
    upstreams: isSet(env.ANTHROPIC_BASE_URL) ? [`anthropic=${env.ANTHROPIC_BASE_URL}`] : [],
    launch: (address) => ({
      command: 'claude',
      args: [],
      env: {
        ANTHROPIC_BASE_URL: `${address}/anthropic`,
        // Claude Code turns its tool search off if the base address is not its own host.
        ...(isSet(env.ENABLE_TOOL_SEARCH) || isSet(env.ANTHROPIC_BASE_URL) ? {} : { ENABLE_TOOL_SEARCH: 'true' }),
      },
    }),
  };
}

/** Returns the id and base address of the provider in Codex's settings. */
function codexProvider({ codexConfig = '', env }: AgentSettings): { id?: string; base?: string } {
  let config: Readonly<Record<string, unknown>>;
  try {
    config = parse(codexConfig) as Readonly<Record<string, unknown>>;
  } catch {
    // If the file is invalid, Codex itself reports it.
    return {};
  }
  const id = typeof config.model_provider === 'string' ? config.model_provider : 'openai';
  const providers = (config.model_providers ?? {}) as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  const base = providers[id]?.base_url;
  if (typeof base === 'string') return { id, base };
  const own = typeof config.openai_base_url === 'string' ? config.openai_base_url : env.OPENAI_BASE_URL;
  return isSet(own) ? { base: own } : {};
}

function codexPlan(settings: AgentSettings): AgentPlan {
  const { id, base } = codexProvider(settings);
  return {
    upstreams: base === undefined ? [] : [`codex=${base}`],
    launch: (address) => {
      const key = id === undefined ? 'openai_base_url' : `model_providers.${id}.base_url`;
      // Windows cannot pass double quotes to a command file. TOML accepts single ones.
      return { command: 'codex', args: ['-c', `${key}='${address}/codex'`], env: {} };
    },
  };
}

function geminiPlan({ env }: AgentSettings): AgentPlan {
  const [base, assist] = [env.GOOGLE_GEMINI_BASE_URL, env.CODE_ASSIST_ENDPOINT];
  return {
    upstreams: [...(isSet(base) ? [`gemini=${base}`] : []), ...(isSet(assist) ? [`code-assist=${assist}`] : [])],
    launch: (address) => ({
      command: 'gemini',
      args: [],
      env: { GOOGLE_GEMINI_BASE_URL: `${address}/gemini`, CODE_ASSIST_ENDPOINT: `${address}/code-assist` },
    }),
  };
}

const PLANS: Readonly<Record<string, (settings: AgentSettings) => AgentPlan>> = {
  claude: claudePlan,
  codex: codexPlan,
  gemini: geminiPlan,
};

/** The agents that `palimpsest run` can start. */
const RUNNABLE = Object.keys(PLANS);

/** The system on which an agent is started, and the check whether a file exists. */
export interface AgentStart extends ProgramSearch {
  readonly exists: (path: string) => boolean;
}

/**
 * Returns how to start an agent on this terminal with all its arguments. On Windows, npm installs
 * agents as command files. The system starts these only by their absolute path and through its
 * shell.
 *
 * @throws {GatewayError} `agent-missing`, `unknown-agent`
 */
export function agentStart(command: string, args: readonly string[], { exists, ...search }: AgentStart): Spawned {
  const program = search.platform === 'win32' ? programFiles(command, search).find(exists) : command;
  if (program === undefined) throw missingAgent(command);
  const start = spawnedAs(program, args);
  if (start === undefined)
    throw new GatewayError(
      'unknown-agent',
      `${program} is a command file, and Windows cannot pass it %, double quotes or line breaks; leave them out of ` +
        "the agent's arguments",
    );
  // The agent uses the console of this process.
  return { ...start, options: { ...start.options, windowsHide: false } };
}

/** Returns the error for an agent whose program is missing. */
export const missingAgent = (command: string): GatewayError =>
  new GatewayError('agent-missing', `the program ${command} is not on the PATH; install it first`);

/**
 * Returns how to start an agent behind the gateway.
 *
 * @throws {GatewayError} `unknown-agent`
 */
export function agentPlan(name: string, settings: AgentSettings): AgentPlan {
  const plan = ownMember(PLANS, name);
  if (plan === undefined)
    throw new GatewayError(
      'unknown-agent',
      `${JSON.stringify(name)} is not an agent that run can start; choose one of ${RUNNABLE.join(', ')}`,
    );
  return plan(settings);
}
