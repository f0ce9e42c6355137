import { join } from 'node:path';
import { NodeError } from './errors.js';
import { runProcess } from './run-process.js';
import { TIME_LIMITS } from './time-limits.js';

/** The oldest Java that runs the node. */
const MINIMUM_JAVA = 17;

/** A Java that can run the node. */
export interface Java {
  /** The command to start; an absolute path if Java reported its home. */
  readonly command: string;
  readonly major: number;
  /** Vendor, version and build in one string. A class-data archive fits only this JVM. */
  readonly fingerprint: string;
}

/** The output of `java -XshowSettings:properties -version`. */
export interface JavaDescription {
  readonly major: number;
  readonly version: string;
  readonly home: string | undefined;
  readonly fingerprint: string;
}

/** Parses the major version: `17.0.15` is 17, `1.8.0_292` is 8, `25-ea` is 25. */
export function majorVersion(version: string): number | undefined {
  const match = /^(?:1\.)?(\d+)/.exec(version);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/** Parses Java's own description; undefined if the text contains no version. */
export function parseJavaDescription(text: string): JavaDescription | undefined {
  const property = (name: string): string | undefined =>
    new RegExp(`^\\s*${name.replaceAll('.', '\\.')} = (.*?)\\s*$`, 'm').exec(text)?.[1];
  const version = /^\S+ version "([^"]+)"/m.exec(text)?.[1] ?? property('java.version');
  const major = version === undefined ? undefined : majorVersion(version);
  if (version === undefined || major === undefined) return undefined;
  const home = property('java.home');
  const parts = [
    version,
    property('java.vm.name'),
    property('java.vm.version'),
    property('java.vendor'),
    property('os.arch'),
    home,
  ];
  return { major, version, home, fingerprint: parts.filter((part) => part !== undefined).join(' | ') };
}

/**
 * Finds a Java of version 17 or later, in `javaHome` or else on the PATH.
 * @throws {NodeError} `no-java` or `java-too-old` (with its version and place)
 */
export async function findJava(options: {
  readonly javaHome?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}): Promise<Java> {
  const candidates = [...(options.javaHome ? [join(options.javaHome, 'bin', 'java')] : []), 'java'];
  let tooOld: { readonly command: string; readonly version: string } | undefined;
  for (const candidate of candidates) {
    const result = await runProcess(candidate, ['-XshowSettings:properties', '-version'], {
      limitMs: TIME_LIMITS.javaVersionMs,
      signal: options.signal,
    });
    const description = result === undefined ? undefined : parseJavaDescription(result.output);
    if (description === undefined) continue;
    if (description.major >= MINIMUM_JAVA) {
      const command = description.home === undefined ? candidate : join(description.home, 'bin', 'java');
      return { command, major: description.major, fingerprint: description.fingerprint };
    }
    tooOld ??= { command: candidate, version: description.version };
  }
  const remedy =
    `Install a JDK of version ${MINIMUM_JAVA} or later (for example Temurin 21) and put it on the PATH or name it ` +
    'in JAVA_HOME.';
  if (tooOld !== undefined) {
    throw new NodeError(
      'java-too-old',
      `The node needs Java ${MINIMUM_JAVA} or later; ${tooOld.command} is version ${tooOld.version}. ${remedy}`,
    );
  }
  const where = options.javaHome ? `JAVA_HOME (${options.javaHome}) and the PATH` : 'the PATH';
  throw new NodeError('no-java', `The node needs Java ${MINIMUM_JAVA} or later and found none in ${where}. ${remedy}`);
}
