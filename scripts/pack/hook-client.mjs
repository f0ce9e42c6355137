import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { projectRoot as root } from '../bundle.mjs';
import { run } from './run.mjs';

/** Zig compiles C for all platforms. The hash is that of its package for Linux on x64. */
const ZIG = { version: '0.17.1', sha256: 'ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54' };

/** Zig's names of the platforms. With musl, a program for Linux needs no system library. */
const TARGETS = {
  'linux-x64': 'x86_64-linux-musl',
  'linux-arm64': 'aarch64-linux-musl',
  'darwin-arm64': 'aarch64-macos',
  'darwin-x64': 'x86_64-macos',
};

const SOURCE = join(root, 'src', 'hooks', 'native', 'palimpsest-hook.c');

/** Puts Zig into a folder. Returns the variables with which Python finds it, and musl's licence. */
async function fetchZig(folder) {
  await mkdir(folder, { recursive: true });
  const wanted = join(folder, 'wanted.txt');
  await writeFile(wanted, `ziglang==${ZIG.version} --hash=sha256:${ZIG.sha256}\n`);
  const options = ['--quiet', '--no-deps', '--only-binary=:all:', '--require-hashes', '--target', folder];
  await run('python3', ['-m', 'pip', 'install', ...options, '-r', wanted], {
    missing: 'Install Python 3 with pip, or leave the other platforms out with --platform.',
  });
  const env = { ...process.env, PYTHONPATH: folder, ZIG_GLOBAL_CACHE_DIR: join(folder, 'cache') };
  return { env, licence: await readFile(join(folder, 'ziglang', 'lib', 'libc', 'musl', 'COPYRIGHT'), 'utf8') };
}

/**
 * Returns a function that compiles the client of hooks for a platform into a file, and returns the
 * licences of its code. Fetches Zig once. Windows has no such client, because Node.js has no Unix
 * sockets on Windows.
 */
export function hookCompiler(draft) {
  let zig;
  return async (platform, to) => {
    const target = TARGETS[platform];
    if (target === undefined) return [];
    zig ??= fetchZig(join(draft, 'zig'));
    const { env, licence } = await zig;
    const options = ['-target', target, '-Os', '-s', '-std=c11', '-D_DEFAULT_SOURCE', '-D_DARWIN_C_SOURCE'];
    await run('python3', ['-m', 'ziglang', 'cc', ...options, '-o', to, SOURCE], { env });
    await chmod(to, 0o755);
    const musl = { name: 'musl', version: `of Zig ${ZIG.version}`, licences: ['MIT'], texts: [licence] };
    return target.endsWith('musl') ? [musl] : [];
  };
}
