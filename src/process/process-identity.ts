import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import * as z from 'zod';
import { codeOf } from '../values/thrown.js';
import { windowsProgram } from './system.js';

/**
 * Identifies one process for its whole life. The system may reuse a pid, but not a pid with the
 * same start.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** The start of the process in the system's notation; only comparable for equality. */
  readonly started: string;
}

/** Schema of a process identity in files. */
export const processIdentitySchema = z.object({ pid: z.int().positive(), started: z.string().min(1) });

/**
 * Parses the start of a process from `/proc/<pid>/stat`. Returns undefined for a zombie. The name
 * in parentheses may itself contain spaces and parentheses, so fields are counted after the last
 * one.
 */
export function startFromStat(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const ticks = fields[19];
  if (state === undefined || state === 'Z' || state === 'X' || ticks === undefined) return undefined;
  return ticks;
}

/**
 * Parses the start of a process from `ps -o stat=,lstart=`. Returns undefined for a zombie or no
 * process.
 */
export function startFromPs(line: string): string | undefined {
  const match = /^\s*(\S+)\s+(\S.*?)\s*$/.exec(line);
  if (match === null || match[1] === undefined || match[1].startsWith('Z')) return undefined;
  return match[2];
}

let bootId: Promise<string> | undefined;
function readBootId(): Promise<string> {
  bootId ??= readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (text) => text.trim(),
    () => 'boot',
  );
  return bootId;
}

/**
 * Stands for the start of a process if Windows does not report it. It equals every start. So a lock
 * may wait for a later process with that pid, but never has two owners.
 */
export const UNKNOWN_START = 'unknown';

/** Parses the start of a process from PowerShell: 100 nanoseconds since 1601. */
export function startFromPowerShell(text: string): string {
  return /^\s*(\d{15,20})\s*$/.exec(text)?.[1] ?? UNKNOWN_START;
}

/** Milliseconds that a start is cached, because PowerShell takes a third of a second. */
const KEPT_MS = 10_000;
const POWERSHELL_MS = 20_000;
const windowsStarts = new Map<number, { readonly at: number; readonly start: Promise<string> }>();

/** Returns the start of a process on Windows; undefined if no process has this pid. */
async function windowsStart(pid: number): Promise<string | undefined> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // `EPERM` means that the process exists and belongs to another user.
    if (codeOf(error) !== 'EPERM') return undefined;
  }
  const known = windowsStarts.get(pid);
  if (known !== undefined && performance.now() - known.at < KEPT_MS) return known.start;
  const script = `(Get-Process -Id ${pid}).StartTime.ToFileTimeUtc()`;
  const start = promisify(execFile)(
    windowsProgram('WindowsPowerShell', 'v1.0', 'powershell.exe'),
    ['-NoProfile', '-NonInteractive', '-Command', script],
    { timeout: POWERSHELL_MS, windowsHide: true },
  ).then(
    ({ stdout }) => startFromPowerShell(stdout),
    () => UNKNOWN_START,
  );
  windowsStarts.set(pid, { at: performance.now(), start });
  return start;
}

async function processStart(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
    const ticks = stat === undefined ? undefined : startFromStat(stat);
    // Ticks count from boot, so they repeat after a reboot.
    return ticks === undefined ? undefined : `${await readBootId()}:${ticks}`;
  }
  if (process.platform === 'win32') return windowsStart(pid);
  const ps = await promisify(execFile)('ps', ['-o', 'stat=,lstart=', '-p', String(pid)]).catch(() => undefined);
  return ps === undefined ? undefined : startFromPs(ps.stdout);
}

/** Returns the identity of a living process. Undefined if no process has this pid. */
export async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const started = await processStart(pid);
  return started === undefined ? undefined : { pid, started };
}

let own: Promise<ProcessIdentity> | undefined;
/** Returns the identity of this process. */
export function identifySelf(): Promise<ProcessIdentity> {
  own ??= identifyProcess(process.pid).then((identity) => identity ?? { pid: process.pid, started: UNKNOWN_START });
  return own;
}

/** Returns whether exactly this process still runs; false if another process now has its pid. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  const now = await identifyProcess(identity.pid);
  if (now === undefined || now.started === identity.started) return now !== undefined;
  return process.platform === 'win32' && [now.started, identity.started].includes(UNKNOWN_START);
}

/**
 * Returns whether a process ran on this machine since its last boot, so that `isAlive` is
 * conclusive. False if the process may run on another host, and on systems without a boot id.
 */
export async function ranHere({ started }: ProcessIdentity): Promise<boolean> {
  return process.platform === 'linux' && started.startsWith(`${await readBootId()}:`);
}

/** Sends a signal to exactly this process. Does nothing if it has ended. */
export async function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): Promise<void> {
  if (!(await isAlive(identity))) return;
  try {
    process.kill(identity.pid, signal);
  } catch {
    // The process ended between the check and the signal.
  }
}
