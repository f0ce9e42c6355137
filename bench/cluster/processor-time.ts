import { readFileSync } from 'node:fs';

/** `sysconf(_SC_CLK_TCK)`, the unit in which the kernel counts CPU time, on every machine. */
const TICKS_A_SECOND = 100;

/** Returns the CPU time of a process and all its threads in milliseconds. NaN without /proc. */
export function processorMs(pid: number): number {
  try {
    // The name in brackets may contain any text. The fields after it are numbers.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_A_SECOND;
  } catch {
    return Number.NaN;
  }
}
