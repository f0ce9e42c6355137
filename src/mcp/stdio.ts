import { Backend } from '../host/backend.js';
import { createLog, type LogLevel } from '../host/log.js';
import type { ServerSettings } from '../host/settings.js';
import { openTelemetry } from '../host/telemetry.js';
import { withinLimit } from '../process/within-limit.js';
import { openConnection } from './connection.js';
import { StdioTransport } from './stdio-transport.js';

/** How long running calls may continue after the client has gone, by cause. */
const DRAIN_MS = { 'end of input': 120_000, signal: 3_000 } as const;
/**
 * Maximum time for closing before a forced exit. It is longer than a closing client waits for its
 * database.
 */
const LAST_MS = 20_000;

/** Opens this process's stdin and stdout for one client. `ended` resolves with the cause. */
export function openStdio(): { readonly transport: StdioTransport; readonly ended: Promise<keyof typeof DRAIN_MS> } {
  const ended = new Promise<keyof typeof DRAIN_MS>((resolve) => {
    process.stdin.once('end', () => resolve('end of input'));
    process.stdin.once('close', () => resolve('end of input'));
    process.stdout.on('error', () => resolve('signal'));
    // Keep the listeners. Each file write has its own listener, which would end the process on the
    // signal if it were the only one.
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve('signal'));
  });
  return { transport: new StdioTransport(process.stdin, process.stdout), ended };
}

/**
 * Serves one client over stdin and stdout until its input ends or a signal arrives. Then lets
 * running calls finish, closes everything and resolves. `initialize` is answered before other code
 * is loaded. The node and the client start right after it.
 */
export async function serveStdio(settings: ServerSettings, logLevel: LogLevel): Promise<void> {
  const log = createLog(logLevel);
  const { telemetry, close } = await openTelemetry({ log, env: settings.telemetry, version: settings.version });
  const backend = new Backend(settings, log, telemetry);
  const connection = openConnection(backend, settings, log);
  const { transport, ended } = openStdio();
  connection.server.oninitialized = () => backend.warmUp();
  await connection.server.connect(transport);

  const why = await ended;
  log.debug({ why }, 'shutting down');
  await withinLimit(connection.idle(), { ms: DRAIN_MS[why], keepsAlive: true }, () => undefined);
  await connection.server.close();
  // An unresponsive node must not keep the process alive.
  setTimeout(() => process.exit(1), LAST_MS).unref();
  await connection.close();
  await backend.close();
  await close();
}
