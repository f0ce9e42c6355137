import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const run = (command: string, ...args: readonly string[]): unknown => execFileSync(command, args, { stdio: 'ignore' });

/** Mounts an empty filesystem of a size (`512k`) over a folder. */
export const mountSmall = (folder: string, size: string): unknown =>
  run('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder);

/** Unmounts it, even if files on it are open. */
export const unmount = (folder: string): unknown => run('umount', '--lazy', folder);

/** Returns whether a test may mount on this machine. Tries it in a temporary folder. */
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
 * Swaps the names of each pair repeatedly with renameat2 and RENAME_EXCHANGE, which Node does not
 * offer. The pauses leave CPU time to the attacked process.
 */
const EXCHANGE = `$| = 1; my ($call, $times, @names) = @ARGV; $call += 0;
for (my $n = 0; $times == 0 || $n < $times; $n++) {
  for (my $at = 0; $at < @names; $at += 2) {
    syscall($call, -100, $names[$at], -100, $names[$at + 1], 2) == 0 or die "$!";
  }
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

/** Returns whether this machine can exchange two names. Tries it in a temporary folder. */
export function canExchange(): boolean {
  if (process.platform !== 'linux' || RENAMEAT2[process.arch] === undefined) return false;
  const folder = mkdtempSync(join(tmpdir(), 'palimpsest-probe-'));
  const names = ['one', 'two'].map((name) => join(folder, name));
  for (const name of names) writeFileSync(name, '');
  const { status } = spawnSync('perl', exchange(1, names));
  rmSync(folder, { recursive: true });
  return status === 0;
}

/** Swaps the names of each pair until it is killed. Resolves once it has begun. */
export async function exchangeNames(names: readonly string[]): Promise<ChildProcess> {
  const child = spawn('perl', exchange(0, names), { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}
