import { parseLaunchPlan } from '../node/launch.js';
import { superviseNode } from '../node/supervise.js';
import { reportFailure } from './report-failure.js';

/** `node supervise`: what `node start` leaves running in the background. SIGTERM and SIGINT stop the node; a closed terminal does not. */
export async function superviseAction(plan: string): Promise<void> {
  await reportFailure({}, async () => {
    const stop = new AbortController();
    process.on('SIGTERM', () => stop.abort());
    process.on('SIGINT', () => stop.abort());
    process.on('SIGHUP', () => undefined);
    process.exitCode = await superviseNode({ plan: parseLaunchPlan(plan), env: process.env, stop: stop.signal });
  });
}
