import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import * as z from 'zod';

/**
 * Identifies one process for its whole life. The system may reuse a pid, but not a pid with the
 * same start.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** The start of the process in the system's notation; only comparable for equality. */
  readonly started: string;
}

/**
 * Schema of a process in files: its pid, and its start, which no later process with that pid
 * shares.
 */
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

async function processStart(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
    const ticks = stat === undefined ? undefined : startFromStat(stat);
    // Ticks count from boot, so they repeat after a reboot.
    return ticks === undefined ? undefined : `${await readBootId()}:${ticks}`;
  }
  const ps = await promisify(execFile)('ps', ['-o', 'stat=,lstart=', '-p', String(pid)]).catch(() => undefined);
  return ps === undefined ? undefined : startFromPs(ps.stdout);
}

/** Returns the identity of a living process; undefined if no process has this pid. */
export async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const started = await processStart(pid);
  return started === undefined ? undefined : { pid, started };
}

let own: Promise<ProcessIdentity> | undefined;
/** Returns the identity of this process. */
export function identifySelf(): Promise<ProcessIdentity> {
  own ??= identifyProcess(process.pid).then((identity) => identity ?? { pid: process.pid, started: 'unknown' });
  return own;
}

/** Returns whether exactly this process still runs; false if another process now has its pid. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  const now = await identifyProcess(identity.pid);
  return now !== undefined && now.started === identity.started;
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
