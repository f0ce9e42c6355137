import { dirname, win32 } from 'node:path';

/** The traits of an operating system on which other code depends. */
export interface SystemTraits {
  /** How a node on this machine is reached. Node.js has no unix sockets on Windows. */
  readonly nodeTransport: 'unix' | 'tcp';
  /** The ending of a program's file name. */
  readonly programEnding: '' | '.exe';
  readonly scriptEnding: '' | '.cmd';
  /**
   * The working folder in which a program is started by its bare name; undefined for that of this
   * process. Windows searches the working folder before the PATH, and a cloned project must not
   * choose the program.
   */
  readonly searchedFolder: string | undefined;
  /** Whether every user may create symbolic links. On Windows that needs a privilege. */
  readonly hasLinks: boolean;
  /** Whether the names in a folder can be flushed. NTFS logs them by itself. */
  readonly flushesFolders: boolean;
  /**
   * Whether a signal can ask a process or a process group to end. On Windows, every signal ends one
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
 * Returns the path of a program that is part of Windows. Windows would first search a bare name in
 * the working folder, which may be a cloned project.
 */
export const windowsProgram = (...names: readonly string[]): string => win32.join('C:\\Windows', 'System32', ...names);

/** Returns the traits of a system. Treats an unknown system as Linux. */
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
