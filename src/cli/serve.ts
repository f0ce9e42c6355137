import { Command, InvalidArgumentError, Option } from 'commander';
import { CLAUDE_SESSION_VARIABLE, STEER_VARIABLE, variable } from '../host/environment.js';
import type { LogLevel } from '../host/log.js';
import type { ServerFlags, ServerSettings } from '../host/settings.js';
import type { ServedAddresses } from '../http/http-server.js';
import { type ProgramParts, servedContracts } from './contract.js';
import { collect, dataFlag, maskFlag, numberBetween, wholeBetween } from './flags.js';
import { reportFailure, tell } from './output.js';

/** Flags of `mcp`. */
interface McpFlags extends ServerFlags {
  readonly logLevel: LogLevel;
}

/** Flags of `serve`. */
interface ServeFlags extends McpFlags {
  readonly port: number;
  readonly tokenFile?: string;
  /** False with `--no-token`. */
  readonly token: boolean;
}

/**
 * Size of V8's young generation. One agent's calls leave little garbage, so this is enough. In a
 * smaller one, V8 promotes texts of 100 KB, and calls take a quarter longer.
 */
const YOUNG_BYTES = 8 * 1_048_576;

function windowSize(text: string): { readonly perTurn: number; readonly turns: number } {
  const [, perTurn, turns] = /^(\d{1,4})x(\d{1,4})$/.exec(text) ?? [];
  if (perTurn === undefined || turns === undefined)
    throw new InvalidArgumentError('Write 5x3 for five results of each of three turns.');
  return { perTurn: Number(perTurn), turns: Number(turns) };
}

/** Adds the flags that `mcp` and `serve` share. */
export function withServerFlags(command: Command): Command {
  return command
    .addOption(
      new Option('--root <folder>', 'folder that agents may use; repeatable (default: the working folder)').argParser(
        collect,
      ),
    )
    .addOption(
      new Option(
        '--mount <mapping>',
        'AGENT=CANONICAL[,FILESYSTEM-ID]: how agents in a sandbox see a folder; repeatable',
      ).argParser(collect),
    )
    .addOption(
      new Option(
        '--agent-filesystem <id>',
        'filesystem id of agents in a container, such as the container id; applies to paths without a --mount ' +
          '(default: this machine)',
      ),
    )
    .addOption(dataFlag())
    .addOption(new Option('--profile <name>', 'memory (loses everything when it stops) or rocksdb (the default)'))
    .addOption(
      new Option('--session <id>', 'session for all calls (default: the one that the client names, or a new one)'),
    )
    .addOption(new Option('--take-over', 'take over a session that another process has open'))
    .addOption(maskFlag())
    .addOption(new Option('--mask-answers', 'agents see the marks of secrets instead of the secrets'))
    .addOption(new Option('--share-sessions', 'also open sessions that used folders outside --root'))
    .addOption(
      new Option(
        '--durability <level>',
        'what an answered call survives: a crash of every process, or also a power loss',
      )
        .choices(['process', 'power'])
        .default('process'),
    )
    .addOption(new Option('--strict', 'follow the specification exactly; docs/ssot.md lists what changes'))
    .addOption(new Option('--long-ids', 'show whole ids, not their shortest unique prefixes').conflicts('shortIds'))
    .addOption(new Option('--short-ids', 'the default, except with --strict').hideHelp())
    .addOption(new Option('--allow-bash', 'offer the tool bash, which runs any command'))
    .addOption(new Option('--read-only', 'leave out write, edit and bash'))
    .addOption(
      new Option('--max-output-chars <count>', 'maximum length of a tool answer (default: 40000)').argParser(
        wholeBetween(1_000, 1_000_000),
      ),
    )
    .addOption(
      new Option('--turn-pause <seconds>', 'pause after which a call begins a new turn (default: 60)').argParser(
        numberBetween(0.001, 1e6),
      ),
    )
    .addOption(
      new Option(
        '--window <NxM>',
        'keep the newest N results of each of the newest M turns active (default: 5x3)',
      ).argParser(windowSize),
    )
    .addOption(
      new Option('--log-level <level>', 'log level on stderr')
        .choices(['silent', 'error', 'warn', 'info', 'debug'])
        .default('warn'),
    );
}

async function settingsOf(flags: ServerFlags, version: string): Promise<ServerSettings> {
  const { requireUsable, SECRET_VARIABLES, serverSettings } = await import('../host/settings.js');
  const settings = serverSettings(flags, { env: process.env, cwd: process.cwd(), version });
  requireUsable(settings);
  // Commands of the tool `bash` would inherit these variables.
  for (const name of SECRET_VARIABLES) delete process.env[name];
  return settings;
}

/** `palimpsest mcp`: serves one agent over stdin and stdout. */
export function mcpCommand(version: string): Command {
  const serve = async (flags: McpFlags): Promise<void> => {
    const steered = variable(process.env, STEER_VARIABLE);
    if (steered !== undefined)
      return (await import('../mcp/steered-verbs.js')).serveSteered(steered, version, flags.logLevel);
    const modules = [import('../mcp/stdio.js'), import('../process/compile-early.js')] as const;
    const [settings, { serveStdio }, { compileEarly }] = await Promise.all([settingsOf(flags, version), ...modules]);
    compileEarly();
    const startedBy = variable(process.env, CLAUDE_SESSION_VARIABLE);
    await serveStdio(startedBy === undefined ? settings : { ...settings, startedBy }, flags.logLevel);
  };
  return withServerFlags(new Command('mcp').description('serve one agent over stdio, as an MCP server')).action(
    async (flags: McpFlags) => {
      const { collectOldGarbageSoon, limitYoungGeneration } = await import('./young-generation.js');
      limitYoungGeneration(YOUNG_BYTES);
      collectOldGarbageSoon();
      await reportFailure({}, () => serve(flags));
    },
  );
}

/**
 * Prints the server's address, the token, and the address of the review page. That address admits
 * one visitor.
 */
function announce({ mcp, token, page }: ServedAddresses): void {
  const shown = token === undefined ? '' : `\nAuthorization: Bearer ${token}`;
  const address = page === undefined ? '' : `\nReview page: ${page()}`;
  tell(`Palimpsest listens on ${mcp}${shown}${address}`);
}

/** `palimpsest serve`: serves several agents over HTTP on this machine. */
export function serveCommand(program: ProgramParts): Command {
  const serve = async (flags: ServeFlags): Promise<void> => {
    const modules = [import('../http/http-server.js'), import('../process/compile-early.js')] as const;
    const loaded = servedContracts(program);
    loaded.catch(() => undefined);
    const [settings, { serveHttp }, { compileEarly }] = await Promise.all([
      settingsOf(flags, program.version),
      ...modules,
    ]);
    compileEarly();
    const { port, tokenFile, token, logLevel } = flags;
    await serveHttp(settings, { port, tokenFile, noToken: !token, logLevel, announce, ...(await loaded) });
  };
  const command = new Command('serve')
    .description('serve several agents over HTTP on 127.0.0.1, as an MCP server, with the review page')
    .addOption(
      new Option('--port <number>', 'port; 0 picks a free one').argParser(wholeBetween(0, 65_535)).default(7_390),
    )
    .addOption(new Option('--token-file <file>', 'file with the bearer token (default: a generated token, shown once)'))
    .addOption(new Option('--no-token', 'require no token: any program on this machine may connect'));
  return withServerFlags(command).action(async (flags: ServeFlags) => {
    (await import('./young-generation.js')).collectOldGarbageSoon();
    await reportFailure({}, () => serve(flags));
  });
}
