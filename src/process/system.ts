import { dirname, win32 } from 'node:path';

/** The traits of an operating system on which other code depends. */
export interface SystemTraits {
  /** How a node of this machine is reached. Node.js has no unix sockets on Windows. */
  readonly nodeTransport: 'unix' | 'tcp';
  /** The ending of a program's file, and of a script that stands for one. */
  readonly programEnding: '' | '.exe';
  readonly scriptEnding: '' | '.cmd';
  /**
   * Where a program is started by its name alone, if not in the folder of this process. Windows
   * searches that folder before the PATH, and a cloned project must not choose the program.
   */
  readonly searchedFolder: string | undefined;
  /** Whether every user may make symbolic links. On Windows that takes a privilege. */
  readonly hasLinks: boolean;
  /** Whether the names in a folder can be flushed. NTFS logs them by itself. */
  readonly flushesFolders: boolean;
  /**
   * Whether a signal asks a process, or a group of them, to end. On Windows every signal ends one
   * process at once.
   */
  readonly hasSignals: boolean;
  /** Whether a file keeps its name while another process has it open. */
  readonly holdsOpenFiles: boolean;
  /** The command that opens an address for a person. */
  readonly opener: readonly [string, ...string[]];
}

const LINUX: SystemTraits = {
  nodeTransport: 'unix',
  programEnding: '',
  scriptEnding: '',
  searchedFolder: undefined,
  hasLinks: true,
  flushesFolders: true,
  hasSignals: true,
  holdsOpenFiles: false,
  opener: ['xdg-open'],
};

/**
 * Returns the place of a program of Windows itself. Windows would search a bare name in the working
 * folder first, which may be a cloned project.
 */
export const windowsProgram = (...names: readonly string[]): string => win32.join('C:\\Windows', 'System32', ...names);

/** Returns the traits of a system. An unnamed one is taken for a Linux. */
export function traitsOf(platform: NodeJS.Platform): SystemTraits {
  if (platform === 'darwin') return { ...LINUX, opener: ['open'] };
  if (platform !== 'win32') return LINUX;
  return {
    nodeTransport: 'tcp',
    programEnding: '.exe',
    scriptEnding: '.cmd',
    searchedFolder: dirname(process.execPath),
    hasLinks: false,
    flushesFolders: false,
    hasSignals: false,
    holdsOpenFiles: true,
    opener: [windowsProgram('cmd.exe'), '/d', '/c', 'start', ''],
  };
}

/** The traits of the system that this process runs on. */
export const SYSTEM: SystemTraits = traitsOf(process.platform);
