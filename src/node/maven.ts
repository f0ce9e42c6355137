import { join } from 'node:path';
import { NodeError, type NodeErrorCode } from './errors.js';
import { lastLines, runProcess } from './run-process.js';

const PROBLEMS: readonly { readonly pattern: RegExp; readonly code: NodeErrorCode }[] = [
  { pattern: /No space left on device|not enough space|Disk quota exceeded/i, code: 'no-space' },
  { pattern: /JAVA_HOME .*not defined correctly|JAVA_HOME .*is not set/i, code: 'no-java' },
  {
    pattern:
      /Unknown host|UnknownHostException|Name or service not known|Temporary failure in name resolution|Network is unreachable|No route to host|Connection (?:refused|reset|timed out)|connect timed out|Read timed out|Could not transfer artifact|in offline mode|PKIX path building failed/i,
    code: 'no-network',
  },
];

/** What a failed run of Maven means, from what it printed. */
export function classifyMavenFailure(output: string): NodeErrorCode {
  return PROBLEMS.find(({ pattern }) => pattern.test(output))?.code ?? 'build-failed';
}

const NEXT_STEP: Readonly<Partial<Record<NodeErrorCode, string>>> = {
  'no-space': 'Free some space on that disk (about 150 MB are needed), then try again.',
  'no-java': 'Point JAVA_HOME at a JDK of version 17 or later, or unset it.',
  'no-network': 'The first start needs the network once. Check the connection, proxy and ~/.m2/settings.xml, then try again.',
};

/** The lines in which Maven says what went wrong. */
function essence(output: string): string {
  const errors = output
    .split('\n')
    .filter((line) => line.includes('ERROR') && !/\[ERROR\]\s*$|Help 1|full stack trace|re-run Maven|-X switch/.test(line));
  return lastLines(errors.length > 0 ? errors.slice(0, 3).join('\n') : output, 3).slice(0, 1_500);
}

/**
 * Copies every jar of `pom` into `targetDir` with Maven, from the network only where the user's Maven cache lacks them.
 * Throws NodeError `no-maven`, `no-network`, `no-space`, `no-java` or `build-failed`.
 */
export async function copyDependencies(pom: string, targetDir: string, signal: AbortSignal | undefined): Promise<void> {
  const args = ['-q', '-B', '-f', pom, 'dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${targetDir}`];
  const result = await runProcess('mvn', args, { cwd: join(targetDir, '..'), limitMs: 600_000, signal });
  if (result === undefined) {
    throw new NodeError(
      'no-maven',
      'The first start fetches XTDB with Maven, and there is no `mvn` on the PATH. Install Apache Maven 3.6 or later (maven.apache.org), then try again.',
    );
  }
  if (result.code === 0) return;
  const code = classifyMavenFailure(result.output);
  const nextStep = NEXT_STEP[code] ?? `Run it by hand to see more: mvn -f ${pom} dependency:copy-dependencies`;
  throw new NodeError(
    code,
    `Maven could not fetch the libraries of the node (exit code ${result.code ?? result.signal}):\n${essence(result.output)}\n${nextStep}`,
  );
}
