import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import * as z from 'zod';

/** One process for its whole life: the pid alone may be given to another process later, pid and start together not. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the words of the system: comparable for equality only. */
  readonly started: string;
}

/** A process as it stands in files: its id, and when it was started, which tells it from a later one with that id. */
export const processIdentitySchema = z.object({ pid: z.int().positive(), started: z.string().min(1) });

/**
 * The start of a process out of the text of `/proc/<pid>/stat`; undefined for a dead process that only waits to be reaped.
 * The name in parentheses may itself hold spaces and parentheses, so fields are counted from the last one.
 */
export function startFromStat(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const ticks = fields[19];
  if (state === undefined || state === 'Z' || state === 'X' || ticks === undefined) return undefined;
  return ticks;
}

/** The start of a process out of `ps -o stat=,lstart=`; undefined when there is none or it only waits to be reaped. */
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
    // Ticks count from boot, so they repeat after a restart of the machine.
    return ticks === undefined ? undefined : `${await readBootId()}:${ticks}`;
  }
  const ps = await promisify(execFile)('ps', ['-o', 'stat=,lstart=', '-p', String(pid)]).catch(() => undefined);
  return ps === undefined ? undefined : startFromPs(ps.stdout);
}

/** The identity of a living process; undefined when there is none with this pid. */
export async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const started = await processStart(pid);
  return started === undefined ? undefined : { pid, started };
}

let own: Promise<ProcessIdentity> | undefined;
/** This process. */
export function identifySelf(): Promise<ProcessIdentity> {
  own ??= identifyProcess(process.pid).then((identity) => identity ?? { pid: process.pid, started: 'unknown' });
  return own;
}

/** Whether exactly this process still runs; false when its pid now belongs to another one. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  const now = await identifyProcess(identity.pid);
  return now !== undefined && now.started === identity.started;
}

/**
 * Whether a process was one of this machine since it was started last, so that `isAlive` has the last word on it. False for one that may run on another
 * host, and where the system tells no boot from another.
 */
export async function ranHere({ started }: ProcessIdentity): Promise<boolean> {
  return process.platform === 'linux' && started.startsWith(`${await readBootId()}:`);
}

/** Sends a signal to exactly this process; nothing happens when it has gone. */
export async function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): Promise<void> {
  if (!(await isAlive(identity))) return;
  try {
    process.kill(identity.pid, signal);
  } catch {
    // It went between the look and the signal.
  }
}
