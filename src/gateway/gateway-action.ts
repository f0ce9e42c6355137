import { printText, reportFailure, tell } from '../cli/output.js';
import { dataFolder, type MaskSetting, STEER_VARIABLE } from '../host/environment.js';
import { openMask } from '../host/open-mask.js';
import { maskSetting } from '../host/settings.js';
import { defined } from '../values/defined.js';
import { upstreamBases } from './bases.js';
import { GatewayError } from './gateway-error.js';
import { GatewayLog } from './gateway-log.js';
import { GatewayReportFile } from './gateway-report.js';
import { type Gateway, serveGateway } from './serve-gateway.js';
import { startGuard } from './steer/start-guard.js';
import { Steering } from './steer/steering.js';

/** Options of a gateway over a data folder. */
export interface OpenGateway {
  readonly dataDir: string;
  readonly bases: ReadonlyMap<string, URL>;
  /** 0 picks a free port. */
  readonly port: number;
  /** Called once, with the first reason for which a call could not be logged. */
  readonly onTrouble: (message: string) => void;
  /** Undefined if no request may be changed. */
  readonly steer?: SteerSettings;
  /** Whether WebSockets for model calls are refused, so that the client uses HTTP. */
  readonly isHttpOnly?: boolean;
  /** The secrets that the log masks. Default: PALIMPSEST_MASK, or `known`. */
  readonly mask?: MaskSetting;
}

/** How the gateway steers sessions. */
export interface SteerSettings {
  /** The share of sessions in the control arm, which is not steered, from 0 to 1. */
  readonly control: number;
  /** Maximum wait of a model call for its context, in milliseconds. */
  readonly limitMs: number;
  /** The working folder of the agents. */
  readonly folder: string;
  /** The sidecar's program. Default: the one in this program's folder. */
  readonly program?: string;
}

/** A running gateway that may steer. */
export interface SteeringGateway extends Gateway {
  readonly steering?: Steering;
}

/** Maximum wait of a session's first model call, which opens the session, in milliseconds. */
const FIRST_CALL_MS = 5_000;

/**
 * Starts a gateway that logs into a data folder. If it cannot log a call, it forwards the call
 * anyway, reports the first failure, and counts the calls for `palimpsest doctor`. Secrets in the
 * log are masked.
 *
 * @throws {GatewayError} `port-taken`
 */
export async function openGateway({
  dataDir,
  bases,
  port,
  onTrouble,
  steer,
  isHttpOnly = steer !== undefined,
  mask: setting = maskSetting(process.env),
}: OpenGateway): Promise<SteeringGateway> {
  const report = new GatewayReportFile(dataDir);
  let isSaid = false;
  const mask = await openMask(dataDir, setting);
  const failed = (reason: string): void => {
    void report.missed(reason);
    if (!isSaid)
      onTrouble(`a model call is not logged: ${reason}. The agent continues; palimpsest doctor counts such calls`);
    isSaid = true;
  };
  const log = new GatewayLog(dataDir, { failed }, defined({ mask }));
  const steering =
    steer === undefined
      ? undefined
      : new Steering({
          dataDir,
          control: steer.control,
          limitMs: steer.limitMs,
          firstLimitMs: Math.max(steer.limitMs, FIRST_CALL_MS),
          prepare: (body) => log.prepare(body),
          guard: startGuard({ ...steer, dataDir, notify: onTrouble }),
        });
  const gateway = await serveGateway({
    bases,
    log,
    port,
    isHttpOnly,
    onPassed: () => void report.passed(),
    ...defined({ steering }),
  }).catch(async (error: unknown) => {
    await Promise.all([report.close(), steering?.close()]);
    throw error;
  });
  return {
    ...gateway,
    ...defined({ steering }),
    close: async () => {
      await gateway.close();
      await report.close();
    },
  };
}

/** Flags of `palimpsest gateway`. */
export interface GatewayFlags extends SteeringFlags {
  readonly data?: string;
  readonly port: number;
  readonly upstream?: readonly string[];
}

/** Flags of the commands that may steer. */
export interface SteeringFlags {
  readonly steer?: boolean;
  readonly control?: number;
  readonly steerLimit?: number;
}

/** Default of `--steer-limit`, in milliseconds. */
const LIMIT_MS = 250;

/**
 * Returns the steering settings in the flags. Undefined without `--steer`.
 * @throws {GatewayError} `not-steered`
 */
export function steerSettings({ steer = false, control, steerLimit }: SteeringFlags): SteerSettings | undefined {
  if (steer) return { control: control ?? 0, limitMs: steerLimit ?? LIMIT_MS, folder: process.cwd() };
  if (control === undefined && steerLimit === undefined) return undefined;
  throw new GatewayError('not-steered', '--control and --steer-limit need --steer; without it no request is changed');
}

const ended = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });

/** Runs the gateway until a signal ends it. */
export function gatewayAction({ data, port, upstream, ...flags }: GatewayFlags): Promise<void> {
  return reportFailure({}, async () => {
    const steer = steerSettings(flags);
    const gateway = await openGateway({
      dataDir: data ?? dataFolder(process.env),
      bases: upstreamBases(upstream),
      port,
      onTrouble: (message) => tell(`palimpsest: ${message}`),
      ...defined({ steer }),
    });
    await gateway.steering?.warmUp();
    const { address, verbs } = gateway;
    const does = steer === undefined ? 'changes nothing' : 'steers the sessions of Claude Code and Codex';
    printText(
      `The gateway listens on ${address} and ${does}.\n` +
        (verbs === undefined ? '' : `For the model's own tools, start the agent with ${STEER_VARIABLE}=${verbs}\n`) +
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
