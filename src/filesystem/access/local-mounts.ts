import { readFileSync } from 'node:fs';

/** Kinds of filesystems that answer from this machine, and views of its kernel. Any other kind may wait for something else: a server, another program, a mount on demand. */
const LOCAL: ReadonlySet<string> = new Set(
  [
    'ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs jfs vfat msdos exfat ntfs3 iso9660 udf squashfs erofs',
    'tmpfs ramfs rootfs overlay hugetlbfs',
    'proc sysfs devtmpfs devpts mqueue cgroup cgroup2 securityfs debugfs tracefs bpf configfs pstore efivarfs binfmt_misc fusectl nsfs selinuxfs',
  ].flatMap((kinds) => kinds.split(' ')),
);

/** How long an answer holds. */
const HOLDS_MS = 1_000;

/** Whether all mounts of a table, as `/proc/self/mountinfo` has it, are of kinds that answer from this machine; false for a table that cannot be understood. */
export function isLocalTable(mountinfo: string): boolean {
  const lines = mountinfo.split('\n').filter((line) => line !== '');
  // Fields of which any number may be there end with a dash; the kind follows.
  return lines.length > 0 && lines.every((line) => LOCAL.has(/ - ([^ ]+) /.exec(line)?.[1] ?? ''));
}

let asked = { at: Number.NEGATIVE_INFINITY, local: false };

/**
 * Whether every mount that this process could reach, whichever way a path leads, is of this machine. Then asking for what is on it keeps nobody waiting, and needs no
 * thread, which takes longer than a local answer; a mount over a network may hang, and with it every session of the process. As of a second ago at most; false
 * where the system has no table of mounts.
 */
export function mountsAreLocal(): boolean {
  const now = performance.now();
  if (now - asked.at < HOLDS_MS) return asked.local;
  let local = false;
  try {
    local = isLocalTable(readFileSync('/proc/self/mountinfo', 'utf8'));
  } catch {
    // Another system, or no such view here.
  }
  asked = { at: now, local };
  return local;
}
