import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';

/** The programs of a machine without Java, Maven, git and Python. */
const PROGRAMS = ['sh', 'env', 'cat', 'ls', 'mkdir', 'rm', 'stty', 'uname', 'ps'] as const;

/** The end of a program. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Wall time. */
  readonly ms: number;
}

/** A user of a machine that has Node.js and little else: an empty home, and no network for npm. */
export class BareHome {
  private constructor(
    /** The folder that holds everything of this user. */
    readonly dir: string,
    readonly home: string,
    readonly env: Readonly<Record<string, string>>,
    readonly npmCli: string,
  ) {}

  /** Makes an empty home. */
  static async make(): Promise<BareHome> {
    const dir = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-home-')));
    const [home, bin] = [join(dir, 'home'), join(dir, 'bin')];
    await mkdir(home);
    await mkdir(bin);
    await symlink(process.execPath, join(bin, 'node'));
    const find = async (name: string): Promise<string> =>
      (await promisify(execFile)('sh', ['-c', 'command -v "$0"', name])).stdout.trim();
    for (const name of PROGRAMS) {
      const found = await find(name).catch(() => '');
      if (found !== '') await symlink(await realpath(found), join(bin, name));
    }
    return new BareHome(dir, home, { HOME: home, PATH: bin }, await realpath(await find('npm')));
  }

  /** The prefix of `npm install -g`. */
  get prefix(): string {
    return join(this.dir, 'prefix');
  }

  /** The PATH with the installed programs. */
  get path(): string {
    return [join(this.prefix, 'bin'), this.env.PATH].join(delimiter);
  }

  /** Starts a program in this home. */
  start(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
    return spawn(program, [...args], {
      cwd: this.home,
      env: { ...this.env, PATH: this.path, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  /** Runs a program in this home to its end. */
  run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    const from = performance.now();
    const child = this.start(program, args, env);
    let [stdout, stderr] = ['', ''];
    child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
      stdout += piece;
    });
    child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
      stderr += piece;
    });
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => resolve({ code, stdout, stderr, ms: performance.now() - from }));
    });
  }

  /** Runs npm without a registry. */
  npm(args: readonly string[]): Promise<Ended> {
    return this.run(process.execPath, [this.npmCli, ...args, '--offline', '--no-audit', '--no-fund']);
  }

  /** Installs tarballs as global programs. */
  async install(...tarballs: readonly string[]): Promise<void> {
    const { code, stderr } = await this.npm(['install', '-g', '--prefix', this.prefix, ...tarballs]);
    if (code !== 0) throw new Error(`npm install failed: ${stderr}`);
  }

  /** Runs the installed program. */
  palimpsest(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended> {
    return this.run(join(this.prefix, 'bin', 'palimpsest'), args, env);
  }

  /** The folder of npm's own program, for `npx`. */
  get npxCli(): string {
    return join(dirname(this.npmCli), 'npx-cli.js');
  }

  /**
   * Removes everything of this user. `uninstall` ends the process that makes the node's cache in
   * the background, which would write into a folder that is being removed.
   */
  async remove(): Promise<void> {
    await this.palimpsest(['uninstall']).catch(() => undefined);
    await rm(this.dir, { recursive: true, force: true });
  }
}
