import { Backend } from '../host/backend.js';
import { createLog, type LogLevel } from '../host/log.js';
import type { ServerSettings } from '../host/settings.js';
import { openTelemetry } from '../host/telemetry.js';
import { withinLimit } from '../process/within-limit.js';
import { openConnection } from './connection.js';
import { StdioTransport } from './stdio-transport.js';

/** How long running calls may go on after the client has gone, by how it went. */
const DRAIN_MS = { 'end of input': 120_000, signal: 3_000 } as const;
/** What closing may take before the process ends by force: longer than a client that closes waits for its database. */
const LAST_MS = 20_000;

/**
 * Serves one client over stdin and stdout until its input ends or a signal comes; then lets running calls finish, closes everything, and resolves.
 * `initialize` is answered before anything else is loaded; node and client start right after it.
 */
export async function serveStdio(settings: ServerSettings, logLevel: LogLevel): Promise<void> {
  const log = createLog(logLevel);
  const { telemetry, close } = await openTelemetry({ log, env: settings.telemetry, version: settings.version });
  const backend = new Backend(settings, log, telemetry);
  const connection = openConnection(backend, settings, log);
  const transport = new StdioTransport(process.stdin, process.stdout);
  const ended = new Promise<keyof typeof DRAIN_MS>((resolve) => {
    process.stdin.once('end', () => resolve('end of input'));
    process.stdin.once('close', () => resolve('end of input'));
    process.stdout.on('error', () => resolve('signal'));
    // They stay: a file that is just being written has a listener of its own, which ends the process by the signal when it is the only one.
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve('signal'));
  });
  connection.server.oninitialized = () => backend.warmUp();
  await connection.server.connect(transport);
  transport.direct = connection.direct(transport);

  const why = await ended;
  log.debug({ why }, 'shutting down');
  await withinLimit(connection.idle(), { ms: DRAIN_MS[why], keepsAlive: true }, () => undefined);
  await connection.server.close();
  // A node that does not answer any more must not keep the process alive.
  setTimeout(() => process.exit(1), LAST_MS).unref();
  await connection.close();
  await backend.close();
  await close();
}
