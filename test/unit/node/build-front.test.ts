import { describe, expect, test } from '@jest/globals';
import { classifyMavenFailure } from '../../../src/node/build-front.js';

describe('why Maven failed', () => {
  test.each([
    [
      '[ERROR] Could not transfer artifact com.xtdb:xtdb-core:pom:1.24.3 from/to central: repo.maven.apache.org: Name or service not known',
      'no-network',
    ],
    ['[ERROR] Unknown host repo.maven.apache.org: Temporary failure in name resolution', 'no-network'],
    ['[ERROR] Connect to repo.maven.apache.org:443 failed: Connection refused (Connection refused)', 'no-network'],
    ['[ERROR] Cannot access central (https://repo.maven.apache.org/maven2) in offline mode', 'no-network'],
    ['[ERROR] Error copying artifact from /a.jar to /b.jar: No space left on device', 'no-space'],
    ['[ERROR] Could not transfer artifact x:y:jar:1 from/to central: No space left on device', 'no-space'],
    ['The JAVA_HOME environment variable is not defined correctly', 'no-java'],
    ['[ERROR] Non-parseable POM /x/pom.xml: unexpected character', 'build-failed'],
  ])('%s', (output, code) => {
    expect(classifyMavenFailure(output)).toBe(code);
  });
});
