import { execFile } from 'node:child_process';
import { mkdtemp, open, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Spec, Validation } from '@cyclonedx/cyclonedx-library';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PLATFORMS, type Platform, tarball, type Unpacked, unpacked } from './packages.js';

/** The most that npm downloads for one platform. */
const MOST_BYTES = 100_000_000;

interface Expected {
  readonly binary: string;
  readonly limits: Readonly<Record<string, readonly string[]>>;
  readonly rocksdb: string;
  readonly exe: string;
}

const EXPECTED: Readonly<Record<Platform, Expected>> = {
  'linux-x64': {
    binary: 'ELF x86-64',
    limits: { os: ['linux'], cpu: ['x64'], libc: ['glibc'] },
    rocksdb: 'librocksdbjni-linux64.so',
    exe: '',
  },
  'linux-arm64': {
    binary: 'ELF aarch64',
    limits: { os: ['linux'], cpu: ['arm64'], libc: ['glibc'] },
    rocksdb: 'librocksdbjni-linux-aarch64.so',
    exe: '',
  },
  'darwin-arm64': {
    binary: 'Mach-O arm64',
    limits: { os: ['darwin'], cpu: ['arm64'] },
    rocksdb: 'librocksdbjni-osx-arm64.jnilib',
    exe: '',
  },
  'darwin-x64': {
    binary: 'Mach-O x86-64',
    limits: { os: ['darwin'], cpu: ['x64'] },
    rocksdb: 'librocksdbjni-osx-x86_64.jnilib',
    exe: '',
  },
  'win32-x64': {
    binary: 'PE x86-64',
    limits: { os: ['win32'], cpu: ['x64'] },
    rocksdb: 'librocksdbjni-win64.dll',
    exe: '.exe',
  },
};

const MACHINES: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  ELF: { 62: 'x86-64', 183: 'aarch64' },
  'Mach-O': { 16777228: 'arm64', 16777223: 'x86-64' },
  PE: { 34404: 'x86-64' },
};

/** Returns the format and machine of a native binary; undefined for any other file. */
async function binaryType(path: string): Promise<string | undefined> {
  const file = await open(path);
  try {
    const head = Buffer.alloc(4_096);
    await file.read(head, 0, head.length, 0);
    const [format, machine] =
      head.readUInt32BE(0) === 0x7f454c46
        ? ['ELF', head.readUInt16LE(18)]
        : head.readUInt32LE(0) === 0xfeedfacf
          ? ['Mach-O', head.readUInt32LE(4)]
          : head.toString('latin1', 0, 2) === 'MZ'
            ? ['PE', head.readUInt16LE(head.readUInt32LE(60) + 4)]
            : [undefined, 0];
    return format === undefined ? undefined : `${format} ${MACHINES[format]?.[machine] ?? machine.toString(16)}`;
  } finally {
    await file.close();
  }
}

const sbomTrouble = async (text: string): Promise<unknown> =>
  new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text);

describe.each(PLATFORMS)('the package of %s', (platform) => {
  const expected = EXPECTED[platform];
  let found: Unpacked;
  beforeAll(async () => {
    found = await unpacked(tarball(platform));
  });
  afterAll(() => rm(dirname(found.dir), { recursive: true, force: true }));

  test('is installed by os and cpu alone, and runs no script', async () => {
    const manifest = await found.json('package.json');
    expect(manifest).toMatchObject({ name: `@palimpsest/node-${platform}`, ...expected.limits });
    expect(Object.keys(manifest)).not.toContain('scripts');
    expect(Object.keys(manifest)).not.toContain('dependencies');
  });

  test('downloads at most 100 MB together with the program', async () => {
    const sizes = await Promise.all([tarball(), tarball(platform)].map(async (path) => (await stat(path)).size));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(MOST_BYTES);
  });

  test('has native binaries of this platform only', async () => {
    const types = await Promise.all(found.files.map(async (file) => [file, await binaryType(join(found.dir, file))]));
    const binaries = types.filter(([, type]) => type !== undefined);
    expect(binaries.filter(([, type]) => type !== expected.binary)).toEqual([]);
    const names = binaries.map(([file]) => file);
    expect(names).toEqual(expect.arrayContaining([`bin/rg${expected.exe}`, `runtime/bin/java${expected.exe}`]));
    // Windows has no hooks.
    expect(names.includes('bin/palimpsest-hook')).toBe(platform !== 'win32-x64');
    expect(names.filter((name) => /(?:libjvm\.so|libjvm\.dylib|jvm\.dll)$/.test(name ?? ''))).toHaveLength(1);
  });

  test("has RocksDB's library of this platform only", async () => {
    const jar = found.files.find((file) => /rocksdbjni-.*\.jar$/.test(file)) ?? '';
    const scratch = await mkdtemp(join(tmpdir(), 'palimpsest-jar-'));
    try {
      await promisify(execFile)('jar', ['xf', join(found.dir, jar)], { cwd: scratch });
      const { stdout } = await promisify(execFile)('ls', [scratch]);
      expect(stdout.split('\n').filter((name) => name.startsWith('librocksdbjni'))).toEqual([expected.rocksdb]);
      expect(await binaryType(join(scratch, expected.rocksdb))).toBe(expected.binary);
    } finally {
      await rm(scratch, { recursive: true });
    }
  });

  test('describes its node, with a hash of every jar', async () => {
    const node = await found.json('node.json');
    const jars = found.files.filter((file) => file.startsWith('lib/'));
    expect([...(node.jars as readonly string[])].sort()).toEqual(jars);
    expect(Object.keys(node.sha256 as object).sort()).toEqual(jars);
    expect(node.java).toMatchObject({ command: `runtime/bin/java${expected.exe}`, major: 25 });
  });

  test('has a bill of materials and the licences of everything in it', async () => {
    const text = await readFile(join(found.dir, 'sbom.cdx.json'), 'utf8');
    expect(await sbomTrouble(text)).toBeNull();
    const { components }: { components: readonly { readonly name: string; readonly version: string }[] } =
      JSON.parse(text);
    const libraries = found.files.filter((file) => file.startsWith('lib/') && !file.endsWith('/front.jar'));
    expect(libraries.filter((jar) => !components.some((one) => jar === `lib/${one.name}-${one.version}.jar`))).toEqual(
      [],
    );
    expect(components.map(({ name }) => name)).toEqual(expect.arrayContaining(['openjdk', `ripgrep-${platform}`]));
    const licences = await readFile(join(found.dir, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    for (const { name, version } of components.filter((one) => !/^(?:openjdk|ripgrep)/.test(one.name)))
      expect(licences).toContain(`${name} ${version}: `);
    expect(licences).not.toMatch(/: (?:unknown|undefined)?\s*$/m);
    expect(found.files).toContain('runtime/legal/java.base/LICENSE');
  });
});

describe('the package of the program', () => {
  let found: Unpacked;
  beforeAll(async () => {
    found = await unpacked(tarball());
  });
  afterAll(() => rm(dirname(found.dir), { recursive: true, force: true }));

  test('depends on the packages of the platforms alone, in its own version', async () => {
    const manifest = await found.json('package.json');
    const { version } = manifest;
    expect(manifest.optionalDependencies).toEqual(
      Object.fromEntries(PLATFORMS.map((platform) => [`@palimpsest/node-${platform}`, version])),
    );
    expect(Object.keys(manifest)).not.toContain('dependencies');
    expect(Object.keys(manifest)).not.toContain('scripts');
  });

  test('has no Java, no compiled scripts, and one table of tokens', async () => {
    expect(found.files.filter((file) => /\.(?:jar|class|jsa|aot)$|\.cjs\.v\d/.test(file))).toEqual([]);
    expect(found.files.filter((file) => file.endsWith('.ranks'))).toEqual(['dist/review/o200k_base.ranks']);
    const sizes = await Promise.all(
      found.files
        .filter((file) => /\.c?js$/.test(file))
        .map(async (file) => [file, (await stat(join(found.dir, file))).size] as const),
    );
    // A table of tokens takes over 2 MB as code.
    expect(sizes.filter(([, size]) => size > 1_500_000)).toEqual([]);
  });

  test('has a bill of materials and the licences of the packages in its bundles', async () => {
    const text = await readFile(join(found.dir, 'sbom.cdx.json'), 'utf8');
    expect(await sbomTrouble(text)).toBeNull();
    const { components }: { components: readonly { readonly name: string }[] } = JSON.parse(text);
    expect(components.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['undici', 'zod', 'preact', 'gpt-tokenizer', 'sdk-metrics']),
    );
    const licences = await readFile(join(found.dir, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    for (const name of ['undici', 'zod', '@opentelemetry/sdk-metrics']) expect(licences).toContain(`${name} `);
    expect(licences).toContain('Permission is hereby granted');
  });
});
