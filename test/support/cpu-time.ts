/** The processor time that some synchronous work takes in this process, in milliseconds: what else the machine does is not in it. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
