/**
 * Returns the CPU time of synchronous work in this process, in milliseconds. Other load of the
 * machine does not count.
 */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
