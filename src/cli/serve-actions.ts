import { setFlagsFromString } from 'node:v8';
import { reportFailure } from './report-failure.js';
import type { ServeFlags, ServerFlags } from './server-flags.js';
import { serverSettings } from './server-settings.js';

/** `mcp` */
export async function mcpAction(version: string, flags: ServerFlags): Promise<void> {
  // One agent's calls leave little behind: where objects are new, 2 MiB do instead of the 32 MiB that V8 grows to, which is a quarter of the process.
  setFlagsFromString('--semi-space-growth-factor=1');
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
