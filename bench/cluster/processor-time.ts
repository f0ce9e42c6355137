import { readFileSync } from 'node:fs';

/** `sysconf(_SC_CLK_TCK)`: the kernel counts a process's time in these, whatever the machine. */
const TICKS_A_SECOND = 100;

/** Milliseconds of processor time that a process has taken, all of its threads together; NaN where there is no /proc. */
export function processorMs(pid: number): number {
  try {
    // The name in brackets may hold anything; the fields after it are numbers.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_A_SECOND;
  } catch {
    return Number.NaN;
  }
}
