import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { arch, cpus, loadavg, platform, totalmem } from 'node:os';
import { projectFolder } from './workshop.js';

/** The machine and the code of a run. */
export interface Machine {
  readonly date: string;
  readonly commit: string;
  readonly command: string;
  readonly system: string;
  readonly processor: string;
  readonly memoryGiB: number;
  readonly node: string;
  readonly java: string;
  /** Runnable programs at the start, averaged over a minute. */
  readonly load: number;
}

function firstLine(command: string, args: readonly string[]): string {
  const { stdout, stderr } = spawnSync(command, args, { cwd: projectFolder, encoding: 'utf8' });
  return `${stdout ?? ''}${stderr ?? ''}`.split('\n')[0] ?? '';
}

/** Describes the machine and the state of the project. */
export function describeMachine(args: readonly string[]): Machine {
  const changed = spawnSync('git', ['status', '--porcelain', '--untracked-files=no', '--', 'src', 'xtdb', 'bench'], {
    cwd: projectFolder,
    encoding: 'utf8',
  });
  return {
    date: new Date().toISOString(),
    commit:
      firstLine('git', ['rev-parse', '--short=12', 'HEAD']) +
      (changed.stdout === '' ? '' : ' with uncommitted changes'),
    command: ['npm run bench', ...(args.length === 0 ? [] : ['--', ...args])].join(' '),
    system: `${platform()} ${arch()}`,
    processor: `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    java: firstLine(process.env.JAVA_HOME ? `${process.env.JAVA_HOME}/bin/java` : 'java', ['-version']),
    load: loadavg()[0] ?? 0,
  };
}

/** Returns the peak resident memory of a process in bytes; 0 once it has ended. */
export async function peakBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1_024;
}
