import { describe, expect, test } from '@jest/globals';
import { majorVersion, parseJavaDescription } from '../../../src/node/java.js';

const OPENJDK_17 = `Picked up JAVA_TOOL_OPTIONS: -Dx=1
Property settings:
    java.home = /usr/lib/jvm/java-17-openjdk-amd64
    java.vendor = Debian
    java.version = 17.0.15
    java.vm.name = OpenJDK 64-Bit Server VM
    java.vm.version = 17.0.15+6-Debian-1deb12u1
    os.arch = amd64

openjdk version "17.0.15" 2025-04-15
OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)
`;

describe('finding Java', () => {
  test.each([
    ['17.0.15', 17],
    ['1.8.0_292', 8],
    ['25-ea', 25],
    ['21', 21],
    ['11.0.2', 11],
  ])('reads version %s as Java %i', (version, major) => {
    expect(majorVersion(version)).toBe(major);
  });

  test('finds no version in a text without a number', () => {
    expect(majorVersion('unknown')).toBeUndefined();
    expect(parseJavaDescription('Error: could not create the Java Virtual Machine.')).toBeUndefined();
  });

  test('returns version, home and a fingerprint of the exact JVM', () => {
    const java = parseJavaDescription(OPENJDK_17);
    expect(java).toMatchObject({ major: 17, version: '17.0.15', home: '/usr/lib/jvm/java-17-openjdk-amd64' });
    expect(java?.fingerprint).toContain('17.0.15+6-Debian-1deb12u1');
    expect(java?.fingerprint).toContain('amd64');
  });

  test('returns another fingerprint for another build of the same version', () => {
    const other = parseJavaDescription(
      OPENJDK_17.replace('java.vm.version = 17.0.15+6', 'java.vm.version = 17.0.15+7'),
    );
    expect(other?.fingerprint).not.toBe(parseJavaDescription(OPENJDK_17)?.fingerprint);
  });

  test('accepts a description with only the version', () => {
    expect(parseJavaDescription('java version "1.8.0_292"\nJava(TM) SE Runtime Environment\n')).toMatchObject({
      major: 8,
      home: undefined,
    });
  });
});
