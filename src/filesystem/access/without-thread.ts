import { readFileSync } from 'node:fs';
import { dirname } from 'node:path/posix';

/**
 * Filesystem types that this machine answers itself, and views of its kernel. Any other type may
 * wait for a server, another program or a mount on demand.
 */
const LOCAL: ReadonlySet<string> = new Set(
  [
    'ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs jfs vfat exfat ntfs3 squashfs erofs',
    'tmpfs ramfs rootfs hugetlbfs',
    'proc sysfs devtmpfs devpts mqueue cgroup cgroup2',
    'securityfs debugfs tracefs bpf configfs pstore efivarfs binfmt_misc fusectl nsfs selinuxfs',
  ].flatMap((kinds) => kinds.split(' ')),
);

/** Mounted on demand on every machine with systemd; a view of the kernel. */
const BINARY_FORMATS = '/proc/sys/fs/binfmt_misc';

interface Mount {
  readonly place: string;
  readonly kind: string;
  readonly options: string;
}

/** A dash ends the variable number of fields. Type, device and the type's options follow. */
const LINE = /^\d+ \d+ \S+ \S+ (?<place>\S+) \S+ (?:\S+ )*?- (?<kind>\S+) \S+ (?<options>\S*)$/;

/**
 * Returns the layers of an overlay from its options; undefined if one is a relative path or
 * contains escaped characters.
 */
function layersOf(options: string): readonly string[] | undefined {
  const named = [...options.matchAll(/(?:^|,)(?:lowerdir|datadir|upperdir|workdir)\+?=([^,]*)/g)];
  const layers = named.flatMap(([, paths = '']) => paths.split(':')).filter((path) => path !== '');
  return layers.length > 0 && layers.every((path) => path.startsWith('/') && !path.includes('\\')) ? layers : undefined;
}

/**
 * Returns whether all layers of an overlay lie on mounts of the table that are not overlays. In a
 * container they do not: the underlying mounts are invisible there.
 */
function hasKnownLayers({ options }: Mount, kinds: ReadonlyMap<string, string>): boolean {
  const holder = (path: string): string | undefined =>
    kinds.get(path) ?? (path === '/' ? undefined : holder(dirname(path)));
  return layersOf(options)?.every((path) => (holder(path) ?? 'overlay') !== 'overlay') ?? false;
}

/**
 * Returns whether all mounts of a table in the format of `/proc/self/mountinfo` are local types.
 * False for an unparsable table. A disk over a network (iSCSI) looks like a local one.
 */
export function isLocalTable(mountinfo: string): boolean {
  const lines = mountinfo.split('\n').filter((line) => line !== '');
  const mounts = lines.map((line) => LINE.exec(line)?.groups as Mount | undefined);
  const all = mounts.flatMap((mount) => mount ?? []);
  const isLocal = ({ kind, place }: Mount): boolean =>
    LOCAL.has(kind) || kind === 'overlay' || (kind === 'autofs' && place === BINARY_FORMATS);
  if (lines.length === 0 || all.length < lines.length || !all.every(isLocal)) return false;
  // If several mounts share a place, the last one is visible.
  const kinds = new Map(all.map(({ place, kind }) => [place, kind]));
  return all.every((mount) => mount.kind !== 'overlay' || hasKnownLayers(mount, kinds));
}

/** How long a result is cached. */
const HOLDS_MS = 1_000;

let asked = { at: Number.NEGATIVE_INFINITY, table: '', local: false };

/**
 * Returns whether every mount that this process can reach is local. If so, file access cannot block
 * for long and needs no thread, which would take longer than a local answer. A network mount may
 * hang, and with it every session of the process. The result is at most a second old. False if the
 * system has no mount table.
 */
function mountsAreLocal(): boolean {
  const now = performance.now();
  if (now - asked.at < HOLDS_MS) return asked.local;
  let table = '';
  try {
    table = readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    // Another system, or `/proc` is unavailable.
  }
  asked = { at: now, table, local: table === asked.table ? asked.local : isLocalTable(table) };
  return asked.local;
}

/**
 * Maximum time per turn of the event loop, milliseconds. Further access uses threads, so that the
 * process's other work gets its turn.
 */
const TURN_MS = 5;
/**
 * Milliseconds that no healthy local disk takes. The disk may be starting up or failing, or another
 * program intercepts opening files.
 */
const SLOW_MS = 50;
/** How long all access uses threads after one slow answer, milliseconds. */
const THREADS_MS = 60_000;

/**
 * Decides whether files may be accessed on the event loop's thread. That is faster than the thread
 * pool unless the access blocks.
 */
export class WithoutThread {
  readonly #areLocal: () => boolean;
  readonly #now: () => number;
  #turnBegan: number | undefined;
  #threadsUntil = Number.NEGATIVE_INFINITY;

  constructor(areLocal = mountsAreLocal, now = () => performance.now()) {
    this.#areLocal = areLocal;
    this.#now = now;
  }

  /**
   * Whether the next access needs no thread: all mounts are local, none was slow recently, and this
   * turn of the event loop has time left.
   */
  get may(): boolean {
    const now = this.#now();
    if (now < this.#threadsUntil || !this.#areLocal()) return false;
    if (this.#turnBegan === undefined) {
      this.#turnBegan = now;
      setImmediate(() => {
        this.#turnBegan = undefined;
      });
    }
    return now - this.#turnBegan < TURN_MS;
  }

  /**
   * Runs `work` synchronously and records whether it was slow. Returns its result and rethrows its
   * errors.
   */
  do<T>(work: () => T): T {
    const began = this.#now();
    try {
      return work();
    } finally {
      const ended = this.#now();
      if (ended - began > SLOW_MS) this.#threadsUntil = ended + THREADS_MS;
    }
  }
}

/** The instance of this process. */
export const withoutThread = new WithoutThread();
