import { reportFailure } from './report-failure.js';
import type { ServeFlags, ServerFlags } from './server-flags.js';
import { serverSettings } from './server-settings.js';

/** `mcp` */
export async function mcpAction(version: string, flags: ServerFlags): Promise<void> {
  await reportFailure({}, async () => {
    const settings = serverSettings(process.env, process.cwd(), version, flags);
    const { serveStdio } = await import('../mcp/stdio.js');
    await serveStdio(settings, flags.logLevel);
  });
}

/** `serve` */
export async function serveAction(version: string, flags: ServeFlags): Promise<void> {
  await reportFailure({}, async () => {
    const settings = serverSettings(process.env, process.cwd(), version, flags);
    const { serveHttp } = await import('../http/serve.js');
    const { port, tokenFile, token, logLevel } = flags;
    await serveHttp(settings, { port, tokenFile, noToken: !token, logLevel });
  });
}
