import { readFileSync } from 'node:fs';

/**
 * Returns the milliseconds of processor time that a process and its children have used so far.
 * Linux counts 100 ticks a second.
 */
export function processorTime(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  return 10 * (user + system) + children.reduce((sum, child) => sum + processorTime(child), 0);
}
