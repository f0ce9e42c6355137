import { spawn } from 'node:child_process';
import { SYSTEM, windowsProgram } from './system.js';

/** Options of `spawn` that let `signalGroup` reach a child and all that it starts. */
export const OWN_GROUP = { detached: SYSTEM.hasSignals, windowsHide: true } as const;

/**
 * Sends a signal to a child that has its own process group, and to all that it started. On Windows
 * any signal ends them at once. Does nothing if they have ended.
 */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  if (!SYSTEM.hasSignals) {
    const child = spawn(windowsProgram('taskkill.exe'), ['/pid', String(pid), '/t', '/f'], {
      stdio: 'ignore',
      windowsHide: true,
    });
    child.on('error', () => undefined);
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has already ended.
  }
}
