import { readFileSync } from 'node:fs';

/** Returns the resident memory of a process, MiB. */
export function residentMiB(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  if (kib === undefined) throw new Error(`the memory of process ${pid} cannot be read`);
  return Math.round(Number(kib) / 1024);
}
