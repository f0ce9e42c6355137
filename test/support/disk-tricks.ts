import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const run = (command: string, ...args: readonly string[]): unknown => execFileSync(command, args, { stdio: 'ignore' });

/** Mounts an empty filesystem of a size (`512k`) over a folder. */
export const mountSmall = (folder: string, size: string): unknown => run('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder);

/** Takes it away again, whoever still has a file of it open. */
export const unmount = (folder: string): unknown => run('umount', '--lazy', folder);

/** Whether this machine lets a test mount something; tried out in a folder that is gone afterwards. */
export function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'palimpsest-probe-'));
  try {
    mountSmall(folder, '64k');
    unmount(folder);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * renameat2 with RENAME_EXCHANGE, which Node does not offer: the names of each pair change places at once, again and again. The pauses leave the machine to
 * those who are attacked.
 */
const EXCHANGE = `$| = 1; my ($call, $times, @names) = @ARGV; $call += 0;
for (my $n = 0; $times == 0 || $n < $times; $n++) {
  for (my $at = 0; $at < @names; $at += 2) { syscall($call, -100, $names[$at], -100, $names[$at + 1], 2) == 0 or die "$!"; }
  print "going" if $n == 0;
  select(undef, undef, undef, 0.0003);
}`;
const RENAMEAT2: Readonly<Partial<Record<string, string>>> = { x64: '316', arm64: '276' };
const exchange = (times: number, names: readonly string[]): string[] => [
  '-e',
  EXCHANGE,
  RENAMEAT2[process.arch] ?? '',
  String(times),
  ...names,
];

/** Whether this machine has what exchanges two names; tried out in a folder that is gone afterwards. */
export function canExchange(): boolean {
  if (process.platform !== 'linux' || RENAMEAT2[process.arch] === undefined) return false;
  const folder = mkdtempSync(join(tmpdir(), 'palimpsest-probe-'));
  const names = ['one', 'two'].map((name) => join(folder, name));
  for (const name of names) writeFileSync(name, '');
  const { status } = spawnSync('perl', exchange(1, names));
  rmSync(folder, { recursive: true });
  return status === 0;
}

/** Exchanges the names of each pair of a list until it is killed; has begun when it resolves. */
export async function exchangeNames(names: readonly string[]): Promise<ChildProcess> {
  const child = spawn('perl', exchange(0, names), { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}
