import { readFileSync } from 'node:fs';
import { dirname } from 'node:path/posix';

/** Kinds of filesystems that answer from this machine, and views of its kernel. Any other kind may wait for something else: a server, another program, a mount on demand. */
const LOCAL: ReadonlySet<string> = new Set(
  [
    'ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs jfs vfat exfat ntfs3 squashfs erofs',
    'tmpfs ramfs rootfs hugetlbfs',
    'proc sysfs devtmpfs devpts mqueue cgroup cgroup2 securityfs debugfs tracefs bpf configfs pstore efivarfs binfmt_misc fusectl nsfs selinuxfs',
  ].flatMap((kinds) => kinds.split(' ')),
);

/** Mounted on demand on every machine with systemd: a view of the kernel. */
const BINARY_FORMATS = '/proc/sys/fs/binfmt_misc';

interface Mount {
  readonly place: string;
  readonly kind: string;
  readonly options: string;
}

/** Fields of which any number may be there end with a dash; kind, device and the options of the kind follow. */
const LINE = /^\d+ \d+ \S+ \S+ (?<place>\S+) \S+ (?:\S+ )*?- (?<kind>\S+) \S+ (?<options>\S*)$/;

/** The layers of an overlay as its options name them; undefined where one cannot be understood: a relative path, or one with signs that are written otherwise. */
function layersOf(options: string): readonly string[] | undefined {
  const named = [...options.matchAll(/(?:^|,)(?:lowerdir|datadir|upperdir|workdir)\+?=([^,]*)/g)];
  const layers = named.flatMap(([, paths = '']) => paths.split(':')).filter((path) => path !== '');
  return layers.length > 0 && layers.every((path) => path.startsWith('/') && !path.includes('\\')) ? layers : undefined;
}

/** Whether all layers of an overlay lie on mounts of the table that are none themselves. In a container they do not: what the machine has them on cannot be seen from there. */
function hasKnownLayers({ options }: Mount, kinds: ReadonlyMap<string, string>): boolean {
  const holder = (path: string): string | undefined => kinds.get(path) ?? (path === '/' ? undefined : holder(dirname(path)));
  return layersOf(options)?.every((path) => (holder(path) ?? 'overlay') !== 'overlay') ?? false;
}

/**
 * Whether all mounts of a table, as `/proc/self/mountinfo` has it, are of kinds that answer from this machine; false for a table that cannot be understood. A disk of this machine that is
 * itself on a network (iSCSI) cannot be told from another.
 */
export function isLocalTable(mountinfo: string): boolean {
  const lines = mountinfo.split('\n').filter((line) => line !== '');
  const mounts = lines.map((line) => LINE.exec(line)?.groups as Mount | undefined);
  const all = mounts.flatMap((mount) => mount ?? []);
  const isLocal = ({ kind, place }: Mount): boolean =>
    LOCAL.has(kind) || kind === 'overlay' || (kind === 'autofs' && place === BINARY_FORMATS);
  if (lines.length === 0 || all.length < lines.length || !all.every(isLocal)) return false;
  // Of mounts at one place the last one is seen.
  const kinds = new Map(all.map(({ place, kind }) => [place, kind]));
  return all.every((mount) => mount.kind !== 'overlay' || hasKnownLayers(mount, kinds));
}

/** How long an answer holds. */
const HOLDS_MS = 1_000;

let asked = { at: Number.NEGATIVE_INFINITY, table: '', local: false };

/**
 * Whether every mount that this process could reach, whichever way a path leads, is of this machine. Then asking for what is on it keeps nobody waiting, and needs no
 * thread, which takes longer than a local answer; a mount over a network may hang, and with it every session of the process. As of a second ago at most; false
 * where the system has no table of mounts.
 */
export function mountsAreLocal(): boolean {
  const now = performance.now();
  if (now - asked.at < HOLDS_MS) return asked.local;
  let table = '';
  try {
    table = readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    // Another system, or no such view here.
  }
  asked = { at: now, table, local: table === asked.table ? asked.local : isLocalTable(table) };
  return asked.local;
}
