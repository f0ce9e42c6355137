import { describe, expect, test } from '@jest/globals';
import { classifyMavenFailure, essence } from '../../../src/node/build-front.js';

describe('a failure of Maven', () => {
  test.each([
    [
      '[ERROR] Could not transfer artifact com.xtdb:xtdb-core:pom:1.24.3 from/to central: repo.maven.apache.org: ' +
        'Name or service not known',
      'no-network',
    ],
    ['[ERROR] Unknown host repo.maven.apache.org: Temporary failure in name resolution', 'no-network'],
    ['[ERROR] Connect to repo.maven.apache.org:443 failed: Connection refused (Connection refused)', 'no-network'],
    ['[ERROR] Cannot access central (https://repo.maven.apache.org/maven2) in offline mode', 'no-network'],
    [
      "[ERROR] No plugin found for prefix 'dependency' in the current project and in the plugin groups " +
        '[org.apache.maven.plugins] available from the repositories -> [Help 1]',
      'no-network',
    ],
    ['[ERROR] Error copying artifact from /a.jar to /b.jar: No space left on device', 'no-space'],
    ['[ERROR] Could not transfer artifact x:y:jar:1 from/to central: No space left on device', 'no-space'],
    ['The JAVA_HOME environment variable is not defined correctly', 'no-java'],
    ['[ERROR] Non-parseable POM /x/pom.xml: unexpected character', 'build-failed'],
  ])('is classified by its output: %s', (output, code) => {
    expect(classifyMavenFailure(output)).toBe(code);
  });

  test('is reported by the line with the cause, not by pointers to articles', () => {
    const output = [
      "[ERROR] No plugin found for prefix 'dependency' in the current project -> [Help 1]",
      '[ERROR] ',
      '[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch.',
      '[ERROR] For more information about the errors and possible solutions, please read the following articles:',
      '[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/NoPluginFoundForPrefixException',
    ].join('\n');
    expect(essence(output)).toBe("[ERROR] No plugin found for prefix 'dependency' in the current project");
  });
});
