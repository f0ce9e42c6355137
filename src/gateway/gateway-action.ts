import { printText, reportFailure, tell } from '../cli/output.js';
import { dataFolder } from '../host/environment.js';
import { upstreamBases } from './bases.js';
import { GatewayLog } from './gateway-log.js';
import { GatewayReportFile } from './gateway-report.js';
import { type Gateway, serveGateway } from './serve-gateway.js';

/** How to start a gateway over a data folder. */
export interface OpenGateway {
  readonly dataDir: string;
  readonly bases: ReadonlyMap<string, URL>;
  /** 0 picks a free port. */
  readonly port: number;
  /** Called once, with the first reason why a call could not be logged. */
  readonly onTrouble: (message: string) => void;
}

/**
 * Starts a gateway that logs into a data folder. If it cannot log, it forwards all the same, says
 * so once and counts the calls for `palimpsest doctor`.
 *
 * @throws {GatewayError} `port-taken`
 */
export async function openGateway({ dataDir, bases, port, onTrouble }: OpenGateway): Promise<Gateway> {
  const report = new GatewayReportFile(dataDir);
  let isSaid = false;
  const log = new GatewayLog(dataDir, {
    failed: (reason) => {
      void report.missed(reason);
      if (!isSaid)
        onTrouble(`a model call is not logged: ${reason}. The agent goes on; palimpsest doctor counts such calls`);
      isSaid = true;
    },
  });
  const gateway = await serveGateway({ bases, log, port }).catch(async (error: unknown) => {
    await report.close();
    throw error;
  });
  const { address } = gateway;
  return {
    address,
    close: async () => {
      await gateway.close();
      await report.close();
    },
  };
}

/** Flags of `palimpsest gateway`. */
export interface GatewayFlags {
  readonly data?: string;
  readonly port: number;
  readonly upstream?: readonly string[];
}

const ended = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });

/** Runs the gateway until a signal ends it. */
export function gatewayAction({ data, port, upstream }: GatewayFlags): Promise<void> {
  return reportFailure({}, async () => {
    const gateway = await openGateway({
      dataDir: data ?? dataFolder(process.env),
      bases: upstreamBases(upstream),
      port,
      onTrouble: (message) => tell(`palimpsest: ${message}`),
    });
    const { address } = gateway;
    printText(
      `The gateway listens on ${address} and changes nothing.\n` +
        `Claude Code:  ANTHROPIC_BASE_URL=${address}/anthropic ENABLE_TOOL_SEARCH=true claude\n` +
        `Codex:        codex -c 'openai_base_url="${address}/codex"'\n` +
        `Gemini CLI:   GOOGLE_GEMINI_BASE_URL=${address}/gemini gemini\n` +
        `OpenAI wire:  base address ${address}/openai/v1\n` +
        'While palimpsest watch runs, each logged request becomes a context. Press Ctrl-C to end the gateway.',
    );
    await ended();
    await gateway.close();
  });
}
