import { reportFailure } from './report-failure.js';
import type { ServeFlags, ServerFlags } from './server-flags.js';
import { serverSettings } from './server-settings.js';
import { limitYoungGeneration } from './young-generation.js';

/** One agent's calls leave little behind; with less than this, texts of 100 KB outlive their calls, which costs a quarter of the calls' time. */
const YOUNG_BYTES = 8 * 1_048_576;

/** `mcp` */
export async function mcpAction(version: string, flags: ServerFlags): Promise<void> {
  limitYoungGeneration(YOUNG_BYTES);
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
